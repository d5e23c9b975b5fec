// The report as a page for browsers.
#include "src/flow/report_page.h"

#include "src/flow/report_json.h"

namespace modelflow {
namespace {

/// Names come from the model, and a browser would see "</script>" in the middle of a text, too.
std::string without_markup(const std::string& json) {
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  }
  return text;
}

}  // namespace

std::string page_of(const Json& report) {
  const std::string json = report.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return std::string(kPageHead) + without_markup(json) + std::string(kPageTail);
}

std::string Report::html() const { return page_of(json_of(*this)); }

}  // namespace modelflow
