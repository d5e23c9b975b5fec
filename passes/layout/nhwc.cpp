// Which values are kept channels last: a minimum cut through the graph. Convolutions are channels last, graph inputs
// and outputs and every op that cannot move are not; between them the border runs where the fewest bytes are
// transposed.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "passes/graph/cut.h"
#include "passes/graph/facts.h"
#include "passes/layout/layout.h"
#include "passes/layout/roles.h"

namespace modelflow::passes {
namespace {

constexpr double kForced = 1e6;  // seconds: never cut

class Islands {
 public:
  Islands(Graph& graph, Context& context) : graph_(graph), facts_{graph, context, {}, TypicalSizes(context)} {}

  int run() {
    collect();
    if (!worthwhile_) return 0;
    choose();
    const int moved = move();
    if (moved) restore();
    return moved;
  }

 private:
  struct Member {
    Node* node;
    Role role;
    std::size_t id = 0;
    bool last = false;
  };

  void collect() {
    for (const auto& node : graph_.nodes()) {
      std::optional<Role> role = role_of(*node, facts_);
      if (!role) continue;
      worthwhile_ |= role->always || role->plain_cost > 0;
      index_[node.get()] = members_.size();
      members_.push_back({node.get(), std::move(*role)});
    }
  }

  /// The member that reads `value` in its own layout through this use; null for every other reader.
  Member* follower(const Use& use) {
    const auto found = index_.find(use.node);
    if (found == index_.end()) return nullptr;
    Member& member = members_[found->second];
    for (std::size_t input : member.role.inputs) {
      if (input == use.index) return &member;
    }
    return nullptr;
  }

  // Near side: channels last. What could be either stays as it is, because the near side comes out as small as
  // possible.
  void choose() {
    for (Member& member : members_) {
      const Role& role = member.role;
      member.id = cut_.node(role.always ? kForced : role.plain_cost, role.last_cost);
    }
    plain_ = cut_.node(0, kForced);
    for (const Value* input : graph_.inputs()) connect(*input, plain_);
    for (const Value* value : captured()) connect(*value, plain_);
    for (const auto& node : graph_.nodes()) {
      const auto found = index_.find(node.get());
      const bool follows = found != index_.end() && members_[found->second].role.output;
      for (const Value* output : node->outputs()) {
        if (output) connect(*output, follows ? members_[found->second].id : plain_);
      }
    }
    cut_.solve();
    for (Member& member : members_) member.last = !cut_.far(member.id);
    for (Member& member : members_) {
      if (member.role.always && alone(member)) member.last = false;
    }
  }

  /// A convolution with no neighbour in its island: it reads and writes the plain order itself, as it does now.
  bool alone(const Member& member) {
    const auto shared = [&](const Value& value) {
      return std::any_of(value.uses().begin(), value.uses().end(), [&](const Use& use) {
        const Member* reader = follower(use);
        return reader && reader != &member && reader->last;
      });
    };
    for (std::size_t input : member.role.inputs) {
      const Value& value = *member.node->input(input);
      const auto producer = index_.find(value.producer());
      if (producer != index_.end() && members_[producer->second].last && members_[producer->second].role.output)
        return false;
      if (shared(value)) return false;
    }
    return !shared(*member.node->output());
  }

  /// Values of enclosing graphs that members read.
  std::set<const Value*> captured() const {
    std::set<const Value*> values;
    for (const Member& member : members_) {
      for (std::size_t input : member.role.inputs) {
        if (&member.node->input(input)->graph() != &graph_) values.insert(member.node->input(input));
      }
    }
    return values;
  }

  /// One Transpose serves all readers on the other side, so a value pays once however many they are.
  void connect(const Value& value, std::size_t producer) {
    if (value.is_initializer()) return;
    bool plain = value.is_graph_output();
    std::vector<std::size_t> readers;
    for (const Use& use : value.uses()) {
      const Member* member = follower(use);
      if (member)
        readers.push_back(member->id);
      else
        plain = true;
    }
    if (plain) readers.push_back(plain_);
    if (readers.empty() || (readers.size() == 1 && readers[0] == producer)) return;
    const double seconds = facts_.transpose_seconds(value);
    if (readers.size() == 1) return cut_.edge(producer, readers[0], seconds, seconds);
    const std::size_t away = cut_.node(), back = cut_.node();
    cut_.edge(producer, away, seconds, 0);  // producer near, some reader far
    cut_.edge(back, producer, seconds, 0);  // producer far, some reader near
    for (std::size_t reader : readers) {
      cut_.edge(away, reader, kForced, 0);
      cut_.edge(reader, back, kForced, 0);
    }
  }

