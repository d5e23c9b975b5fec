// Activations and programs of elementwise ops.
#include "tests/domains/domain.h"

namespace modelflow::domains {
namespace {

const std::vector<Special> kAll = {Special::nan, Special::infinite, Special::huge, Special::largest, Special::tiny};

bool activation(const Chosen& c, Operands& made) {
  made.feed("x", made.normal(c.list("shape"), c.real("size")));
  return true;
}

/// Shapes that broadcast: "2,1,9 1,300,1 9".
std::vector<Dims> shapes_in(const std::string& text) {
  std::vector<Dims> shapes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string one = text.substr(begin, end - begin);
    shapes.push_back(one == "-" ? Dims{} : Chosen::numbers_in(one));
    begin = end + 1;
  }
  return shapes;
}

constexpr const char* kTwo[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
// What does not make much of little differences.
constexpr const char* kSmooth[] = {"Add",  "Sub",  "Mul",     "Max",  "Min",  "Neg",  "Abs",
                                   "Relu", "Tanh", "Sigmoid", "SiLU", "Mish", "Gelu", "GeluTanh"};

bool two_operands(const std::string& op) { return std::find(std::begin(kTwo), std::end(kTwo), op) != std::end(kTwo); }

/// `first` on the first inputs, then lines that each read the one before; all inputs are read.
std::string program_of(const std::string& first, std::size_t lines, std::size_t inputs,
                       std::span<const char* const> others, Operands& made) {
  std::string text;
  std::size_t unread = 0, count = 0;
  const auto input = [&] {
    const std::size_t index = unread < inputs ? unread : static_cast<std::size_t>(made.below(std::ssize(Dims(inputs))));
    unread = std::max(unread, index + 1);
    return " x" + std::to_string(index);
  };
  const auto line = [&](const std::string& op) {
    const std::string before = " t" + std::to_string(count - 1);
    text += (count ? "; " : "") + op + (count ? before : input());
    if (two_operands(op)) text += count && made.below(4) == 0 ? before : input();
    ++count;
  };
  line(first);
  for (; lines > 1; --lines) line(others[static_cast<std::size_t>(made.below(std::ssize(others)))]);
  while (unread < inputs) line("Add");
  return text;
}

bool pointwise(const Chosen& c, Operands& made) {
  const std::vector<Dims> shapes = shapes_in(c.word("shapes"));
  made.call.attrs.set("program", program_of(c.word("first"), static_cast<std::size_t>(c.number("lines")), shapes.size(),
                                            kSmooth, made));
  // Above half the largest number the body of Gelu, which doubles before it halves, is infinite and its kernels are
  // not.
  const bool far = made.special() == Special::huge || made.special() == Special::tiny;  // and quotients of those
  if (far && made.call.attrs.text("program").find("Gelu") != std::string::npos) return false;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    made.feed(("x" + std::to_string(i)).c_str(), made.uniform(shapes[i], -2, 2));
  return true;
}

// What stays small however often it is repeated.
constexpr const char* kSteady[] = {"Add", "Sub", "Max", "Min", "Neg", "Abs", "Tanh", "Sigmoid", "SiLU"};

/// Sequences first, states last, `constants` between them: each of the shape of a step or one that repeats along it.
bool pointwise_scan(const Chosen& c, Operands& made) {
  const auto sequences = static_cast<std::size_t>(c.number("sequences")),
             states = static_cast<std::size_t>(c.number("states")),
             inputs = sequences + static_cast<std::size_t>(c.number("constants")) + states;
  const Dims step = c.list("step");
  const std::int64_t axis = c.number("axis");
  if (axis > std::ssize(step)) return false;
  const std::string program =
      program_of(c.word("begins"), static_cast<std::size_t>(c.number("lines")), inputs, kSteady, made);
  const auto lines = 1 + std::ranges::count(program, ';');
  Ints next;
  for (std::size_t i = 0; i < states; ++i) next.push_back(made.below(lines));
  made.call.attrs.set("program", program).set("result", lines - 1).set("next", next);
  Dims rows = step;
  rows.insert(rows.begin() + axis, c.number("first") + c.number("steps") + c.number("more"));
  for (std::size_t i = 0; i < inputs; ++i) {
    Dims dims = i < sequences ? rows : step;
    if (i >= sequences && made.below(2)) dims = made.below(2) || step.empty() ? Dims{} : Dims{step.back()};
    made.feed(("x" + std::to_string(i)).c_str(), made.uniform(dims, -2, 2));
  }
  return true;
}

std::vector<Axis> with_activations(std::vector<Axis> axes) {
  for (Axis& axis : activations()) axes.push_back(std::move(axis));
  return axes;
}

}  // namespace

std::vector<Domain> elementwise_domains() {
  return {
      {"Activation",
       with_activations(
           {words("shape", {"", "0", "1", "3", "15", "16", "17", "2,31", "33,65", "7,3,5", "4,0,3", "9,4001"}),
            reals("size", {1, 8, 60})}),
       activation, kAll},
      {"Pointwise",
       {words("first", {"Add",     "Sub",        "Mul",  "Div",  "Max",  "Min",     "Neg",  "Abs",
                        "Sqrt",    "Reciprocal", "Exp",  "Log",  "Sin",  "Cos",     "Relu", "SquaredRelu",
                        "Sigmoid", "Tanh",       "SiLU", "Mish", "Gelu", "GeluTanh"}),
        numbers("lines", {1, 2, 3, 6}),
        words("shapes",
              {"-", "1", "0,5 5", "17", "513 -", "33,65 65", "2,1,9 1,300,1", "3,5,7 5,1 -", "2,3,4 2,3,4 4",
               "1024 1024 1", "2,7,1,5 3,1 1,7,3,1", "40,31 40,1 31 - 40,31", "6 6 6 6 6 6 6 6", "2,0,3 1,3"})},
       pointwise,
       {Special::nan, Special::infinite, Special::huge, Special::tiny}},
      {"PointwiseScan",
       {words("begins", {"Add", "Mul", "Exp", "Sigmoid", "Max"}), numbers("lines", {1, 2, 5, 9}),
        numbers("sequences", {1, 2, 3}), numbers("constants", {0, 1, 2}), numbers("states", {1, 2, 3}),
        words("step", {"", "0", "1", "17", "2,33", "3,64", "2,3,65", "1,1030", "3,1024", "0,5", "4,0"}),
        numbers("axis", {0, 1, 2}), numbers("steps", {1, 2, 3, 7}), numbers("first", {0, 0, 1}),
        numbers("more", {0, 0, 2}), flag("keep_state")},
       pointwise_scan,
       {Special::nan, Special::infinite, Special::tiny}},
  };
}

}  // namespace modelflow::domains
