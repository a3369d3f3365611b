#include "atoms/sampler.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

namespace morf {

class Sampler::Drawing {
 public:
  explicit Drawing(const Dictionary& dictionary)
      : dictionary_(dictionary), has_operations_(dictionary.has_operations()), permutations_(dictionary.components().size()) {
    dictionary.check_complete();
    for (std::size_t c = 0; c < permutations_.size(); ++c) {
      const Component& component = dictionary.components()[c];
      if (component.uniform()) permutations_[c].reset(population(component));
      if (component.kind == Component::Kind::sparse) taken_.resize(dictionary.features(), 0);
      for (const PatchAxis& axis : component.axes)
        if (axis.relation) related_.reserve(axis.relation->size());
        else if (!axis.contiguous) taken_.resize(std::max<std::size_t>(taken_.size(), axis.length), 0);
    }
  }

  void begin_node() {
    for (Permutation& permutation : permutations_) permutation.rewind();
  }

  bool enumerable() const { return permutations_.size() == 1 && dictionary_.components()[0].uniform(); }

  void draw(Stream& stream, std::size_t count, AtomList& out) {
    const Component& first = dictionary_.components()[0];
    if (permutations_.size() == 1 && first.kind == Component::Kind::patch && first.box_corners > 0)
      return draw_boxes(first, stream, count, out);
    for (std::size_t i = 0; i < count; ++i) draw_one(stream, out);
    if (has_operations_) out.operation.resize(out.size());
  }

 private:
  struct PairInterval {  // what the two boxes of a pair are along one axis
    std::int64_t start, moved, size;
  };

  void draw_one(Stream& stream, AtomList& out) {
    std::size_t c = 0;
    if (permutations_.size() > 1) {
      const std::uint64_t x = stream.next();
      while (x > dictionary_.cumulative()[c]) ++c;
    }
    const Component& component = dictionary_.components()[c];
    switch (component.kind) {
      case Component::Kind::axis: {
        std::size_t index;
        if (!permutations_[c].draw(stream, index)) return;
        out.add_term(first_cell(component, stream) + static_cast<std::uint32_t>(index), 1.0);
        break;
      }
      case Component::Kind::finite: {
        std::size_t index;
        if (component.uniform()) {
          if (!permutations_[c].draw(stream, index)) return;
        } else {
          index = first_at_least(component.cumulative, stream.next());
        }
        const std::uint32_t first = first_cell(component, stream);
        for (std::size_t t = component.atoms.begin[index]; t < component.atoms.begin[index + 1]; ++t)
          out.add_term(first + component.atoms.cell[t], component.atoms.weight[t]);
        break;
      }
      case Component::Kind::sparse: draw_sparse(component, stream, out); break;
      case Component::Kind::patch:
        if (component.box_corners > 0) return draw_boxes(component, stream, 1, out);
        draw_patch(component, stream, out);
        break;
      case Component::Kind::haar: draw_haar(component, stream, out); break;
      case Component::Kind::pair: draw_pair(component, stream, out); break;
      case Component::Kind::kernel: draw_kernel(component, stream, out); break;
      case Component::Kind::variance: draw_variance(component, stream, out); break;
    }
    out.close_atom();
    if (has_operations_ && (component.pooled() || component.kind == Component::Kind::variance))
      close_operation(component, stream, out);
  }

  // Before a linear atom that may be pooled: how, and whether over all positions where windows are drawn.
  void begin_operation(const Component& component, Stream& stream) {
    if (!component.pooled()) return;
    operation_ = Operation{.op = component.pool.ops[stream.below(component.pool.ops.size())]};
    whole_ = component.pool.drawn() && stream.coin();
  }

  // The position of a linear atom that spans `extent` of an axis: the first of its window, where it has one.
  std::int64_t draw_start(const Component& component, const PatchAxis& axis, std::int64_t extent, Stream& stream) {
    const bool circular = axis.boundary == Boundary::wrap;
    const std::int64_t positions = circular ? axis.length : axis.length - extent + 1;
    if (axis.window < 0) return static_cast<std::int64_t>(stream.below(positions));
    std::int64_t count = axis.window > 0 ? std::min(axis.window, positions) : positions;
    if (axis.window == 0 && !whole_ && positions > 1) {
      const auto sizes = component.pool.sizes.begin();
      count = 2 + (std::upper_bound(sizes, sizes + (positions - 1), stream.below(sizes[positions - 2])) - sizes);
    }
    operation_.window[0] = operation_.window[1];
    operation_.window[1] = {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(axis.stride)};
    if (count == positions) return 0;
    return static_cast<std::int64_t>(stream.below(circular ? positions : positions - count + 1));
  }

