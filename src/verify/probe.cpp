// Runs in a child process, of models that may end it.
#include "src/verify/probe.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <thread>
#include <unordered_set>

#include "modelflow/limits.h"
#include "modelflow/pass.h"
#include "modelflow/shape_values.h"
#include "src/verify/reference.h"

namespace modelflow {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);
/// Another thread may have held a lock when the process forked, which nobody opens in the child: hardly twice.
constexpr int kTries = 2;

/// In the child: nothing of what happens here is to be seen, and it ends with who waits for it.
[[noreturn]] void try_it(const Sessions& sessions, const Model& model, const Feeds& feeds,
                         const SessionOptions& session, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0)
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
  for (const int ends : {SIGFPE, SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGINT, SIGTERM, SIGALRM})
    std::signal(ends, SIG_DFL);
  try {
    open_session(sessions, model, session)->run(feeds);
  } catch (...) {  // a refusal is no death
  }
  _exit(0);
}

void stop(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// How the child ended; nothing where it took too long, or where nobody is told because the caller ignores SIGCHLD.
/// Throws Error(limit) beyond so many bytes of memory (0: any).
std::optional<int> end_of(pid_t child, double most_memory) {
  int status = 0;
  const auto start = Clock::now();
  for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20000))) {
    if (const pid_t done = waitpid(child, &status, WNOHANG); done != 0)
      return done == child ? std::optional(status) : std::nullopt;
    if (Clock::now() - start > kPatience) {
      stop(child);
      return {};
    }
    if (most_memory > 0 && memory_of(child) > most_memory) {
      stop(child);
      throw Error(ErrorKind::limit, "it takes more memory than the limit (max_memory)");
    }
    std::this_thread::sleep_for(pause);
  }
}

/// A Concat of parts whose extents differ beside its axis: ONNX Runtime joins what has no elements with anything.
bool joins_unlike(const Node& node) {
  if (!node.is("Concat") || node.inputs().empty()) return false;
  const auto& parts = node.inputs();
  const auto rank = [](const Value* part) { return part && part->shape().known() ? part->shape().rank() : 0; };
  const std::size_t axes = rank(parts[0]);
  std::int64_t axis = node.attrs.integer("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(axes);
  if (axis < 0 || static_cast<std::size_t>(axis) >= axes) return false;
  if (!std::ranges::all_of(parts, [&](const Value* part) { return rank(part) == axes; })) return false;
  const auto beside = [&](const Value* part) {
    Dims dims = part->shape().values();
    dims[static_cast<std::size_t>(axis)] = 0;
    return dims;
  };
  return std::ranges::any_of(parts, [&](const Value* part) { return beside(part) != beside(parts[0]); });
}

/// A computed extent comes out as 0, which Reshape takes for "as it was", and it was another.
bool copies_by_chance(const Node& node, ShapeValues& values) {
  const Value *data = node.input(0), *wanted = node.input(1);  // before opset 5 the target is an attribute
  if (!node.is("Reshape") || !data || !wanted || wanted->constant()) return false;
  const DimList* target = values.of(wanted);
  const Shape& x = data->shape();
  if (!target || !x.known() || node.attrs.integer("allowzero") != 0) return false;
  for (std::size_t i = 0; i < std::min(target->size(), x.rank()); ++i)
    if ((*target)[i] == Dim(0) && !(x[i] == Dim(0))) return true;
  return false;
}

bool is_empty(const Value* value) {
  return value && value->type.is_tensor() && value->shape().has_rank() && value->shape().elements() == Dim(0);
}

/// A recurrent layer whose operands may have no elements. What stands inside of other nodes is not looked at.
bool recurs_over_nothing(const Node& node) {
  if (!node.domain().empty() || !node.subgraphs().empty()) return true;
  if (!node.is("LSTM") && !node.is("GRU") && !node.is("RNN")) return false;
  return std::ranges::any_of(node.inputs(),
                             [](const Value* value) { return value && (!value->shape().known() || is_empty(value)); });
}

/// Values whose shapes ONNX Runtime makes up: reductions of nothing, and what is computed from them.
class MadeUpShapes {
 public:
  /// Nodes in running order; whether this one asks for such a shape.
  bool asked_for(const Node& node) {
    const auto is_made_up = [&](const Value* value) { return made_up_.contains(value); };
    const bool reads = std::ranges::any_of(node.inputs(), is_made_up);
    if (reads && (node.is("Shape") || node.is("Size"))) return true;
    const bool reduces = node.domain().empty() && node.op().starts_with("Reduce") && is_empty(node.input(0));
    if ((reduces || reads) && is_empty(node.output())) made_up_.insert(node.output());
    return false;
  }

 private:
  std::unordered_set<const Value*> made_up_;
};

}  // namespace

bool has_empty_input(const Feeds& feeds) {
  return std::any_of(feeds.begin(), feeds.end(), [](const auto& feed) { return feed.second.elements() == 0; });
}

Outlook outlook(const Model& model, const Feeds& feeds) {
  Outlook found{.empty = has_empty_input(feeds)};
  Model bound = model;
  for (Value* input : bound.graph().inputs())
    if (const auto fed = feeds.find(input->name()); fed != feeds.end())
      input->type = Type::tensor(fed->second.dtype(), Shape::of(fed->second.dims()));
  try {
    infer_types(bound);
  } catch (const Error&) {
    found.empty = found.recurrence_of_nothing = true;  // contradicts itself: anything may happen
    return found;
  }
  ShapeValues values(bound.ir_version);
  MadeUpShapes shapes;
  for (const Value* output : bound.graph().outputs())
    found.outputs.push_back(output->type.is_tensor() ? output->shape() : Shape());
  for (const auto& node : bound.graph().nodes()) {
    const bool asked = shapes.asked_for(*node);
    found.recurrence_of_nothing = found.recurrence_of_nothing || recurs_over_nothing(*node);
    found.contradicts = found.contradicts || asked || joins_unlike(*node) || copies_by_chance(*node, values);
    for (const Value* value : node->outputs()) {
      if (!value || !value->type.is_tensor() || !value->shape().has_rank()) continue;
      found.empty = found.empty || (!node->inputs().empty() && value->shape().elements() == Dim(0));
      if (!value->shape().known()) continue;
      found.largest = std::max(found.largest, value->shape().known_elements());
      found.all += value->shape().known_elements();
    }
  }
  return found;
}

bool survives(const Sessions& sessions, const Model& model, const Feeds& feeds, const SessionOptions& session,
              const Limits& limits) {
  const pid_t parent = getpid();
  for (int tries = 0; tries < kTries; ++tries) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) try_it(sessions, model, feeds, session, parent);
    if (const std::optional<int> status = end_of(child, most_memory(limits)))
      return WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
  }
  return false;
}

}  // namespace modelflow
