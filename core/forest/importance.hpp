// Importances: what the atoms of a forest's splits weigh on each feature, whatever their signs and views. All atoms are linear and
// stand in plain planes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "data/row_layout.hpp"

namespace morf {

// The blocks of features on which the weights of one atom are constant in size, one atom after another.
//
// A term stands for a box of features: all up to its cell along prefixed axes, its own index along others. The corners of an
// atom's boxes cut the sample into a few blocks in which its weights are constant, so that |atom| is found block by block.
class Blocks {
 public:
  struct Interval {
    std::int64_t begin, end;
  };

  explicit Blocks(const RowLayout& layout)
      : layout_(layout), rank_(layout.shape.size()), stride_(rank_), edges_(rank_), block_(rank_) {
    std::int64_t stride = 1;
    for (std::size_t axis = rank_; axis-- > 0; stride *= layout.shape[axis]) stride_[axis] = stride;
  }

  // Finds the blocks on which the atom does not vanish. Absolute weights of a feature in several views add.
  void find(const std::uint32_t* cell, const double* weight, std::size_t terms) {
    const auto p = static_cast<std::uint32_t>(layout_.features);
    boxes_.resize(terms * rank_);
    for (auto& edges : edges_) edges.clear();
    for (std::size_t t = 0; t < terms; ++t) {
      const std::uint32_t mask = layout_.planes[cell[t] / p].prefixed_axes;
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const std::int64_t index = cell[t] % p / stride_[axis] % layout_.shape[axis];
        const Interval box{mask >> axis & 1u ? 0 : index, index + 1};
        boxes_[t * rank_ + axis] = box;
        edges_[axis].push_back(box.begin);
        edges_[axis].push_back(box.end);
      }
    }
    for (auto& edges : edges_) {
      std::sort(edges.begin(), edges.end());
      edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    }
    order_.resize(terms);  // by plane
    for (std::size_t t = 0; t < terms; ++t) order_[t] = static_cast<std::uint32_t>(t);
    std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) { return cell[a] / p < cell[b] / p; });
    sizes_.clear();
    bounds_.clear();
    std::fill(block_.begin(), block_.end(), 0);
    do {
      double size = 0.0;
      for (std::size_t i = 0; i < terms;) {
        const std::uint32_t plane = cell[order_[i]] / p;
        double value = 0.0;
        for (; i < terms && cell[order_[i]] / p == plane; ++i)
          if (covers(order_[i])) value += weight[order_[i]];
        size += std::abs(value);
      }
      if (size == 0.0) continue;
      sizes_.push_back(size);
      for (std::size_t axis = 0; axis < rank_; ++axis)
        bounds_.push_back({edges_[axis][block_[axis]], edges_[axis][block_[axis] + 1]});
    } while (next_block());
  }

  std::size_t count() const { return sizes_.size(); }
  double size(std::size_t block) const { return sizes_[block]; }  // of the weight of each feature
  const Interval* bounds(std::size_t block) const { return &bounds_[block * rank_]; }  // along each axis
  std::int64_t stride(std::size_t axis) const { return stride_[axis]; }

  // The sum of the absolute weights.
  double mass() const {
    double mass = 0.0;
    for (std::size_t b = 0; b < sizes_.size(); ++b) {
      double size = sizes_[b];  // times the number of its features
      for (std::size_t i = b * rank_; i < (b + 1) * rank_; ++i) size *= static_cast<double>(bounds_[i].end - bounds_[i].begin);
      mass += size;
    }
    return mass;
  }

 private:
  bool covers(std::size_t term) const {
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      const std::int64_t begin = edges_[axis][block_[axis]];
      const Interval box = boxes_[term * rank_ + axis];
      if (begin < box.begin || begin >= box.end) return false;
    }
    return true;
  }

  bool next_block() {
    for (std::size_t axis = rank_; axis-- > 0;) {
      if (++block_[axis] + 1 < edges_[axis].size()) return true;
      block_[axis] = 0;
    }
    return false;
  }

  const RowLayout& layout_;
  std::size_t rank_;
  std::vector<std::int64_t> stride_;
  std::vector<Interval> boxes_, bounds_;
  std::vector<std::vector<std::int64_t>> edges_;
  std::vector<std::size_t> block_;
  std::vector<std::uint32_t> order_;
  std::vector<double> sizes_;
};

// Adds up the absolute weights of one atom after another, cell by feature.
class Importance {
 public:
  explicit Importance(const RowLayout& layout)
      : layout_(layout), blocks_(layout), marked_(static_cast<std::size_t>(layout.features), 0) {}

  // Adds `amount`, shared out by absolute weight, to `shared`, and one to `used` for each feature that the atom uses. Absolute
  // weights of a feature in several views add.
  void add(const std::uint32_t* cell, const double* weight, std::size_t terms, double amount, double* shared, double* used) {
    ++atom_;
    const auto p = static_cast<std::size_t>(layout_.features);
    if (std::all_of(cell, cell + terms, [&](std::uint32_t c) { return layout_.planes[c / p].prefixed_axes == 0; })) {
      double mass = 0.0;
      for (std::size_t t = 0; t < terms; ++t) mass += std::abs(weight[t]);
      if (!(mass > 0.0)) return;
      for (std::size_t t = 0; t < terms; ++t) {
        const std::size_t feature = cell[t] % p;
        shared[feature] += amount / mass * std::abs(weight[t]);
        if (marked_[feature] != atom_) used[feature] += 1.0;
        marked_[feature] = atom_;
      }
      return;
    }
    blocks_.find(cell, weight, terms);
    const double mass = blocks_.mass();
    if (!(mass > 0.0)) return;
    for (std::size_t b = 0; b < blocks_.count(); ++b)
      add_block(blocks_.bounds(b), 0, 0, amount / mass * blocks_.size(b), shared, used);
  }

 private:
  void add_block(const Blocks::Interval* bounds, std::size_t axis, std::int64_t first, double amount, double* shared,
                 double* used) const {
    const Blocks::Interval along = bounds[axis];
    if (axis + 1 < layout_.shape.size()) {
      for (std::int64_t i = along.begin; i < along.end; ++i)
        add_block(bounds, axis + 1, first + i * blocks_.stride(axis), amount, shared, used);
      return;
    }
    for (std::int64_t i = first + along.begin; i < first + along.end; ++i) {
      shared[i] += amount;
      used[i] += 1.0;
    }
  }

  const RowLayout& layout_;
  Blocks blocks_;
  std::vector<std::uint64_t> marked_;  // by the number of the atom that used the feature last
  std::uint64_t atom_ = 0;
};

}  // namespace morf