  void close_operation(const Component& component, Stream& stream, AtomList& out) {
    if (component.kind == Component::Kind::variance) operation_ = Operation{.op = Op::variance};
    if (operation_.op == Op::proportion) {
      operation_.draw = stream.next();
      operation_.position = stream.below(operation_.positions());
    }
    out.operation.resize(out.size() - 1);
    out.operation.push_back(operation_);
  }

  // The first cell of the plane that an atom looks at, drawn where there are several.
  static std::uint32_t first_cell(const Component& component, Stream& stream) {
    return component.first_cells[stream.below(component.first_cells.size())];
  }

  // The start of a random permutation, drawn lazily and undone lazily: cost follows the draws and not the population.
  class Permutation {
   public:
    void reset(std::size_t size) {
      order_.resize(size);
      std::iota(order_.begin(), order_.end(), 0u);
    }
    void rewind() {
      for (std::size_t i = partners_.size(); i-- > 0;) std::swap(order_[i], order_[partners_[i]]);
      partners_.clear();
    }
    bool draw(Stream& stream, std::size_t& value) {
      const std::size_t i = partners_.size();
      if (i == order_.size()) return false;
      const std::size_t partner = i + stream.below(order_.size() - i);
      std::swap(order_[i], order_[partner]);
      partners_.push_back(static_cast<std::uint32_t>(partner));
      value = order_[i];
      return true;
    }

   private:
    std::vector<std::uint32_t> order_, partners_;
  };

  std::size_t population(const Component& component) const {
    return component.kind == Component::Kind::axis ? dictionary_.features() : component.atoms.size();
  }

  static std::size_t first_at_least(const std::vector<std::uint64_t>& cumulative, std::uint64_t x) {
    return std::lower_bound(cumulative.begin(), cumulative.end(), x) - cumulative.begin();
  }

  // Floyd's method: `size` distinct members of 0..population-1; `use` is called for each as it is drawn.
  template <class Use>
  void draw_distinct(Stream& stream, std::uint64_t population, std::uint64_t size, Use use) {
    ++epoch_;
    for (std::uint64_t j = population - size; j < population; ++j) {
      std::uint64_t t = stream.below(j + 1);
      if (taken_[t] == epoch_) t = j;
      taken_[t] = epoch_;
      use(static_cast<std::uint32_t>(t));
    }
  }

  void draw_sparse(const Component& component, Stream& stream, AtomList& out) {
    const std::uint32_t first = first_cell(component, stream);
    const std::uint64_t nonzeros = 1 + first_at_least(component.cumulative, stream.next());
    corners_.clear();
    const auto add = [&](std::uint32_t feature) { corners_.push_back({first + feature, stream.coin() ? -1 : 1}); };
    if (component.guide.empty()) {
      draw_distinct(stream, dictionary_.features(), nonzeros, add);
    } else {
      ++epoch_;
      while (corners_.size() < nonzeros) {
        const std::size_t feature = first_at_least(component.guide, stream.next());
        if (taken_[feature] == epoch_) continue;
        taken_[feature] = epoch_;
        add(static_cast<std::uint32_t>(feature));
      }
    }
    std::sort(corners_.begin(), corners_.end(), [](Corner a, Corner b) { return a.cell < b.cell; });
    out.add_corners(corners_.data(), corners_.size());
  }

  // The product over the axes of their weighted index sets, which set(axis) puts into along_axis_, is appended to corners_. Along
  // a prefixed axis the set [start, end) is +1 at end - 1 and -1 at start - 1, which falls away at start 0; along others it is +1
  // at each index, in ascending order.
  template <class Set>
  void add_product(const Component& component, std::uint32_t first, std::int32_t weight, Set set) {
    const std::size_t begin = corners_.size();
    corners_.push_back({first, weight});
    for (const PatchAxis& axis : component.axes) {
      along_axis_.clear();
      set(axis);
      const std::size_t bases = corners_.size() - begin, steps = along_axis_.size();
      corners_.resize(begin + bases * steps);
      for (std::size_t base = bases; base-- > 0;) {  // from the back, in place
        const Corner from = corners_[begin + base];
        for (std::size_t step = steps; step-- > 0;)
          corners_[begin + base * steps + step] = {from.cell + along_axis_[step].cell, from.weight * along_axis_[step].weight};
      }
    }
  }

