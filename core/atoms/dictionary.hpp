// A dictionary, resolved for the shape of a sample: what atoms can be drawn, and in which planes they look.
//
// A *direct* dictionary has no prefix sums: its cells are features, which is what float64 tables and sampling without a table need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "atoms/atom_list.hpp"
#include "atoms/relation.hpp"
#include "data/row_layout.hpp"

namespace morf {

enum class Boundary : std::uint8_t { zero, inside, wrap };

struct PatchAxis {
  std::int64_t length;
  std::int64_t min_size;
  std::int64_t max_size;
  Boundary boundary;
  bool contiguous;
  std::int64_t stride;  // distance in cells between neighbours along this axis
  bool prefixed;  // the component's plane holds prefix sums along this axis
  std::vector<std::uint64_t> cumulative{};  // probabilities of the sizes; empty: all are equally likely
  bool lobed = false;  // haar: boxes may stand side by side along this axis
  std::int64_t reach = 0;  // pair: how far away the second box may lie
  std::int64_t window = -1;  // see Pool
  bool moves = false;  // in a pooled plane
  std::shared_ptr<const Relation> relation{};  // what an atom holds is drawn from it; the axis is then not contiguous
};

// What the features of a patch weigh, if that is not one each. Either every feature draws one of the numbers `drawn`, or the patch
// draws one of the arrays that are listed for its sizes.
struct Weights {
  std::vector<std::int32_t> drawn{};
  std::vector<std::uint64_t> cumulative{};  // probabilities of these numbers; empty: all are equally likely
  std::vector<std::uint32_t> arrays{};  // how many are listed for each combination of sizes, later axes fastest
  std::vector<std::int32_t> listed{};  // the arrays, one behind the other
  std::vector<std::size_t> first{};  // where those of each combination begin; made by add_patch

  bool any() const { return !drawn.empty() || !arrays.empty(); }
};

// How many boxes of a Haar-like atom stand in a row.
enum class Lobes : std::uint8_t { two, three };

inline constexpr std::size_t max_box_axes = 4, max_box_corners = std::size_t{1} << max_box_axes;

// A weighted box. Its cells may lie `dilation` apart.
struct Kernel {
  std::vector<std::int64_t> extent;  // along each axis, before dilation
  std::vector<Corner> taps;  // cells counted from the first of the kernel, before dilation
  std::vector<std::uint64_t> cumulative{};  // probabilities of dilations 1, 2, ...; empty: always `dilation`
  std::int64_t dilation = 1;
};

// How the atoms of a component move.
struct Pool {
  std::vector<Op> ops{};  // drawn equally often; empty: atoms do not move
  std::vector<std::int64_t> windows{};  // per axis, the positions of a window; 0: drawn, -1: atoms stay where they are
  std::vector<std::uint64_t> sizes{};  // cumulated weights of drawn windows of 2, 3, ... positions

  bool drawn() const { return std::find(windows.begin(), windows.end(), 0) != windows.end(); }
};

struct Component {
  enum class Kind { axis, finite, sparse, patch, haar, pair, kernel, variance } kind;
  std::vector<std::uint32_t>
      first_cells{};  // of the planes that its atoms look at, one per view (variance: then of their squares)
  std::vector<std::uint64_t> cumulative{};  // finite: of the atoms (empty: uniform); sparse: of the number of nonzeros
  std::vector<std::uint64_t> guide{};  // sparse: of the features; empty: all are equally likely
  AtomList atoms{};  // finite
  std::vector<PatchAxis> axes{};  // patch, haar, pair, kernel
  Weights weights{};  // patch
  std::vector<Lobes> lobes{};  // haar
  std::vector<Kernel> kernels{};  // kernel
  bool random_signs = false;  // kernel: the sign of each tap is drawn
  std::size_t rivals = 0;  // kernel: of each that competes
  Pool pool{};
  std::size_t box_corners = 0;  // patch, pair: the most corners of a box, if it is an interval along each axis; else 0

  bool pooled() const { return !pool.ops.empty(); }
  bool uniform() const { return kind == Kind::axis || (kind == Kind::finite && cumulative.empty()); }
};

class Dictionary {
 public:
  Dictionary(std::vector<std::int64_t> shape, bool direct, std::vector<View> views = {View{}});

  // Says that neighbours along an axis are no hint at missing values, as those of channels are not.
  void set_channel_axis(std::uint32_t axis);

  // Says which views the components added from now on look at; at first they look at the first one.
  void set_views(std::vector<std::uint32_t> numbers);

