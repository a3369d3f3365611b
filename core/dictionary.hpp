// A dictionary, resolved for a data shape.
//
// An atom is a short list of weighted *cells* of a row. A row of the table is a sequence of *views* of the sample, each
// with one cell a feature: the values of a source (see channels.hpp), or their prefix sums along some axes. In a view with
// prefix sums along an axis, the sum over an interval is the difference of two cells, so a patch costs 2^k cells whatever its
// size. One more cell, always zero, ends the row. A *direct* dictionary has no prefix sums: its cells are features, which is
// what float64 tables and `sample` need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "channels.hpp"
#include "form.hpp"

namespace morf {

inline constexpr std::size_t max_rank = 32;  // a view is a mask of axes

// A cell with a small weight.
struct Corner {
  std::uint32_t cell;
  std::int32_t weight;
};

struct AtomList {
  std::vector<std::uint32_t> begin{0};  // atom i owns terms begin[i] .. begin[i + 1] - 1
  std::vector<std::uint32_t> cell;
  std::vector<double> weight;
  std::vector<Form> form;  // an atom; empty where all are linear

  std::size_t size() const { return begin.size() - 1; }
  void clear() {
    begin.resize(1);
    cell.clear();
    weight.clear();
    form.clear();
  }
  void add_term(std::uint32_t c, double w) {
    cell.push_back(c);
    weight.push_back(w);
  }
  void add_corners(const Corner* corners, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t) add_term(corners[t].cell, corners[t].weight);
  }
  void close_atom() { begin.push_back(static_cast<std::uint32_t>(cell.size())); }

  // Keeps of each atom the terms that are its own, and have weight: rivals may need more.
  void drop_rivals() {
    if (form.empty()) return;
    std::size_t kept = 0, from = 0;
    for (std::size_t atom = 0; atom < size(); ++atom) {
      const std::size_t end = begin[atom + 1], own = form[atom].own(end - from);
      for (std::size_t t = from; t < from + own; ++t)
        if (weight[t] != 0.0) cell[kept] = cell[t], weight[kept++] = weight[t];
      begin[atom + 1] = static_cast<std::uint32_t>(kept);
      from = end;
    }
    cell.resize(kept);
    weight.resize(kept);
  }
};

enum class Boundary : std::uint8_t { zero, inside, wrap };

struct PatchAxis {
  std::int64_t length;
  std::int64_t min_size;
  std::int64_t max_size;
  Boundary boundary;
  bool contiguous;
  std::int64_t stride;  // distance in cells between neighbours along this axis
  bool prefixed;        // the component's view holds prefix sums along this axis
  std::vector<std::uint64_t> cumulative{};  // probabilities of the sizes; empty: all alike
  bool lobed = false;                       // haar: rectangles may stand side by side along this axis
  std::int64_t reach = 0;                   // pair: how far the second rectangle may lie
  std::int64_t window = -1;                 // see Pool
  bool moves = false;                       // in a pooled view
};

// How the rectangles of a Haar-like atom stand: two or three in a row, or four in a square.
enum class Lobes : std::uint8_t { two, three, square };

inline constexpr std::size_t max_box_axes = 4, max_box_corners = std::size_t{1} << max_box_axes;

// A weighted patch. Cells may lie `dilation` apart.
struct Kernel {
  std::vector<std::int64_t> extent;         // along each axis, before dilation
  std::vector<Corner> taps;                 // cells counted from the first of the kernel, before dilation
  std::vector<std::uint64_t> cumulative{};  // probabilities of dilations 1, 2, ...; empty: `dilation`
  std::int64_t dilation = 1;
};

struct Component {
  enum class Kind { axis, finite, sparse, patch, haar, pair, kernel, variance } kind;
  std::vector<std::uint32_t> first_cells{}; // of the views its atoms look at, one a source (variance: then of their squares)
  std::vector<std::uint64_t> cumulative{};  // finite: of the atoms (empty: uniform); sparse: of the number of nonzeros
  std::vector<std::uint64_t> guide{};       // sparse: of the features; empty: all alike
  AtomList atoms{};                         // finite
  std::vector<PatchAxis> axes{};            // patch, haar, pair, kernel
  std::vector<Lobes> lobes{};               // haar
  std::vector<Kernel> kernels{};            // kernel
  bool random_signs = false;                // kernel: each tap's sign is drawn
  std::size_t rivals = 0;                   // kernel: of each that competes
  Pool pool{};
  std::size_t box_corners = 0;              // patch, pair: at most so many a rectangle, if an interval along each axis; else 0