  void draw_patch(const Component& component, Stream& stream, AtomList& out) {
    if (component.weights.any()) return draw_weighted_patch(component, stream, out);
    corners_.clear();
    const std::uint32_t first = first_cell(component, stream);
    begin_operation(component, stream);
    add_product(component, first, 1, [&](const PatchAxis& axis) {
      if (!component.pooled() || !axis.contiguous) return draw_interval(axis, stream);
      const std::int64_t size = draw_size(axis, stream), start = draw_start(component, axis, size, stream);
      const std::int64_t end = axis.moves ? start + size : std::min(start + size, axis.length);
      if (end < start + size) add_range(axis, 0, start + size - end, 1);
      add_range(axis, start, end, 1);
    });
    out.add_corners(corners_.data(), corners_.size());
  }

  // A cell for each feature. Until its weight is known, a corner holds the place of the feature in the box, in C order.
  void draw_weighted_patch(const Component& component, Stream& stream, AtomList& out) {
    const std::uint32_t first = first_cell(component, stream);
    begin_operation(component, stream);
    corners_.assign(1, {first, 0});
    std::size_t sizes = 0, volume = 1;
    for (const PatchAxis& axis : component.axes) {
      along_axis_.clear();
      const std::int64_t size = draw_indices(component, axis, stream);
      sizes = sizes * static_cast<std::size_t>(axis.max_size - axis.min_size + 1) +
              static_cast<std::size_t>(size - axis.min_size);
      volume *= static_cast<std::size_t>(size);
      const std::size_t bases = corners_.size(), steps = along_axis_.size();
      corners_.resize(bases * steps);
      for (std::size_t base = bases; base-- > 0;) {  // from the back, in place
        const Corner from = corners_[base];
        for (std::size_t step = steps; step-- > 0;)
          corners_[base * steps + step] = {from.cell + along_axis_[step].cell,
                                           from.weight * static_cast<std::int32_t>(size) + along_axis_[step].weight};
      }
    }
    weigh(component.weights, sizes, volume, stream);
    const auto by_cell = [](Corner a, Corner b) { return a.cell < b.cell; };
    if (!std::is_sorted(corners_.begin(), corners_.end(), by_cell)) std::sort(corners_.begin(), corners_.end(), by_cell);
    out.add_corners(corners_.data(), corners_.size());
  }

  // Puts weights in place of places. Features of weight zero fall away, unless all are zero.
  void weigh(const Weights& weights, std::size_t sizes, std::size_t volume, Stream& stream) {
    if (weights.arrays.empty()) {
      const std::size_t count = weights.drawn.size();
      for (Corner& corner : corners_) {
        const std::size_t drawn = weights.cumulative.empty() ? stream.below(count)
                                                             : first_at_least(weights.cumulative, stream.next());
        corner.weight = weights.drawn[drawn];
      }
    } else {
      const std::int32_t* array = &weights.listed[weights.first[sizes] + stream.below(weights.arrays[sizes]) * volume];
      for (Corner& corner : corners_) corner.weight = array[corner.weight];
    }
    const auto end = std::remove_if(corners_.begin(), corners_.end(), [](Corner corner) { return corner.weight == 0; });
    if (end == corners_.begin()) corners_[0].weight = 0;
    corners_.resize(std::max<std::size_t>(static_cast<std::size_t>(end - corners_.begin()), 1));
  }

