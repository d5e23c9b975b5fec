// Stages run, switched off and reported.
#include "src/flow/flow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/flow/switches.h"

namespace modelflow {
namespace {

Pass counting(std::string name, int* runs, int changes_left = 0) {
  auto left = std::make_shared<int>(changes_left);
  return {.name = std::move(name), .doc = "Counts its runs.", .run = [runs, left](Graph&, Context&) {
            ++*runs;
            return *left > 0 ? (*left)--, 1 : 0;
          }};
}

TEST(Flow, RepeatsUntilNothingChanges) {
  Model model;
  Report report;
  const Options options;
  int a = 0, b = 0;
  Flow flow(options, nullptr, report);
  EXPECT_EQ(flow.run(model, {.name = "s", .passes = {counting("a", &a, 2), counting("b", &b)}, .repeat = true}), 2);
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 3);
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_EQ(report.steps[0].hits.at("a"), 2);
}

TEST(Flow, LeavesOutWhatIsDisabled) {
  Model model;
  Report report;
  Options options;
  options.disabled = {"b"};
  int a = 0, b = 0;
  const Stage stage{.name = "s", .passes = {counting("a", &a), counting("b", &b)}};
  Flow(options, nullptr, report).run(model, stage);
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 0);
  check_names(options, {stage});
  options.disabled = {"fuse-conf"};
  int c = 0;
  try {
    check_names(options, {{.name = "fuse", .passes = {counting("fuse-conv", &c)}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(error.what(), "no stage, pass or rule is called 'fuse-conf'; did you mean 'fuse-conv'?");
  }
}

TEST(Flow, KeepsWhatIsEnabledOfWhatIsDisabled) {
  const auto pass = [](std::string name, const std::vector<std::string>& rules = {}) {
    Pass out{.name = std::move(name), .doc = "", .run = {}};
    out.rules.resize(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i) out.rules[i].name = rules[i];
    return out;
  };
  const std::vector<Stage> stages = {
      {.name = "clean", .passes = {pass("prune")}},
      {.name = "fuse", .passes = {pass("fuse-conv", {"bias", "pad"}), pass("fuse-norm")}}};
  const auto off = [&](std::set<std::string> disabled, std::set<std::string> enabled) {
    Options options;
    options.disabled = std::move(disabled);
    options.enabled = std::move(enabled);
    return switched_off(options, stages);
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(off({}, {"fuse", "prune", "pad"}), Names());
  EXPECT_EQ(off({"fuse", "prune"}, {}), Names({"fuse", "prune"}));
  EXPECT_EQ(off({"fuse"}, {"prune"}), Names({"fuse"}));
  EXPECT_EQ(off({"fuse"}, {"fuse-conv"}), Names({"fuse-norm"}));
  EXPECT_EQ(off({"fuse"}, {"pad"}), Names({"bias", "fuse-norm"}));
  EXPECT_EQ(off({"fuse-conv"}, {"pad"}), Names({"bias"}));
  EXPECT_EQ(off({"fuse", "pad"}, {"fuse"}), Names({"pad"}));
  EXPECT_EQ(off({"fuse-conv", "pad"}, {"fuse-conv"}), Names({"pad"}));
}

TEST(Flow, NamesThePassOfAnError) {
  Model model;
  Report report;
  const Options options;
  const Pass bad{
      .name = "bad", .doc = "", .run = [](Graph&, Context&) -> int { throw Error(ErrorKind::internal, "oops"); }};
  try {
    Flow(options, nullptr, report).run(model, {.name = "s", .passes = {bad}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "pass 'bad': oops");
  }
}

Report example() {
  Report report;
  report.input = "m.onnx";
  report.before = {
      .nodes = 3, .ops = {{"Conv", 1}, {"Relu", 2}}, .parameters = 25.6e6, .flops = 4.1e9, .weight_bytes = 8};
  report.after = {
      .nodes = 2, .ops = {{"modelflow.Conv", 1}, {"Relu", 1}}, .parameters = 25.6e6, .flops = 0, .weight_bytes = 8};
  report.steps = {{.stage = "fuse",
                   .name = "fuse-conv",
                   .seconds = 0.002,
                   .nodes_before = 3,
                   .nodes_after = 2,
                   .hits = {{"conv", 1}},
                   .misses = {{"conv", "node 'c'", "why not", 2}, {"other", "", "far off", 1}}}};
  report.verification = {{.output = "y\xff", .max_abs = 1, .max_rel = 2e-6}};
  report.verified = true;
  return report;
}

TEST(Report, Text) {
  const std::string text = example().text();
  for (const char* part : {"25.6 M", "Conv ", "fuse: fuse-conv", "3 -> 2", "conv x1", "verified: 1 outputs compared",
                           "largest relative difference 2.0e-06"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

/// Where the original is 0 throughout, any difference is infinitely much of it.
TEST(Report, TextWhereNothingIsRelative) {
  Report report = example();
  report.verification.push_back({.output = "zero", .max_abs = 1e-7, .max_rel = INFINITY});
  EXPECT_NE(report.text().find(", largest difference 1.0e+00\n"), std::string::npos) << report.text();
}

TEST(Report, TextSaysWhyALargeDifferenceIsNoFault) {
  Report report = example();
  EXPECT_EQ(report.text().find("no fault"), std::string::npos) << report.text();
  report.verification.push_back({.output = "z", .max_rel = 0.5, .feed = "zeros", .explained = "rounding"});
  report.verification.push_back({.output = "w", .max_rel = 0.4, .feed = "zeros", .explained = "rounding"});
  const std::string text = report.text();
  EXPECT_NE(text.find("\nno fault: output 'z' on feed 'zeros', largest relative difference 5.0e-01: rounding (and 1 "
                      "other outputs)\n"),
            std::string::npos)
      << text;
}

TEST(Report, JsonSurvivesAnyName) {
  const auto json = nlohmann::json::parse(example().json());
  EXPECT_EQ(json["before"]["ops"]["Conv"], 1);
  EXPECT_EQ(json["steps"][0]["misses"][0]["reason"], "why not");
  EXPECT_EQ(json["verification"][0]["ok"], true);
}

TEST(Report, ExplainsTheMostPromisingFirst) {
  const std::string text = example().explain();
  EXPECT_LT(text.find("why not"), text.find("far off"));
  EXPECT_NE(text.find("conv (2 nodes fitted, fired 1 times elsewhere)"), std::string::npos) << text;
}

}  // namespace
}  // namespace modelflow
