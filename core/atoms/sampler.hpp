// Draws atoms from a dictionary. docs/design.md says how, draw by draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "atoms/dictionary.hpp"
#include "base/random.hpp"

namespace morf {

// Draws atoms for one node after another. It holds scratch memory only, and each thread has its own. The dictionary must outlive it.
class Sampler {
 public:
  explicit Sampler(const Dictionary& dictionary);
  ~Sampler();
  Sampler(Sampler&&) noexcept;

  // Makes all atoms of finite components available again.
  void begin_node();

  // Whether redrawing may go on until every atom was seen once, instead of a bounded number of rounds.
  bool enumerable() const;

  // Draws `count` times. Each draw appends one atom, or nothing if the drawn component is exhausted at this node.
  void draw(Stream& stream, std::size_t count, AtomList& out);

 private:
  class Drawing;
  std::unique_ptr<Drawing> drawing_;
};

// Draws atoms independently of each other, or as one node draws them, without their rivals.
AtomList sample_atoms(const Dictionary& dictionary, std::uint64_t key, std::size_t count, bool one_node);

}  // namespace morf