  // The indices of a patch along an axis as they are drawn, each with its place there. Returns the size of the patch.
  std::int64_t draw_indices(const Component& component, const PatchAxis& axis, Stream& stream) {
    const auto add = [&](std::int64_t index, std::int64_t place) {
      along_axis_.push_back({static_cast<std::uint32_t>(index * axis.stride), static_cast<std::int32_t>(place)});
    };
    if (!axis.contiguous) return draw_loose(axis, stream, [&](std::uint32_t index) { add(index, std::ssize(along_axis_)); });
    const std::int64_t size = draw_size(axis, stream);
    const bool circular = axis.boundary == Boundary::wrap, over = axis.boundary == Boundary::zero && !component.pooled();
    std::int64_t start;
    if (component.pooled()) start = draw_start(component, axis, size, stream);
    else if (over) start = static_cast<std::int64_t>(stream.below(axis.length + size - 1)) - (size - 1);
    else start = static_cast<std::int64_t>(stream.below(circular ? axis.length : axis.length - size + 1));
    for (std::int64_t place = 0; place < size; ++place) {
      const std::int64_t index = start + place;
      if (circular) add(axis.moves ? index : index % axis.length, place);  // planes of moving atoms hold the axis several times
      else if (index >= 0 && index < axis.length) add(index, place);
    }
    return size;
  }

  // `use` is called for each index along an axis without order as it is drawn. Returns the size of the patch, which is drawn, but
  // for related indices follows from their number.
  template <class Use>
  std::int64_t draw_loose(const PatchAxis& axis, Stream& stream, Use use) {
    if (!axis.relation) {
      const std::int64_t size = draw_size(axis, stream);
      draw_distinct(stream, axis.length, size, use);
      return size;
    }
    const Relation& relation = *axis.relation;
    const std::int64_t most = relation.method == Relation::Method::hops ? axis.max_size : draw_size(axis, stream);
    const std::vector<std::uint32_t>& members = related_.draw(relation, static_cast<std::size_t>(most), stream);
    for (const std::uint32_t index : members) use(relation.place(index));
    return std::max<std::int64_t>(std::ssize(members), axis.min_size);
  }

  void draw_variance(const Component& component, Stream& stream, AtomList& out) {
    const std::size_t views = component.first_cells.size() / 2, view = stream.below(views);
    std::int64_t area = 1;
    intervals_.clear();
    for (const PatchAxis& axis : component.axes) {
      const std::int64_t size = draw_size(axis, stream);
      intervals_.push_back({static_cast<std::int64_t>(stream.below(axis.length - size + 1)), 0, size});
      area *= size;
    }
    corners_.clear();
    for (const std::size_t plane : {view, views + view}) {
      std::size_t number = 0;
      add_product(component, component.first_cells[plane], 1, [&](const PatchAxis& axis) {
        const PairInterval& interval = intervals_[number++];
        add_range(axis, interval.start, interval.start + interval.size, 1);
      });
    }
    for (std::size_t t = 0; t < corners_.size(); ++t)
      out.add_term(corners_[t].cell, (2 * t < corners_.size() ? 1.0 : static_cast<double>(area)) * corners_[t].weight);
  }

  void draw_haar(const Component& component, Stream& stream, AtomList& out) {
    const std::uint32_t first = first_cell(component, stream);
    const Lobes kind = component.lobes[stream.below(component.lobes.size())];
    begin_operation(component, stream);
    std::size_t lobed = 0;  // axes
    for (const PatchAxis& axis : component.axes) lobed += axis.lobed;
    const std::size_t drawn = stream.below(lobed);
    std::size_t number = 0;
    corners_.clear();
    add_product(component, first, 1, [&](const PatchAxis& axis) {
      const bool chosen = axis.lobed && number == drawn;
      number += axis.lobed;
      const std::int64_t count = !chosen ? 1 : kind == Lobes::three ? 3 : 2;
      const std::int64_t size = std::min(draw_size(axis, stream), axis.length / count);
      const std::int64_t start = draw_start(component, axis, count * size, stream);
      for (std::int64_t lobe = 0; lobe < count; ++lobe)
        add_range(axis, start + lobe * size, start + (lobe + 1) * size, lobe % 2 == 0 ? 1 : count == 3 ? -2 : -1);
    });
    out.add_corners(corners_.data(), corners_.size());
  }

