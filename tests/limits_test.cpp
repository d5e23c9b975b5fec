// Limits of the library, and names of any bytes on their way to a terminal.
#include <gtest/gtest.h>

#include <functional>

#include "modelflow/c_api.h"
#include "modelflow/modelflow.h"
#include "src/core/printable.h"

namespace modelflow {
namespace {

constexpr const char* kChain = R"((float[N,4] x) => (float[N,4] y) { a = Relu(x)  b = Tanh(a)  y = Sigmoid(b) })";

ErrorKind kind_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was refused";
  return ErrorKind::internal;
}

TEST(Limits, AmountsOfMemory) {
  EXPECT_EQ(parse_bytes("512"), 512);
  EXPECT_EQ(parse_bytes("2k"), 2048);
  EXPECT_EQ(parse_bytes("1.5MiB"), 1.5 * (1 << 20));
  EXPECT_EQ(parse_bytes("8G"), parse_bytes("8GB"));
  for (const char* text : {"", "G", "8X", "8GG", "-1", "nan", "inf", "8 G", "1e400"})
    EXPECT_EQ(kind_of([&] { (void)parse_bytes(text); }), ErrorKind::usage) << text;
}

TEST(Limits, WhatThisProcessHolds) {
  EXPECT_GT(memory_of(), 1 << 20);
  EXPECT_GT(most_memory({}), memory_of());
  EXPECT_EQ(most_memory({.max_memory = 5}), 5);
}

TEST(Limits, OfTimeAndMemory) {
  Options options;
  options.measure = options.verify = false;
  for (const Limits& limits : {Limits{.timeout = 1e-9}, Limits{.max_memory = 1}}) {
    options.limits = limits;
    EXPECT_EQ(kind_of([&] { (void)optimize(Model::from_text(kChain), options); }), ErrorKind::limit);
  }
  options.limits = {.timeout = 0};
  EXPECT_NO_THROW((void)optimize(Model::from_text(kChain), options));
}

/// The original is what takes most at times.
TEST(Limits, HoldWhileTheOriginalRuns) {
  if (!Runtime::find()) GTEST_SKIP() << "no ONNX Runtime";
  Options options;
  options.measure = false;
  options.progress = [](std::string_view step, double) {
    if (step.starts_with("run the original")) throw Error(ErrorKind::limit, "too much");
  };
  EXPECT_EQ(kind_of([&] { (void)optimize(Model::from_text(kChain), options); }), ErrorKind::limit);
}

TEST(Limits, OfNodes) {
  const std::string bytes = Model::from_text(kChain).to_bytes();
  const auto read = [&](std::size_t nodes) {
    (void)Model::from_bytes(std::as_bytes(std::span(bytes)), {}, {.max_nodes = nodes});
  };
  EXPECT_EQ(kind_of([&] { read(2); }), ErrorKind::limit);
  EXPECT_NO_THROW(read(3));
}

TEST(Limits, ThroughC) {
  modelflow_options* options = modelflow_options_create();
  for (const auto& [key, value] :
       {std::pair{"max_memory", "8G"}, {"timeout", "60"}, {"max_nodes", "2"}, {"max_depth", "9"}})
    EXPECT_EQ(modelflow_options_set(options, key, value, nullptr), 0) << key;
  for (const auto& [key, value] :
       {std::pair{"max_memory", "lots"}, {"timeout", "-1"}, {"max_nodes", "0.5"}, {"max_depth", "0"}})
    EXPECT_EQ(modelflow_options_set(options, key, value, nullptr), static_cast<int>(ErrorKind::usage)) << key;
  const std::string bytes = Model::from_text(kChain).to_bytes();
  void* output = nullptr;
  std::size_t size = 0;
  EXPECT_EQ(modelflow_optimize_bytes(bytes.data(), bytes.size(), options, &output, &size, nullptr, nullptr),
            static_cast<int>(ErrorKind::limit));
  modelflow_options_free(options);
}

TEST(Printable, KeepsWhatIsText) {
  for (const char* text : {"", "conv_1/weight:0", "größe \xe2\x82\xac \xf0\x9f\x99\x82"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesOutTheRest) {
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable_line("two\nlines"), "two\\x0alines\n");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");             // a C1 control in UTF-8
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");    // right to left from here
  EXPECT_EQ(printable("\xc0\xaf\xff"), "\\xc0\\xaf\\xff");    // overlong, never in UTF-8
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");    // a surrogate
  EXPECT_EQ(printable("a\xf0\x9f\x92"), "a\\xf0\\x9f\\x92");  // cut through
  EXPECT_EQ(printable(printable("\x07\xff")), printable("\x07\xff"));
}

TEST(Printable, ErrorsStayOneShortLine) {
  const Error error = Error(ErrorKind::usage, "a\nb\x1b " + std::string(1 << 20, 'n')).within("c\r\nd");
  const std::string text = error.what();
  EXPECT_TRUE(text.starts_with("c  d: a b\\x1b nnn")) << text.substr(0, 40);
  EXPECT_LT(text.size(), 4200U);
}

}  // namespace
}  // namespace modelflow
