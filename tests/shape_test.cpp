// Extents, shapes, tensors and attributes.
#include "modelflow/shape.h"

#include <gtest/gtest.h>

#include "modelflow/attr.h"
#include "modelflow/error.h"
#include "modelflow/target.h"
#include "modelflow/tensor.h"

namespace modelflow {
namespace {

TEST(Dim, Arithmetic) {
  const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
  EXPECT_EQ((batch * 12 + 3).str(), "12*batch + 3");
  EXPECT_EQ((seq * batch - batch).str(), "batch*seq - batch");
  EXPECT_EQ(batch + seq, seq + batch);
  EXPECT_EQ((batch + 1) * (batch - 1), batch * batch - 1);
  EXPECT_EQ(batch - batch, Dim(0));
  EXPECT_TRUE((batch - batch).known());
  EXPECT_FALSE(batch == seq);
  EXPECT_FALSE(Dim() == Dim());
  EXPECT_TRUE((Dim() + 1).unknown());
}

TEST(Dim, DividesExactlyOrNotAtAll) {
  const Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
  EXPECT_EQ((batch * seq * 12).divided_by(batch * 4), seq * 3);
  EXPECT_EQ((batch * batch - 1).divided_by(batch - 1), batch + 1);
  EXPECT_TRUE((batch * 3).divided_by(2).unknown());
  EXPECT_TRUE(batch.divided_by(seq).unknown());
  EXPECT_TRUE(batch.divided_by(0).unknown());
  EXPECT_EQ(Dim(12).divided_by(-4), Dim(-3));
  EXPECT_TRUE(Dim(INT64_MIN).divided_by(-1).unknown());
}

TEST(Dim, OverflowIsUnknown) {
  EXPECT_TRUE((Dim(INT64_MAX) + 1).unknown());
  EXPECT_TRUE((Dim(INT64_MAX) * Dim::symbol("n") * 2).unknown());
}

TEST(Dim, ParsesWhatItWrites) {
  for (const char* text : {"12*batch + 3", "batch*seq - batch", "-n + 4", "-2*n", "0", "-7", "n*n", "unk__12"}) {
    EXPECT_EQ(Dim::parse(text).str(), text);
  }
  EXPECT_EQ(Dim::parse("12*batch + 3"), Dim::symbol("batch") * 12 + 3);
  for (const char* odd : {"b + a", "floor(H/2) + 1", "a+b", "batch size", "2*2", "1*n", "?x", "n - -1"}) {
    EXPECT_EQ(Dim::parse(odd), Dim::symbol(odd)) << odd;  // somebody's own name
  }
  EXPECT_TRUE(Dim::parse("?").unknown());
}

TEST(Shape, Basics) {
  const Shape shape({Dim::symbol("n"), 3, Dim()});
  EXPECT_EQ(shape.str(), "[n,3,?]");
  EXPECT_FALSE(shape.known());
  EXPECT_FALSE(shape == shape);
  EXPECT_TRUE(shape.elements().unknown());
  EXPECT_EQ(Shape().str(), "[...]");
  EXPECT_THROW((void)Shape().rank(), Error);
  EXPECT_EQ(Shape::of({2, 3}).elements().value(), 6);
  EXPECT_EQ(Shape::of({}).elements().value(), 1);
}

TEST(Tensor, CountsCheckOverflow) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW((void)element_count(Dims{huge, huge}), Error);
  EXPECT_EQ(element_count(Dims{huge, huge, 0}), 0);
  EXPECT_THROW((void)element_count(Dims{2, -1}), Error);
  EXPECT_EQ(byte_count(DType::i4, Dims{3}), 2u);
}

TEST(Tensor, ReadsEveryNumberType) {
  const auto bytes = [](DType dtype, Dims dims, std::vector<int> codes) {
    return Tensor::make(dtype, std::move(dims), [&](std::byte* out) {
      for (std::size_t i = 0; i < codes.size(); ++i) out[i] = static_cast<std::byte>(codes[i]);
    });
  };
  EXPECT_EQ(bytes(DType::f16, {2}, {0x00, 0x3c, 0x00, 0xc0}).to_doubles(), (std::vector<double>{1, -2}));
  EXPECT_EQ(bytes(DType::bf16, {1}, {0x80, 0x3f}).to_doubles(), std::vector<double>{1});
  EXPECT_EQ(bytes(DType::i4, {3}, {0xf1, 0x08}).to_ints(), (std::vector<std::int64_t>{1, -1, -8}));
  EXPECT_EQ(bytes(DType::f8e4m3fn, {2}, {0x38, 0x7e}).to_doubles(), (std::vector<double>{1, 448}));
  EXPECT_EQ(bytes(DType::f8e5m2, {1}, {0x7b}).to_doubles(), std::vector<double>{57344});
  EXPECT_EQ(bytes(DType::f4e2m1, {2}, {0xf7}).to_doubles(), (std::vector<double>{6, -6}));
  EXPECT_EQ(Tensor::of<std::int64_t>({1}, {INT64_MAX}).to_ints()[0], INT64_MAX);
  EXPECT_THROW((void)Tensor({1}, {std::string("a")}).to_doubles(), Error);
}

TEST(Tensor, SameContentSameHash) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4}), b = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(a.same_content(b));
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_FALSE(a.same_content(a.reshaped({4})));
  EXPECT_NE(a.hash(), a.reshaped({4}).hash());
  EXPECT_THROW((void)a.as<double>(), Error);
  EXPECT_THROW((void)a.reshaped({5}), Error);
}

TEST(Target, TextForm) {
  const Target target = Target::parse("cpu:avx512_vnni,cores=2,l2=2097152");
  EXPECT_EQ(target.isas, IsaSet(Isa::avx512_vnni));
  EXPECT_EQ(target.l2, 2097152);
  EXPECT_EQ(target.str(), "cpu:avx512_vnni,cores=2,l2=2097152");
  EXPECT_FALSE(target.is_host());
  EXPECT_TRUE(Target::parse("cpu").is_host());
  const Target host = Target::host();
  EXPECT_EQ(Target::parse(host.str()).str(), host.str());
  for (const char* bad : {"", "gpu", "cpu:", "cpu:avx513", "cpu:avx2,", "cpu:avx2,cores", "cpu:avx2,cores=x"}) {
    EXPECT_THROW(Target::parse(bad), Error) << bad;
  }
  try {
    (void)Target::parse("cpu:avx513");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("did you mean 'avx512'"), std::string::npos);
  }
}

TEST(Attrs, TypedAccess) {
  Attrs attrs;
  attrs.set("group", 2).set("mode", "linear").set("pads", Ints{1, 1});
  EXPECT_EQ(attrs.integer("group"), 2);
  EXPECT_EQ(attrs.text("mode"), "linear");
  EXPECT_EQ(attrs.number("alpha", 0.5f), 0.5f);
  EXPECT_THROW((void)attrs.ints("group"), Error);
  EXPECT_TRUE(equal(Attr(0.5f), Attr(0.5f)));
  EXPECT_FALSE(equal(Attr(0.0f), Attr(-0.0f)));
  EXPECT_FALSE(equal(Attr(std::int64_t{1}), Attr(1.0f)));
}

}  // namespace
}  // namespace modelflow