  void draw_pair(const Component& component, Stream& stream, AtomList& out) {
    if (component.box_corners > 0) return draw_box_pair(component, stream, out);
    const std::uint32_t first = first_cell(component, stream);
    const bool again = component.first_cells.size() > 1 && stream.coin();
    const std::uint32_t second = again ? first_cell(component, stream) : first;
    begin_operation(component, stream);
    intervals_.clear();
    bool apart = second != first;
    for (const PatchAxis& axis : component.axes) {
      intervals_.push_back(component.pooled() ? draw_moving_pair(component, axis, stream) : draw_pair_along(axis, stream));
      apart |= intervals_.back().moved != intervals_.back().start;
    }
    corners_.clear();
    std::size_t number = 0;
    add_product(component, first, 1, [&](const PatchAxis& axis) {
      const PairInterval& interval = intervals_[number++];
      add_range(axis, interval.start, interval.start + interval.size, 1);
    });
    number = 0;
    if (apart)  // else the atom is a patch
      add_product(component, second, -1, [&](const PatchAxis& axis) {
        const PairInterval& interval = intervals_[number++];
        add_range(axis, interval.moved, interval.moved + interval.size, 1);
      });
    if (dictionary_.direct()) merge_corners();  // boxes that overlap share features
    out.add_corners(corners_.data(), corners_.size());
  }

  static PairInterval draw_pair_along(const PatchAxis& axis, Stream& stream) {
    const std::int64_t size = draw_size(axis, stream), positions = axis.length - size + 1;
    const auto start = static_cast<std::int64_t>(stream.below(positions));
    return {start, std::clamp<std::int64_t>(start + draw_step(axis, stream), 0, positions - 1), size};
  }

  // Boxes that move together: first how far they are apart, then the position of both.
  PairInterval draw_moving_pair(const Component& component, const PatchAxis& axis, Stream& stream) {
    const std::int64_t size = draw_size(axis, stream), most = axis.length - size;
    const std::int64_t step = std::clamp(draw_step(axis, stream), -most, most), back = std::max<std::int64_t>(-step, 0);
    const std::int64_t start = draw_start(component, axis, size + std::abs(step), stream) + back;
    return {start, start + step, size};
  }

  static std::int64_t draw_step(const PatchAxis& axis, Stream& stream) {
    return static_cast<std::int64_t>(stream.below(2 * axis.reach + 1)) - axis.reach;
  }

  // Adds up the weights of equal cells, in ascending order.
  void merge_corners() {
    std::sort(corners_.begin(), corners_.end(), [](Corner a, Corner b) { return a.cell < b.cell; });
    std::size_t size = 0;
    for (const Corner corner : corners_) {
      if (size > 0 && corners_[size - 1].cell == corner.cell) corners_[size - 1].weight += corner.weight;
      else corners_[size++] = corner;
      if (corners_[size - 1].weight == 0) --size;
    }
    corners_.resize(size);
  }

  void draw_kernel(const Component& component, Stream& stream, AtomList& out) {
    std::uint32_t first = first_cell(component, stream);
    const std::size_t number = stream.below(component.kernels.size());
    const Kernel& kernel = component.kernels[number];
    std::int64_t dilation = kernel.dilation;
    if (!kernel.cumulative.empty()) dilation = 1 + static_cast<std::int64_t>(first_at_least(kernel.cumulative, stream.next()));
    begin_operation(component, stream);
    for (std::size_t axis = 0; axis < component.axes.size(); ++axis) {
      const PatchAxis& a = component.axes[axis];
      const std::int64_t size = (kernel.extent[axis] - 1) * dilation + 1;
      first += static_cast<std::uint32_t>(draw_start(component, a, size, stream) * a.stride);
    }
    const bool competes = component.pooled() && (operation_.op == Op::win || operation_.op == Op::lose);
    const std::int32_t side = competes && operation_.op == Op::lose ? -1 : 1;
    add_taps(component, kernel, side, first, dilation, stream, out);
    if (!competes) return;
    // Rivals: other kernels of the same shape, or other signs.
    operation_.op = Op::win;
    operation_.bias = static_cast<std::int64_t>(component.rivals);
    chosen_.assign(1, number);
    const std::size_t own = out.weight.size() - kernel.taps.size();
    for (std::size_t rival = 0; rival < component.rivals; ++rival) {
      if (component.random_signs) {
        const std::size_t begin = out.weight.size();
        do {  // until they are not its own
          out.cell.resize(begin);
          out.weight.resize(begin);
          add_taps(component, kernel, side, first, dilation, stream, out);
        } while (std::equal(out.weight.begin() + begin, out.weight.end(), out.weight.begin() + own));
        continue;
      }
      std::size_t other = stream.below(component.kernels.size() - chosen_.size());
      for (const std::size_t taken : chosen_) other += taken <= other;
      chosen_.insert(std::upper_bound(chosen_.begin(), chosen_.end(), other), other);
      add_taps(component, component.kernels[other], side, first, dilation, stream, out);
    }
  }