  /// Makes the new nodes in front of the old ones.
  int move() {
    int moved = 0;
    for (Member& member : members_) {
      if (!member.last) continue;
      Node& node = *member.node;
      Move move{graph_, facts_.context, node, node.inputs()};
      for (std::size_t input : member.role.inputs) move.inputs[input] = &last(*node.input(input), node);
      const std::vector<Value*> made = member.role.make(move);
      for (std::size_t i = 0; i < made.size(); ++i) {
        Value* old = node.output(i);
        if (!old || !made[i]) continue;
        if (member.role.output) {
          if (made[i] != node.input(0)) made[i]->type = last_type(*old, made[i]->type);
          if (std::ranges::find(move.inputs, made[i]) == move.inputs.end() && made[i] != node.input(0))
            graph_.rename(*made[i], graph_.unique_name(last_name(old->name())));
          last_[old] = made[i];
        } else {
          same_[old] = made[i];
        }
      }
      facts_.context.hit("channels-last");
      ++moved;
    }
    return moved;
  }

  /// Old nodes go, last first; whoever still reads an old value gets it transposed back.
  void restore() {
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (!member->last) continue;
      Node& node = *member->node;
      for (Value* old : node.outputs()) {
        if (!old) continue;
        if (const auto same = same_.find(old); same != same_.end()) graph_.replace(*old, *same->second);
        const auto last = last_.find(old);
        if (last == last_.end() || (old->uses().empty() && !old->is_graph_output())) continue;
        graph_.replace(*old, view(*last->second, false, *old, node));
      }
      graph_.erase(node);
    }
  }

  /// The channels-last form of a value that a member reads.
  Value& last(Value& value, Node& before) {
    if (const auto found = last_.find(&value); found != last_.end()) return *found->second;
    Value& made = view(value, true, value, before);
    last_[&value] = &made;
    return made;
  }

  /// Transposes (with one spatial axis the same perm leads both ways); with no extent but one behind the channels that
  /// is a Reshape, which moves nothing.
  Value& view(Value& from, bool to_last_order, const Value& plain, Node& before) {
    const std::size_t rank = facts_.rank(&plain);
    const Shape shape = facts_.extents.of(plain);
    bool ones = shape[1].known();  // a -1 in its place would refuse an empty batch
    for (std::size_t i = 2; i < rank; ++i) ones &= shape[i] == Dim(1);
    Node* node = nullptr;
    if (ones && rank > 2) {
      Ints dims(rank, 1);
      dims[0] = 0;
      dims[to_last_order ? rank - 1 : 1] = shape[1].value();
      Value& target = graph_.add_constant(tensor_of(dims), "dims");
      node = &graph_.add("Reshape", {&from, &target}, {.before = &before});
    } else {
      const Ints perm = to_last_order ? to_last(rank) : to_first(rank);
      node = &graph_.add("Transpose", {&from}, {.before = &before, .attrs = {{"perm", perm}}});
    }
    Value& made = *node->output();
    made.type = to_last_order ? last_type(plain, from.type) : plain.type;
    if (!made.type.is_tensor() || !made.shape().has_rank()) infer_types(*node, facts_.context.model);
    return made;
  }

  static Type last_type(const Value& plain, const Type& otherwise) {
    if (!plain.type.is_tensor() || !plain.shape().has_rank()) return otherwise;
    return Type::tensor(plain.dtype(), last_shape(plain.shape()));
  }

  Graph& graph_;
  Facts facts_;
  std::vector<Member> members_;
  std::unordered_map<const Node*, std::size_t> index_;
  std::unordered_map<const Value*, Value*> last_, same_;
  Cut cut_;
  std::size_t plain_ = 0;
  bool worthwhile_ = false;
};

}  // namespace

Pass channels_last() {
  return {.name = "channels-last",
          .doc = "Convolutions and whatever can run between them keep channels last; few Transposes at the borders",
          .run = [](Graph& graph, Context& context) { return Islands(graph, context).run(); }};
}

}  // namespace modelflow::passes