  bool pooled() const { return !pool.ops.empty(); }
  bool uniform() const { return kind == Kind::axis || (kind == Kind::finite && cumulative.empty()); }
};

class Dictionary {
 public:
  Dictionary(std::vector<std::int64_t> shape, bool direct, std::vector<Source> sources = {Source{}})
      : shape_(std::move(shape)), direct_(direct), sources_(std::move(sources)) {
    if (sources_.empty()) throw std::invalid_argument("a dictionary needs a source");
    features_ = 1;
    if (shape_.size() > max_rank) throw std::invalid_argument("more than 32 axes");
    for (const std::int64_t length : shape_) {
      if (length < 1) throw std::invalid_argument("every axis needs at least one element");
      if (length > (std::int64_t{1} << 29)) throw std::invalid_argument("more than 2^29 features");
      features_ *= length;
      if (features_ > (std::int64_t{1} << 29)) throw std::invalid_argument("more than 2^29 features");
    }
  }

  // Of the components added from now on; at first the first source.
  void set_sources(std::vector<std::uint32_t> numbers) {
    if (numbers.empty()) throw std::invalid_argument("a component needs a source");
    for (const std::uint32_t number : numbers)
      if (number >= sources_.size()) throw std::invalid_argument("no such source");
    current_ = std::move(numbers);
  }