  static void add_taps(const Component& component, const Kernel& kernel, std::int32_t side, std::uint32_t first,
                       std::int64_t dilation, Stream& stream, AtomList& out) {
    for (const Corner& tap : kernel.taps) {
      const std::int32_t sign = component.random_signs && stream.coin() ? -side : side;
      out.add_term(first + static_cast<std::uint32_t>(tap.cell * dilation), sign * tap.weight);
    }
  }

  static std::int64_t draw_size(const PatchAxis& axis, Stream& stream) {
    if (!axis.cumulative.empty())
      return axis.min_size + static_cast<std::int64_t>(first_at_least(axis.cumulative, stream.next()));
    return axis.min_size + static_cast<std::int64_t>(stream.below(axis.max_size - axis.min_size + 1));
  }

  // draw_pair for plain boxes.
  static void draw_box_pair(const Component& component, Stream& stream, AtomList& out) {
    BoxCorners here{first_cell(component, stream)}, there = here;
    if (component.first_cells.size() > 1 && stream.coin()) there.first = first_cell(component, stream);
    bool apart = there.first != here.first;
    for (const PatchAxis& axis : component.axes) {
      const auto [start, moved, size] = draw_pair_along(axis, stream);
      here.cut(axis, start, start + size);
      there.cut(axis, moved, moved + size);
      apart |= moved != start;
    }
    std::size_t terms = out.cell.size();
    out.cell.resize(terms + 2 * component.box_corners);
    out.weight.resize(terms + 2 * component.box_corners);
    terms += here.write(1.0, &out.cell[terms], &out.weight[terms]);
    if (apart) terms += there.write(-1.0, &out.cell[terms], &out.weight[terms]);
    out.cell.resize(terms);
    out.weight.resize(terms);
  }

  // The corners of a box: a first cell, and a step along each prefixed axis unless the box starts at 0 there.
  struct BoxCorners {
    std::uint32_t first, step[max_box_axes];
    std::size_t axes = 0;

    explicit BoxCorners(std::uint32_t plane) : first(plane) {}

    void cut(const PatchAxis& axis, std::int64_t start, std::int64_t end) {
      if (axis.prefixed && start > 0) {
        first += static_cast<std::uint32_t>((start - 1) * axis.stride);
        step[axes++] = static_cast<std::uint32_t>((end - start) * axis.stride);
      } else {
        first += static_cast<std::uint32_t>((end - 1) * axis.stride);
      }
    }

    // In ascending order; returns their number.
    std::size_t write(double sign, std::uint32_t* cell, double* weight) const {
      cell[0] = first;
      switch (axes) {
        case 0: weight[0] = sign; return 1;
        case 1:
          cell[1] = first + step[0];
          weight[0] = -sign;
          weight[1] = sign;
          return 2;
        case 2:
          cell[1] = first + step[1];
          cell[2] = first + step[0];
          cell[3] = first + step[0] + step[1];
          weight[0] = weight[3] = sign;
          weight[1] = weight[2] = -sign;
          return 4;
        default: break;
      }
      std::size_t count = 1;
      weight[0] = sign;
      for (std::size_t axis = 0; axis < axes; ++axis, count *= 2)
        for (std::size_t i = count; i-- > 0;) {  // from the back, in place
          cell[2 * i + 1] = cell[i] + step[axis];
          weight[2 * i + 1] = weight[i];
          cell[2 * i] = cell[i];
          weight[2 * i] = -weight[i];
        }
      return count;
    }
  };

