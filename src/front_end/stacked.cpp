// Stacks of frames: one slice for each place in a stack, side by side.
#include "src/front_end/stacked.h"

namespace modelflow {

Value* stacked(const Draft& d, Value* x, int count, int hop, bool edges) {
  const auto frames_of = [&](Value* value) {
    return d.op("Shape", {value}, {{"start", Attr(std::int64_t{1})}, {"end", Attr(std::int64_t{2})}});
  };
  Value* frames = frames_of(x);
  Value* stacks = nullptr;
  const auto last_begin = [&] { return d.op("Mul", {d.op("Sub", {stacks, &d.ints({1})}), &d.ints({hop})}); };
  if (edges) {
    stacks = d.op("Div", {d.op("Add", {frames, &d.ints({hop - 1})}), &d.ints({hop})});
    const std::int64_t before = (count - 1) / 2;
    Value* missing = d.op("Sub", {d.op("Add", {last_begin(), &d.ints({count - before})}), frames});
    Value* behind = d.op("Max", {missing, &d.ints({0})});
    Value* none = &d.ints({0});
    Value* pads =
        d.op("Concat", {none, &d.ints({before}), none, none, behind, none}, {{"axis", Attr(std::int64_t{0})}});
    x = d.op("Pad", {x, pads}, {{"mode", Attr(std::string("edge"))}});
  } else {
    stacks = d.op("Div", {d.op("Sub", {frames, &d.ints({count - hop})}), &d.ints({hop})});
    stacks = d.op("Max", {stacks, &d.ints({0})});
  }
  std::vector<Value*> places;
  for (std::int64_t i = 0; i < count; ++i) {
    Value* end = d.op("Max", {d.op("Add", {last_begin(), &d.ints({i + 1})}), &d.ints({0})});  // below 0: from behind
    places.push_back(d.op("Slice", {x, &d.ints({i}), end, &d.ints({1}), &d.ints({hop})}));
  }
  return d.op("Concat", std::move(places), {{"axis", Attr(std::int64_t{2})}});
}

}  // namespace modelflow
