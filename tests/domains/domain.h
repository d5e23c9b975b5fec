// What a fused op admits, as data: the choices that a call of it is made of. Cases are drawn from it (cases.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "modelflow/kernel.h"
#include "tests/domains/operands.h"

namespace modelflow::domains {

/// One choice that every call has to make. Where it has the name of an attribute, that attribute takes the value.
struct Axis {
  std::string name;
  std::vector<Attr> values;
};

Axis numbers(std::string name, std::initializer_list<std::int64_t> values);
Axis reals(std::string name, std::initializer_list<float> values);
Axis words(std::string name, std::initializer_list<const char*> values);
Axis flag(std::string name);
/// All activations; alpha and beta go with them, and `post` says whether a scale and a shift follow.
std::vector<Axis> activations();

/// The same axes with other choices for some.
std::vector<Axis> narrowed(std::vector<Axis> axes, const std::vector<Axis>& choices);

/// What one case has chosen.
class Chosen {
 public:
  void set(const std::string& name, Attr value) { attrs_.set(name, std::move(value)); }
  std::int64_t number(std::string_view name) const { return attrs_.integer(name); }
  bool is(std::string_view name) const { return attrs_.integer(name) != 0; }
  float real(std::string_view name) const { return attrs_.number(name); }
  std::string word(std::string_view name) const { return attrs_.text(name); }
  /// Numbers in a word: "2,1" is {2, 1}, "" nothing.
  Dims list(std::string_view name) const { return numbers_in(word(name)); }
  static Dims numbers_in(std::string_view text);
  const Attrs& all() const { return attrs_; }

 private:
  Attrs attrs_;
};

struct Domain {
  std::string op;
  std::vector<Axis> axes;
  /// Adds the operands of the call to those of `made`, whose attributes are set; false where the choices contradict
  /// each other.
  bool (*make)(const Chosen&, Operands& made);
  /// Numbers that operands may hold beside the usual ones, and that the body has one answer to.
  std::vector<Special> specials = {};
  /// Attributes that have one value.
  std::vector<std::string> fixed = {};
};

/// Of every fused op; a second one of an op has calls that some kernel takes only where they are large.
const std::vector<Domain>& all_domains();

// A file each.
std::vector<Domain> elementwise_domains();
std::vector<Domain> product_domains();
std::vector<Domain> convolution_domains();
std::vector<Domain> transposed_domains();
std::vector<Domain> image_domains();
std::vector<Domain> row_domains();
std::vector<Domain> attention_domains();
std::vector<Domain> recurrent_domains();

}  // namespace modelflow::domains