  void draw_interval(const PatchAxis& axis, Stream& stream) {
    if (!axis.contiguous) {
      draw_loose(axis, stream,
                 [&](std::uint32_t index) { along_axis_.push_back({static_cast<std::uint32_t>(index * axis.stride), 1}); });
      std::sort(along_axis_.begin(), along_axis_.end(), [](Corner a, Corner b) { return a.cell < b.cell; });
      return;
    }
    const std::int64_t size = draw_size(axis, stream);
    std::int64_t start = 0;
    switch (axis.boundary) {
      case Boundary::zero:
        start = static_cast<std::int64_t>(stream.below(axis.length + size - 1)) - (size - 1);
        add_range(axis, std::max<std::int64_t>(start, 0), std::min(start + size, axis.length), 1);
        break;
      case Boundary::inside:
        start = static_cast<std::int64_t>(stream.below(axis.length - size + 1));
        add_range(axis, start, start + size, 1);
        break;
      case Boundary::wrap:
        start = static_cast<std::int64_t>(stream.below(axis.length));
        if (start + size > axis.length) add_range(axis, 0, start + size - axis.length, 1);
        add_range(axis, start, std::min(start + size, axis.length), 1);
        break;
    }
  }

  // draw_patch for plain boxes, whose corners are few and are written in place: small nodes spend much of their time drawing.
  void draw_boxes(const Component& component, Stream& stream, std::size_t count, AtomList& out) {
    std::size_t terms = out.cell.size(), atoms = out.begin.size();
    out.cell.resize(terms + count * component.box_corners);
    out.weight.resize(terms + count * component.box_corners);
    out.begin.resize(atoms + count);
    for (std::size_t i = 0; i < count; ++i) {
      terms += draw_box(component, stream, &out.cell[terms], &out.weight[terms]);
      out.begin[atoms++] = terms;
    }
    out.cell.resize(terms);
    out.weight.resize(terms);
  }

  // A box has two corners along each prefixed axis unless it starts at 0, the first of them negative.
  static std::size_t draw_box(const Component& component, Stream& stream, std::uint32_t* cell, double* weight) {
    BoxCorners corners{first_cell(component, stream)};
    for (const PatchAxis& axis : component.axes) {
      const std::int64_t size = draw_size(axis, stream);
      std::int64_t start, end;
      if (axis.boundary == Boundary::zero) {
        start = static_cast<std::int64_t>(stream.below(axis.length + size - 1)) - (size - 1);
        end = std::min(start + size, axis.length);
      } else {
        start = static_cast<std::int64_t>(stream.below(axis.length - size + 1));
        end = start + size;
      }
      corners.cut(axis, start, end);
    }
    return corners.write(1.0, cell, weight);
  }

  // Boxes side by side share a cell, where their weights add.
  void add_range(const PatchAxis& axis, std::int64_t start, std::int64_t end, std::int32_t weight) {
    const auto add = [&](std::int64_t index, std::int32_t w) {
      const auto cell = static_cast<std::uint32_t>(index * axis.stride);
      const bool again = !along_axis_.empty() && along_axis_.back().cell == cell && (along_axis_.back().weight < 0) == (w < 0);
      if (again) along_axis_.back().weight += w;
      else along_axis_.push_back({cell, w});
    };
    if (axis.prefixed) {
      if (start > 0 || axis.moves) add(start - 1, -weight);
      add(end - 1, weight);
    } else {
      for (std::int64_t index = start; index < end; ++index) add(index, weight);
    }
  }

  const Dictionary& dictionary_;
  bool has_operations_;
  std::vector<Permutation> permutations_;
  std::vector<std::uint64_t> taken_;
  std::uint64_t epoch_ = 0;
  RelatedSets related_;
  std::vector<Corner> corners_, along_axis_;
  std::vector<PairInterval> intervals_;
  Operation operation_;
  std::vector<std::size_t> chosen_;  // kernels that compete, in order
  bool whole_ = false;  // the windows of the atom being drawn
};

Sampler::Sampler(const Dictionary& dictionary) : drawing_(std::make_unique<Drawing>(dictionary)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

void Sampler::begin_node() { drawing_->begin_node(); }
bool Sampler::enumerable() const { return drawing_->enumerable(); }
void Sampler::draw(Stream& stream, std::size_t count, AtomList& out) { drawing_->draw(stream, count, out); }

AtomList sample_atoms(const Dictionary& dictionary, std::uint64_t key, std::size_t count, bool one_node) {
  AtomList atoms;
  Sampler sampler(dictionary);
  Stream stream(key);
  for (std::size_t i = 0; i < count; ++i) {
    if (!one_node) sampler.begin_node();
    sampler.draw(stream, 1, atoms);
  }
  atoms.drop_rivals();
  return atoms;
}

}  // namespace morf