  // Of the components added from now on; at first none is pooled.
  void set_pool(Pool pool) {
    if (!pool.ops.empty()) {
      std::size_t axes = 0;
      if (pool.windows.size() != shape_.size()) throw std::invalid_argument("windows need one entry an axis");
      for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
        const std::int64_t window = pool.windows[axis];
        axes += window >= 0;
        if (window < -1 || window > shape_[axis] || (window == 0 && pool.sizes.size() + 1 < static_cast<std::size_t>(shape_[axis])))
          throw std::invalid_argument("windows do not fit their axes");
      }
      if (axes < 1 || axes > 2) throw std::invalid_argument("atoms are pooled along one axis or two");
      if (pool.drawn() && (!std::is_sorted(pool.sizes.begin(), pool.sizes.end()) || (!pool.sizes.empty() && pool.sizes[0] == 0)))
        throw std::invalid_argument("weights of windows do not rise");
      for (const Op op : pool.ops)
        if (op == Op::none || op == Op::variance) throw std::invalid_argument("not a way to pool");
    }
    pool_ = std::move(pool);
  }

  void add_axis() { add(Component{.kind = Component::Kind::axis}, 0); }

  void add_finite(AtomList atoms, std::vector<std::uint64_t> cumulative) {
    if (atoms.size() == 0) throw std::invalid_argument("a finite dictionary needs at least one atom");
    for (const std::uint32_t cell : atoms.cell)
      if (cell >= features_) throw std::invalid_argument("an atom names a feature that does not exist");
    if (!cumulative.empty() && (cumulative.size() != atoms.size() || cumulative.back() != ~std::uint64_t{0}))
      throw std::invalid_argument("cumulative probabilities do not fit the atoms");
    add(Component{.kind = Component::Kind::finite, .cumulative = std::move(cumulative), .atoms = std::move(atoms)}, 0);
  }

  void add_sparse(std::vector<std::uint64_t> cumulative) {
    if (cumulative.empty() || cumulative.size() > static_cast<std::size_t>(features_) ||
        cumulative.back() != ~std::uint64_t{0})
      throw std::invalid_argument("cumulative probabilities of the number of nonzeros do not fit the features");
    add(Component{.kind = Component::Kind::sparse, .cumulative = std::move(cumulative)}, 0);
  }

  // From now on sparse sums draw their features with these cumulative probabilities, one by one, and again where one is there
  // already. Each must be positive.
  void guide(std::vector<std::uint64_t> features) {
    if (features.size() != static_cast<std::size_t>(features_) || features.back() != ~std::uint64_t{0} || features.front() == 0)
      throw std::invalid_argument("cumulative probabilities do not fit the features");
    for (std::size_t i = 1; i < features.size(); ++i)
      if (features[i] <= features[i - 1]) throw std::invalid_argument("a feature has no probability");
    for (Component& component : components_)
      if (component.kind == Component::Kind::sparse) component.guide = features;
  }

  // What patch, haar and pair share, an entry an axis. `sizes`: probabilities of min .. max along each axis; empty: all alike.
  struct Extent {
    std::vector<std::int64_t> min_size, max_size;
    std::vector<std::vector<std::uint64_t>> sizes{};
  };

  void add_patch(const Extent& extent, const std::vector<Boundary>& boundary, const std::vector<bool>& contiguous) {
    Component component{.kind = Component::Kind::patch};
    const std::uint32_t prefixed_axes = add_axes(component, extent, boundary, contiguous);
    component.box_corners = pool_.ops.empty() ? box_corners(component) : 0;
    add(std::move(component), prefixed_axes);
  }

  // Rectangles side by side within the data, of the sizes of `extent` each, with weights 1, -1 or 1, -2, 1 along a lobed axis.
  void add_haar(const Extent& extent, const std::vector<bool>& lobed, std::vector<Lobes> lobes) {
    Component component{.kind = Component::Kind::haar, .lobes = std::move(lobes)};
    const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
    if (lobed.size() != shape_.size()) throw std::invalid_argument("lobed needs one entry an axis");
    const auto count = static_cast<std::size_t>(std::count(lobed.begin(), lobed.end(), true));
    for (std::size_t axis = 0; axis < lobed.size(); ++axis) component.axes[axis].lobed = lobed[axis];
    if (component.lobes.empty() || count == 0) throw std::invalid_argument("a Haar-like atom needs lobes and an axis for them");
    for (const Lobes kind : component.lobes) {
      if (kind == Lobes::square && count < 2) throw std::invalid_argument("four rectangles need two axes");
      for (const PatchAxis& axis : component.axes)
        if (axis.lobed && axis.min_size * (kind == Lobes::three ? 3 : 2) > axis.length)
          throw std::invalid_argument("rectangles side by side do not fit the axis");
    }
    add(std::move(component), prefixed_axes);
  }

  // Two equal rectangles within the data, the second up to `reach` away and with weight -1.
  void add_pair(const Extent& extent, const std::vector<std::int64_t>& reach) {
    Component component{.kind = Component::Kind::pair};
    const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
    if (reach.size() != shape_.size()) throw std::invalid_argument("reach needs one entry an axis");
    for (std::size_t axis = 0; axis < reach.size(); ++axis) {
      if (reach[axis] < 0 || reach[axis] >= shape_[axis]) throw std::invalid_argument("reach must be 0 to length - 1");
      component.axes[axis].reach = reach[axis];
    }
    component.box_corners = pool_.ops.empty() ? box_corners(component) : 0;
    add(std::move(component), prefixed_axes);
  }

  // Weighted patches within the data, drawn equally often. `random_signs`: the sign of each weight is drawn anew for each atom.
  // Those that compete have so many rivals.
  void add_kernels(std::vector<Kernel> kernels, bool random_signs, std::size_t rivals) {
    const std::vector<std::int64_t> ones = all_axes(std::int64_t{1});
    Component component{.kind = Component::Kind::kernel, .kernels = std::move(kernels), .random_signs = random_signs, .rivals = rivals};
    add_axes(component, {ones, ones}, all_axes(Boundary::inside), all_axes(true));
    if (component.kernels.empty()) throw std::invalid_argument("kernels are missing");
    for (const Kernel& kernel : component.kernels) {
      if (kernel.extent.size() != shape_.size() || kernel.taps.empty())
        throw std::invalid_argument("a kernel needs an extent along each axis, and weights");
      if (!kernel.cumulative.empty() && kernel.cumulative.back() != ~std::uint64_t{0})
        throw std::invalid_argument("cumulative probabilities of dilations must end at one");
      const auto most = kernel.cumulative.empty() ? kernel.dilation : static_cast<std::int64_t>(kernel.cumulative.size());
      std::int64_t reach = 0;  // the last cell
      for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
        if (kernel.extent[axis] < 1 || kernel.extent[axis] > shape_[axis] || most < 1 || most > (std::int64_t{1} << 29) ||
            (kernel.extent[axis] - 1) * most >= shape_[axis])
          throw std::invalid_argument("a kernel does not fit the axis");
        reach += (kernel.extent[axis] - 1) * component.axes[axis].stride;
      }
      for (const Corner& tap : kernel.taps)
        if (tap.cell > reach) throw std::invalid_argument("a kernel has weights outside of its extent");
      const Kernel& first = component.kernels.front();
      if (competes() && (kernel.extent != first.extent || kernel.taps.size() != first.taps.size()))
        throw std::invalid_argument("kernels that compete have one shape");
    }
    if (competes() && (rivals < 1 || (!random_signs && rivals >= component.kernels.size())))
      throw std::invalid_argument("kernels that compete need rivals");
    add(std::move(component), 0);
  }

  // Variances of rectangles within the data; the sources are those looked at, then the squares of each.
  void add_variance(const Extent& extent) {
    Component component{.kind = Component::Kind::variance};
    const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
    if (current_.size() % 2 != 0) throw std::invalid_argument("a variance needs sources and their squares");
    add(std::move(component), prefixed_axes);
  }

  // Probabilities of components 0..c as 64-bit fractions; needed when there is more than one component.
  void set_cumulative(std::vector<std::uint64_t> cumulative) {
    if (cumulative.empty() || cumulative.size() != components_.size() || cumulative.back() != ~std::uint64_t{0})
      throw std::invalid_argument("cumulative probabilities do not fit the components");
    cumulative_ = std::move(cumulative);
  }

  // How many atoms are drawn for a whole tree, to choose among; 0: nodes draw their own.
  void set_subset(std::size_t atoms) { subset_ = atoms; }
  std::size_t subset() const { return subset_; }

  void check_complete() const {
    if (components_.empty()) throw std::invalid_argument("a dictionary needs at least one component");
    if (components_.size() > 1 && cumulative_.empty())
      throw std::invalid_argument("a dictionary of several components needs their probabilities");
  }

  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t features() const { return features_; }
  bool direct() const { return direct_; }
  const std::vector<Component>& components() const { return components_; }
  const std::vector<std::uint64_t>& cumulative() const { return cumulative_; }
  const std::vector<std::uint32_t>& views() const { return views_; }  // bit mask of prefixed axes, a view each
  const std::vector<Source>& view_sources() const { return view_sources_; }           // of each view
  const std::vector<PooledView>& pooled_views() const { return pooled_views_; }
  // Whether atoms come with forms, and whether these need biases.
  bool has_forms() const {
    return std::any_of(components_.begin(), components_.end(),
                       [](const Component& c) { return c.pooled() || c.kind == Component::Kind::variance; });
  }
  bool has_biases() const {
    return std::any_of(components_.begin(), components_.end(), [](const Component& c) {
      return std::find(c.pool.ops.begin(), c.pool.ops.end(), Op::ppv) != c.pool.ops.end();
    });
  }
  std::size_t cells() const { return view_cells() + pooled_cells_ + 1; }
  std::uint32_t zero_cell() const { return static_cast<std::uint32_t>(cells() - 1); }

 private:
  bool competes() const {
    return std::any_of(pool_.ops.begin(), pool_.ops.end(), [](Op op) { return op == Op::win || op == Op::lose; });
  }

  std::size_t view_cells() const { return views_.size() * static_cast<std::size_t>(features_); }

  void check_cells() const {
    if (cells() > (std::size_t{1} << 31)) throw std::invalid_argument("too many cells: fewer features, channels or kinds of patches");
  }

  static std::size_t box_corners(const Component& component) {
    std::size_t corners = 1;
    bool box = true;
    for (const PatchAxis& axis : component.axes) {
      if (axis.prefixed && corners <= max_box_corners) corners *= 2;
      box &= axis.max_size == 1 || (axis.prefixed && axis.boundary != Boundary::wrap);
    }
    return box && corners <= max_box_corners ? corners : 0;
  }

  template <class T>
  std::vector<T> all_axes(T value) const {
    return std::vector<T>(shape_.size(), value);
  }

  // Returns the mask of the prefixed ones.
  std::uint32_t add_axes(Component& component, const Extent& extent, const std::vector<Boundary>& boundary,
                         const std::vector<bool>& contiguous) const {
    const std::size_t rank = shape_.size();
    if (extent.min_size.size() != rank || extent.max_size.size() != rank || boundary.size() != rank || contiguous.size() != rank ||
        (!extent.sizes.empty() && extent.sizes.size() != rank))
      throw std::invalid_argument("patch parameters need one entry an axis");
    component.axes.resize(rank);
    std::int64_t stride = 1;
    std::uint32_t prefixed_axes = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const std::int64_t low = extent.min_size[axis], high = extent.max_size[axis];
      if (low < 1 || high < low || high > shape_[axis])
        throw std::invalid_argument("patch sizes must satisfy 1 <= min <= max <= length");
      // An axis along which patches are one wide needs no prefix sums.
      const bool prefixed = !direct_ && contiguous[axis] && high > 1;
      if (prefixed) prefixed_axes |= 1u << axis;
      component.axes[axis] = {shape_[axis], low, high, boundary[axis], contiguous[axis], stride, prefixed};
      if (!extent.sizes.empty() && !extent.sizes[axis].empty()) {
        if (extent.sizes[axis].size() != static_cast<std::size_t>(high - low + 1) || extent.sizes[axis].back() != ~std::uint64_t{0})
          throw std::invalid_argument("probabilities of sizes do not fit them");
        component.axes[axis].cumulative = extent.sizes[axis];
      }
      stride *= shape_[axis];
    }
    return prefixed_axes;
  }

  void add(Component component, std::uint32_t prefixed_axes) {
    if (current_.size() > 1 && component.uniform()) throw std::invalid_argument("such a component looks at one source");
    if (component.kind != Component::Kind::kernel && competes()) throw std::invalid_argument("only kernels compete");
    if (!pool_.ops.empty()) {
      if (component.kind != Component::Kind::patch && component.kind != Component::Kind::haar &&
          component.kind != Component::Kind::pair && component.kind != Component::Kind::kernel)
        throw std::invalid_argument("such atoms cannot be pooled");
      component.pool = pool_;
      for (std::size_t axis = 0; axis < component.axes.size(); ++axis) component.axes[axis].window = pool_.windows[axis];
      if (!direct_) return add_pooled(std::move(component), prefixed_axes);
    }
    for (const std::uint32_t number : current_) {
      const Source& source = sources_[number];
      std::size_t view = 0;
      while (view < views_.size() && !(views_[view] == prefixed_axes && view_sources_[view] == source)) ++view;
      if (view == views_.size()) {
        views_.push_back(prefixed_axes);
        view_sources_.push_back(source);
        check_cells();
        for (Component& c : components_)  // pooled views stand behind
          if (c.pooled() && !direct_)
            for (std::uint32_t& cell : c.first_cells) cell += static_cast<std::uint32_t>(features_);
      }
      component.first_cells.push_back(static_cast<std::uint32_t>(view * static_cast<std::size_t>(features_)));
    }
    components_.push_back(std::move(component));
  }

  void add_pooled(Component component, std::uint32_t prefixed_axes) {
    PooledView view{prefixed_axes, 0, {}};
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      PatchAxis& a = component.axes[axis];
      if (a.window >= 0 && !a.contiguous) throw std::invalid_argument("no windows along an axis without order");
      if (a.contiguous && a.boundary == Boundary::wrap) view.circular |= 1u << axis;
    }
    const PooledLayout layout(shape_, view);
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      component.axes[axis].stride = layout.stride[axis];
      component.axes[axis].moves = true;
    }
    for (const std::uint32_t number : current_) {
      view.source = sources_[number];
      std::size_t begin = view_cells();
      const auto found = std::find(pooled_views_.begin(), pooled_views_.end(), view);
      for (auto before = pooled_views_.begin(); before != found; ++before) begin += PooledLayout(shape_, *before).cells();
      if (found == pooled_views_.end()) {
        pooled_views_.push_back(view);
        pooled_cells_ += layout.cells();
        check_cells();
      }
      component.first_cells.push_back(static_cast<std::uint32_t>(begin + layout.lead));
    }
    components_.push_back(std::move(component));
  }

  std::vector<std::int64_t> shape_;
  bool direct_;
  std::int64_t features_;
  std::vector<Source> sources_;
  std::vector<std::uint32_t> current_{0};  // numbers of the sources that components look at
  Pool pool_;
  std::vector<Component> components_;
  std::vector<std::uint64_t> cumulative_;
  std::vector<std::uint32_t> views_;
  std::vector<Source> view_sources_;
  std::vector<PooledView> pooled_views_;
  std::size_t pooled_cells_ = 0;
  std::size_t subset_ = 0;
};

}  // namespace morf
