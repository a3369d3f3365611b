#include "atoms/dictionary.hpp"

#include <stdexcept>
#include <utility>

namespace morf {
namespace {

// Checks the weights of patches, and finds where the arrays of each combination of sizes begin.
void place_weights(Weights& weights, const std::vector<PatchAxis>& axes) {
  const bool drawn = !weights.drawn.empty();
  if (drawn != weights.arrays.empty() || (!drawn && !weights.cumulative.empty()))
    throw std::invalid_argument("weights are drawn or listed");
  if (!weights.cumulative.empty() &&
      (weights.cumulative.size() != weights.drawn.size() || weights.cumulative.back() != ~std::uint64_t{0}))
    throw std::invalid_argument("probabilities of weights do not fit them");
  if (drawn) return;
  std::vector<std::int64_t> size;
  for (const PatchAxis& axis : axes) size.push_back(axis.min_size);
  std::size_t end = 0;
  for (const std::uint32_t count : weights.arrays) {
    std::size_t cells = count;
    for (const std::int64_t along : size) cells *= static_cast<std::size_t>(along);
    weights.first.push_back(end);
    end += cells;
    if (count == 0 || end > weights.listed.size()) throw std::invalid_argument("listed weights do not fit the sizes");
    std::size_t axis = axes.size();  // the next combination
    while (axis-- > 0 && ++size[axis] > axes[axis].max_size) size[axis] = axes[axis].min_size;
    if (axis == ~std::size_t{0}) break;
  }
  if (weights.first.size() != weights.arrays.size() || end != weights.listed.size() ||
      !std::equal(size.begin(), size.end(), axes.begin(), [](std::int64_t s, const PatchAxis& a) { return s == a.min_size; }))
    throw std::invalid_argument("listed weights do not fit the sizes");
}

// The most corners of a box of the component; 0 if boxes are not intervals along each axis, or have too many.
std::size_t box_corners(const Component& component) {
  std::size_t corners = 1;
  bool box = true;
  for (const PatchAxis& axis : component.axes) {
    if (axis.prefixed && corners <= max_box_corners) corners *= 2;
    box &= axis.max_size == 1 || (axis.prefixed && axis.boundary != Boundary::wrap);
  }
  return box && corners <= max_box_corners ? corners : 0;
}

}  // namespace

Dictionary::Dictionary(std::vector<std::int64_t> shape, bool direct, std::vector<View> views)
    : shape_(std::move(shape)), direct_(direct), views_(std::move(views)) {
  if (views_.empty()) throw std::invalid_argument("a dictionary needs a view");
  if (shape_.size() > max_rank) throw std::invalid_argument("more than 32 axes");
  for (const std::int64_t length : shape_) {
    if (length < 1) throw std::invalid_argument("every axis needs at least one element");
    if (length > (std::int64_t{1} << 29)) throw std::invalid_argument("more than 2^29 features");
    features_ *= length;
    if (features_ > (std::int64_t{1} << 29)) throw std::invalid_argument("more than 2^29 features");
  }
}

void Dictionary::set_channel_axis(std::uint32_t axis) {
  if (axis >= shape_.size()) throw std::invalid_argument("no such axis");
  channel_axes_ |= 1u << axis;
}

void Dictionary::set_views(std::vector<std::uint32_t> numbers) {
  if (numbers.empty()) throw std::invalid_argument("a component needs a view");
  for (const std::uint32_t number : numbers)
    if (number >= views_.size()) throw std::invalid_argument("no such view");
  current_ = std::move(numbers);
}

void Dictionary::set_pool(Pool pool) {
  if (!pool.ops.empty()) {
    std::size_t axes = 0;
    if (pool.windows.size() != shape_.size()) throw std::invalid_argument("windows need one entry per axis");
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

void Dictionary::add_axis() { add(Component{.kind = Component::Kind::axis}, 0); }

void Dictionary::add_finite(AtomList atoms, std::vector<std::uint64_t> cumulative) {
  if (atoms.size() == 0) throw std::invalid_argument("a finite dictionary needs at least one atom");
  for (const std::uint32_t cell : atoms.cell)
    if (cell >= features_) throw std::invalid_argument("an atom names a feature that does not exist");
  if (!cumulative.empty() && (cumulative.size() != atoms.size() || cumulative.back() != ~std::uint64_t{0}))
    throw std::invalid_argument("cumulative probabilities do not fit the atoms");
  add(Component{.kind = Component::Kind::finite, .cumulative = std::move(cumulative), .atoms = std::move(atoms)}, 0);
}

void Dictionary::add_sparse(std::vector<std::uint64_t> cumulative) {
  if (cumulative.empty() || cumulative.size() > static_cast<std::size_t>(features_) || cumulative.back() != ~std::uint64_t{0})
    throw std::invalid_argument("cumulative probabilities of the number of nonzeros do not fit the features");
  add(Component{.kind = Component::Kind::sparse, .cumulative = std::move(cumulative)}, 0);
}

void Dictionary::guide(std::vector<std::uint64_t> features) {
  if (features.size() != static_cast<std::size_t>(features_) || features.back() != ~std::uint64_t{0} || features.front() == 0)
    throw std::invalid_argument("cumulative probabilities do not fit the features");
  for (std::size_t i = 1; i < features.size(); ++i)
    if (features[i] <= features[i - 1]) throw std::invalid_argument("a feature has no probability");
  for (Component& component : components_)
    if (component.kind == Component::Kind::sparse) component.guide = features;
}

void Dictionary::add_patch(const Extent& extent, const std::vector<Boundary>& boundary, const std::vector<bool>& contiguous,
                           Weights weights, const std::vector<std::pair<std::size_t, Relation>>& along) {
  Component component{.kind = Component::Kind::patch, .weights = std::move(weights)};
  const bool weighted = component.weights.any();
  const std::uint32_t prefixed_axes = add_axes(component, extent, boundary, contiguous, !weighted);
  for (const auto& [axis, relation] : along) {
    if (axis >= shape_.size() || contiguous[axis] || static_cast<std::int64_t>(relation.size()) != shape_[axis])
      throw std::invalid_argument("a relation does not fit its axis");
    component.axes[axis].relation = std::make_shared<const Relation>(relation);
  }
  if (weighted) place_weights(component.weights, component.axes);
  component.box_corners = pool_.ops.empty() && !weighted ? box_corners(component) : 0;
  add(std::move(component), prefixed_axes);
}

void Dictionary::add_related(Relation relation, std::int64_t min_size, std::int64_t max_size, std::vector<std::uint64_t> sizes,
                             Weights weights) {
  if (!pool_.ops.empty()) throw std::invalid_argument("sets of features do not move");
  std::int64_t channels = 1, stride = 1;
  for (std::size_t axis = shape_.size(); axis-- > 0 && channel_axes_ != 0;) {
    if (channel_axes_ >> axis & 1u) channels = shape_[axis];
    if (channel_axes_ >> axis & 1u) break;
    stride *= shape_[axis];
  }
  const auto nodes = static_cast<std::int64_t>(relation.size());
  if (nodes * channels != features_) throw std::invalid_argument("a relation needs one index per position");
  if (min_size < 1 || max_size < min_size || max_size > nodes) throw std::invalid_argument("sizes do not fit the relation");
  if (!sizes.empty() && (sizes.size() != static_cast<std::size_t>(max_size - min_size + 1) || sizes.back() != ~std::uint64_t{0}))
    throw std::invalid_argument("probabilities of sizes do not fit them");
  Component component{.kind = Component::Kind::patch, .weights = std::move(weights)};
  if (channels > 1) component.axes.push_back({channels, 1, 1, Boundary::inside, true, stride, false});
  component.axes.push_back({nodes, min_size, max_size, Boundary::inside, false, 1, false, std::move(sizes)});
  if (channels > 1) {
    relation.run = static_cast<std::uint32_t>(stride);
    relation.skip = static_cast<std::uint32_t>((channels - 1) * stride);
  }
  component.axes.back().relation = std::make_shared<const Relation>(std::move(relation));
  if (component.weights.any()) place_weights(component.weights, component.axes);
  add(std::move(component), 0);
}

void Dictionary::add_haar(const Extent& extent, const std::vector<bool>& lobed, std::vector<Lobes> lobes) {
  Component component{.kind = Component::Kind::haar, .lobes = std::move(lobes)};
  const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
  if (lobed.size() != shape_.size()) throw std::invalid_argument("lobed needs one entry per axis");
  const bool any = std::find(lobed.begin(), lobed.end(), true) != lobed.end();
  for (std::size_t axis = 0; axis < lobed.size(); ++axis) {
    component.axes[axis].lobed = lobed[axis];
    if (lobed[axis]) ordered_axes_ |= 1u << axis;
  }
  if (component.lobes.empty() || !any) throw std::invalid_argument("a Haar-like atom needs lobes and an axis for them");
  for (const Lobes kind : component.lobes)
    for (const PatchAxis& axis : component.axes)
      if (axis.lobed && axis.min_size * (kind == Lobes::three ? 3 : 2) > axis.length)
        throw std::invalid_argument("boxes side by side do not fit the axis");
  add(std::move(component), prefixed_axes);
}

void Dictionary::add_pair(const Extent& extent, const std::vector<std::int64_t>& reach) {
  Component component{.kind = Component::Kind::pair};
  const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
  if (reach.size() != shape_.size()) throw std::invalid_argument("reach needs one entry per axis");
  for (std::size_t axis = 0; axis < reach.size(); ++axis) {
    if (reach[axis] < 0 || reach[axis] >= shape_[axis]) throw std::invalid_argument("reach must be 0 to length - 1");
    component.axes[axis].reach = reach[axis];
    if (reach[axis] > 0) ordered_axes_ |= 1u << axis;
  }
  component.box_corners = pool_.ops.empty() ? box_corners(component) : 0;
  add(std::move(component), prefixed_axes);
}

void Dictionary::add_kernels(std::vector<Kernel> kernels, bool random_signs, std::size_t rivals) {
  const std::vector<std::int64_t> ones = all_axes(std::int64_t{1});
  Component component{
      .kind = Component::Kind::kernel, .kernels = std::move(kernels), .random_signs = random_signs, .rivals = rivals};
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
      if (kernel.extent[axis] > 1) ordered_axes_ |= 1u << axis;
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

void Dictionary::add_variance(const Extent& extent) {
  Component component{.kind = Component::Kind::variance};
  const std::uint32_t prefixed_axes = add_axes(component, extent, all_axes(Boundary::inside), all_axes(true));
  if (current_.size() % 2 != 0) throw std::invalid_argument("a variance needs views and their squares");
  add(std::move(component), prefixed_axes);
}

void Dictionary::set_cumulative(std::vector<std::uint64_t> cumulative) {
  if (cumulative.empty() || cumulative.size() != components_.size() || cumulative.back() != ~std::uint64_t{0})
    throw std::invalid_argument("cumulative probabilities do not fit the components");
  cumulative_ = std::move(cumulative);
}

void Dictionary::check_complete() const {
  if (components_.empty()) throw std::invalid_argument("a dictionary needs at least one component");
  if (components_.size() > 1 && cumulative_.empty())
    throw std::invalid_argument("a dictionary of several components needs their probabilities");
}

RowLayout Dictionary::layout() const {
  std::vector<Plane> planes = plain_;
  planes.insert(planes.end(), pooled_.begin(), pooled_.end());
  return RowLayout(shape_, std::move(planes), ordered_axes_ & ~channel_axes_, course_);
}

void Dictionary::set_course(Course course) {
  course_ = std::move(course);
  layout();  // throws if it does not fit
}

bool Dictionary::has_operations() const {
  return std::any_of(components_.begin(), components_.end(),
                     [](const Component& c) { return c.pooled() || c.kind == Component::Kind::variance; });
}

bool Dictionary::has_biases() const {
  return std::any_of(components_.begin(), components_.end(), [](const Component& c) {
    return std::find(c.pool.ops.begin(), c.pool.ops.end(), Op::proportion) != c.pool.ops.end();
  });
}

bool Dictionary::competes() const {
  return std::any_of(pool_.ops.begin(), pool_.ops.end(), [](Op op) { return op == Op::win || op == Op::lose; });
}

std::uint32_t Dictionary::add_axes(Component& component, const Extent& extent, const std::vector<Boundary>& boundary,
                                   const std::vector<bool>& contiguous, bool summed) {
  const std::size_t rank = shape_.size();
  if (extent.min_size.size() != rank || extent.max_size.size() != rank || boundary.size() != rank || contiguous.size() != rank ||
      (!extent.sizes.empty() && extent.sizes.size() != rank))
    throw std::invalid_argument("patch parameters need one entry per axis");
  component.axes.resize(rank);
  std::int64_t stride = 1;
  std::uint32_t prefixed_axes = 0;
  for (std::size_t axis = rank; axis-- > 0;) {
    const std::int64_t low = extent.min_size[axis], high = extent.max_size[axis];
    if (low < 1 || high < low || high > shape_[axis])
      throw std::invalid_argument("patch sizes must satisfy 1 <= min <= max <= length");
    // An axis along which patches are one wide needs no prefix sums.
    const bool prefixed = summed && !direct_ && contiguous[axis] && high > 1;
    if (prefixed) prefixed_axes |= 1u << axis;
    if (contiguous[axis] && high > 1) ordered_axes_ |= 1u << axis;
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

void Dictionary::add(Component component, std::uint32_t prefixed_axes) {
  if (current_.size() > 1 && component.uniform()) throw std::invalid_argument("such a component looks at one view");
  if (component.kind != Component::Kind::kernel && competes()) throw std::invalid_argument("only kernels compete");
  if (!pool_.ops.empty()) {
    if (component.kind != Component::Kind::patch && component.kind != Component::Kind::haar &&
        component.kind != Component::Kind::pair && component.kind != Component::Kind::kernel)
      throw std::invalid_argument("such atoms cannot be pooled");
    component.pool = pool_;
    for (std::size_t axis = 0; axis < component.axes.size(); ++axis) {
      component.axes[axis].window = pool_.windows[axis];
      if (pool_.windows[axis] >= 0 && pool_.windows[axis] != 1 && shape_[axis] > 1) ordered_axes_ |= 1u << axis;
    }
    if (!direct_) return add_pooled(std::move(component), prefixed_axes);
  }
  for (const std::uint32_t number : current_) {
    const Plane plane{.view = views_[number], .prefixed_axes = prefixed_axes};
    const auto found = std::find(plain_.begin(), plain_.end(), plane) - plain_.begin();
    if (static_cast<std::size_t>(found) == plain_.size()) {
      plain_.push_back(plane);
      layout();                        // throws if a row has too many cells
      for (Component& c : components_)  // pooled planes stand behind
        if (c.pooled() && !direct_)
          for (std::uint32_t& cell : c.first_cells) cell += static_cast<std::uint32_t>(features_);
    }
    component.first_cells.push_back(
        static_cast<std::uint32_t>(static_cast<std::size_t>(found) * static_cast<std::size_t>(features_)));
  }
  components_.push_back(std::move(component));
}

void Dictionary::add_pooled(Component component, std::uint32_t prefixed_axes) {
  Plane plane{.view = {}, .prefixed_axes = prefixed_axes, .circular_axes = 0, .pooled = true};
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    PatchAxis& a = component.axes[axis];
    if (a.window >= 0 && !a.contiguous) throw std::invalid_argument("no windows along an axis without order");
    if (a.contiguous && a.boundary == Boundary::wrap) plane.circular_axes |= 1u << axis;
  }
  const PlanePlace place(shape_, plane);
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    component.axes[axis].stride = place.stride[axis];
    component.axes[axis].moves = true;
  }
  for (const std::uint32_t number : current_) {
    plane.view = views_[number];
    const auto found = static_cast<std::size_t>(std::find(pooled_.begin(), pooled_.end(), plane) - pooled_.begin());
    if (found == pooled_.size()) pooled_.push_back(plane);
    const PlanePlace here = layout().places[plain_.size() + found];
    component.first_cells.push_back(static_cast<std::uint32_t>(here.begin + here.lead));
  }
  components_.push_back(std::move(component));
}

}  // namespace morf