  // Says how the atoms of components added from now on move; at first they do not.
  void set_pool(Pool pool);

  void add_axis();
  void add_finite(AtomList atoms, std::vector<std::uint64_t> cumulative);
  void add_sparse(std::vector<std::uint64_t> cumulative);

  // From now on sparse sums draw their features with these cumulative probabilities, one by one, and again where one is there
  // already. Each must be positive.
  void guide(std::vector<std::uint64_t> features);

  // What patch, haar and pair share, with an entry per axis. `sizes` are the probabilities of min .. max along each axis; empty: all
  // are equally likely.
  struct Extent {
    std::vector<std::int64_t> min_size, max_size;
    std::vector<std::vector<std::uint64_t>> sizes{};
  };

  // Adds boxes, along axes that are not contiguous of any indices, or of sets of those that a relation of the axis relates. With
  // weights there are no prefix sums.
  void add_patch(const Extent& extent, const std::vector<Boundary>& boundary, const std::vector<bool>& contiguous,
                 Weights weights = {}, const std::vector<std::pair<std::size_t, Relation>>& along = {});

  // Adds connected sets of features, or of the positions of one channel. They have `min_size` .. `max_size` members, with these
  // cumulative probabilities (empty: all are equally likely); neighbourhoods have at most `max_size`.
  void add_related(Relation relation, std::int64_t min_size, std::int64_t max_size, std::vector<std::uint64_t> sizes,
                   Weights weights = {});

  // Adds boxes side by side within the data, each of the sizes of `extent`, with weights 1, -1 or 1, -2, 1 along a lobed axis.
  void add_haar(const Extent& extent, const std::vector<bool>& lobed, std::vector<Lobes> lobes);

  // Adds two equal boxes within the data, the second up to `reach` away and with weight -1.
  void add_pair(const Extent& extent, const std::vector<std::int64_t>& reach);

  // Adds weighted boxes within the data, drawn equally often. With `random_signs` the sign of each weight is drawn anew for each
  // atom. Atoms that compete have so many rivals.
  void add_kernels(std::vector<Kernel> kernels, bool random_signs, std::size_t rivals);

  // Adds variances of boxes within the data. The views are those looked at, then the squares of each.
  void add_variance(const Extent& extent);

  // Sets the probabilities of components 0..c as 64-bit fractions. They are needed when there is more than one component.
  void set_cumulative(std::vector<std::uint64_t> cumulative);

  // Says how many atoms are drawn for a whole tree, whose nodes choose among them; 0: nodes draw their own.
  void set_subset(std::size_t atoms) { subset_ = atoms; }
  std::size_t subset() const { return subset_; }

  // Says from what missing values are filled in.
  void set_course(Course course);

  // Throws std::invalid_argument if something is missing.
  void check_complete() const;

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t features() const { return features_; }
  const std::vector<Component>& components() const { return components_; }
  const std::vector<std::uint64_t>& cumulative() const { return cumulative_; }
  bool direct() const { return direct_; }
  // What stands in a row for these atoms.
  RowLayout layout() const;
  // Whether some atoms have operations, and whether some of these need biases.
  bool has_operations() const;
  bool has_biases() const;

 private:
  bool competes() const;
  std::size_t plain_cells() const { return plain_.size() * static_cast<std::size_t>(features_); }
  template <class T>
  std::vector<T> all_axes(T value) const {
    return std::vector<T>(shape_.size(), value);
  }
  // Returns the mask of the prefixed axes.
  std::uint32_t add_axes(Component& component, const Extent& extent, const std::vector<Boundary>& boundary,
                         const std::vector<bool>& contiguous, bool summed = true);
  void add(Component component, std::uint32_t prefixed_axes);
  void add_pooled(Component component, std::uint32_t prefixed_axes);

  std::vector<std::int64_t> shape_;
  bool direct_;
  std::int64_t features_ = 1;
  std::vector<View> views_;
  std::vector<std::uint32_t> current_{0};  // numbers of the views that components look at
  Pool pool_;
  std::vector<Component> components_;
  std::vector<std::uint64_t> cumulative_;
  std::vector<Plane> plain_, pooled_;
  std::uint32_t ordered_axes_ = 0;  // along which atoms are intervals, stand side by side, or move
  std::uint32_t channel_axes_ = 0;  // which have no order all the same
  std::size_t subset_ = 0;
  Course course_;
};

}  // namespace morf
