// The original against its optimized forms.
#include "src/verify/verifier.h"

#include <algorithm>

#include "src/verify/parts.h"
#include "src/verify/probe.h"

namespace modelflow {

Verifier::Verifier(std::shared_ptr<Runtime> runtime, const Model& original, const Options& options,
                   std::filesystem::path plugin, std::vector<Feed> feeds)
    : runtime_(std::move(runtime)), original_(original), options_(options), plugin_(std::move(plugin)) {
  if (!runtime_)
    reference_.why_not = "there is no ONNX Runtime";
  else if (!options.verify && !options.measure)
    reference_.why_not = "neither verification nor measuring is wanted";
  else if (feeds.empty())
    reference_ = make_reference(*runtime_, original, options);
  else
    reference_ = make_reference(*runtime_, original, options, std::move(feeds));
}

Outcome Verifier::check(const Model& runnable) const {
  Outcome outcome;
  const bool has_use = has_use_for_plugin(runnable);
  for (const bool with : {false, true}) {
    if (with && !has_use) break;
    Comparison found = compare(*runtime_, reference_, original_, runnable, options_,
                               {.plugin = with ? plugin_ : "", .may_refuse_empty = !with && has_use});
    outcome.diffs = std::move(found.diffs);
    if (!found.note.empty()) outcome.note = std::move(found.note);
    outcome.ok = found.ok;
    if (found.ok) continue;
    outcome.kernels_only = with;
    outcome.fault = found.fault;
    if (found.feed < reference_.feeds.size()) outcome.feed = reference_.feeds[found.feed].name;
    outcome.why = std::string(with ? "with the plugin" : "without the plugin") + ", feed '" + outcome.feed + "': " +
                  (found.why.empty() ? "output '" + found.fault.output + "' " + describe(found.fault) : found.why);
    break;
  }
  return outcome;
}

bool Verifier::has_use_for_plugin(const Model& runnable) const { return !plugin_.empty() && uses_our_domain(runnable); }

const Feed* Verifier::feed_of(const Outcome& found) const {
  const auto& feeds = reference_.feeds;
  const auto at = std::find_if(feeds.begin(), feeds.end(), [&](const Feed& feed) { return feed.name == found.feed; });
  return at == feeds.end() ? nullptr : &*at;
}

bool Verifier::shares_fault(const Model& runnable, const Outcome& found) const {
  const Feed* feed = feed_of(found);
  const std::size_t only = feed ? static_cast<std::size_t>(feed - reference_.feeds.data()) : 0;
  return !compare(*runtime_, reference_, original_, runnable, options_,
                  {.plugin = plugin_for(found),
                   .only = feed ? &only : nullptr,
                   .may_refuse_empty = !found.kernels_only && has_use_for_plugin(runnable)})
              .ok;
}

std::string Verifier::first_wrong_node(const Model& runnable, const Outcome& found) const {
  const Feed* feed = feed_of(found);
  if (!feed || feed->kinds_only || has_empty_input(feed->values)) return "";
  try {
    return compare_parts(*runtime_, original_, runnable, feed->values, reference_,
                         {.threads = options_.threads, .plugin = plugin_for(found)})
        .first;
  } catch (const Error&) {
    return "";  // a result that cannot be taken apart
  }
}

bool Verifier::still_loads(const Model& runnable, std::string& why) const {
  std::string nothing_to_lose;
  return !runtime_ || !options_.verify || !loads(*runtime_, original_, nothing_to_lose) ||
         loads(*runtime_, runnable, why);
}

bool Verifier::original_loads(std::string& why) const { return loads(*runtime_, original_, why); }

}  // namespace modelflow
