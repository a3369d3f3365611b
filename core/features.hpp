// Atoms as features: many atoms applied to each sample, each to a column.
//
// Atoms that differ in their place, window, form and bias alone have the same terms, but for a shift. Their responses are
// computed once for all of them: a *group* holds such atoms, and *spans* of cells that their windows cover.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "pool.hpp"
#include "table.hpp"

namespace morf {

class AtomFeatures {
 public:
  // A column is the value of its atom times `scale`.
  AtomFeatures(RowLayout layout, AtomList atoms, std::vector<double> scale)
      : layout_(std::move(layout)), atoms_(std::move(atoms)), scale_(std::move(scale)) {
    check();
    make_groups();
  }

  std::size_t size() const { return atoms_.size(); }
  std::int64_t features() const { return layout_.features; }

  // out[rows][size()]
  template <class In, class Out>
  void transform(const In* x, std::size_t rows, CellType type, const Quantiser& quantiser, Out* out) const {
    if (type == CellType::bytes) throw std::invalid_argument("features take no cells of type bytes");
    with_cell_type(type, [&](auto cell) {
      using Cell = decltype(cell);
      if (std::is_floating_point_v<Cell> && !atoms_.form.empty()) throw std::invalid_argument("nonlinear atoms have integer cells");
      RowFiller<Cell> fill(layout_, quantiser);
      const RowBuffer buffer(1, layout_.cells() * sizeof(Cell));
      Cell* const row = reinterpret_cast<Cell*>(buffer.row(0));
      std::vector<Cell> responses(longest_span_ + 64);
      for (std::size_t i = 0; i < rows; ++i) {
        fill.template operator()<false>(x + i * layout_.features, row);
        apply(row, responses.data(), out + i * size());
      }
    });
  }

 private:
  // Cells from begin to end, as first cells of an atom.
  struct Span {
    std::uint64_t begin, end;
    std::size_t member_begin, member_end;  // in members_
  };

  bool grouped(std::size_t atom) const {
    if (atoms_.form.empty()) return false;
    const Form& form = atoms_.form[atom];
    return form.op != Op::none && form.op != Op::variance && form.op != Op::win && form.window[1].stride == 1 && atoms_.begin[atom + 1] > atoms_.begin[atom];
  }

  std::uint64_t reach(const Form& form) const {
    return std::uint64_t{form.window[0].count - 1} * form.window[0].stride + std::uint64_t{form.window[1].count - 1} * form.window[1].stride;
  }

  void check() const {
    const auto require = [](bool condition) {
      if (!condition) throw std::invalid_argument("damaged atoms");
    };
    require(!atoms_.begin.empty() && atoms_.begin.front() == 0 && atoms_.begin.back() == atoms_.cell.size() &&
            std::is_sorted(atoms_.begin.begin(), atoms_.begin.end()) && atoms_.cell.size() == atoms_.weight.size() &&
            scale_.size() == atoms_.size() && (atoms_.form.empty() || atoms_.form.size() == atoms_.size()));
    const std::uint64_t cells = layout_.cells();
    for (std::size_t atom = 0; atom < atoms_.size(); ++atom) {
      const Form form = atoms_.form.empty() ? Form{} : atoms_.form[atom];
      for (const Window& window : form.window) require(window.count > 0 && window.count <= cells && window.stride <= cells);
      require(std::isfinite(scale_[atom]) && form.splits(atoms_.begin[atom + 1] - atoms_.begin[atom]));
      for (std::uint32_t t = atoms_.begin[atom]; t < atoms_.begin[atom + 1]; ++t)
        require(atoms_.cell[t] + reach(form) < cells && std::abs(atoms_.weight[t]) < 0x1.0p62 &&
                (atoms_.form.empty() || atoms_.weight[t] == std::floor(atoms_.weight[t])));
    }
  }

  void make_groups() {
    // By the cells of the terms relative to the first, and their weights.
    std::map<std::vector<double>, std::vector<std::uint32_t>> groups;
    std::vector<double> terms;
    for (std::size_t atom = 0; atom < size(); ++atom) {
      if (!grouped(atom)) {
        single_.push_back(static_cast<std::uint32_t>(atom));
        continue;
      }
      terms.clear();
      for (std::uint32_t t = atoms_.begin[atom]; t < atoms_.begin[atom + 1]; ++t) {
        terms.push_back(static_cast<double>(atoms_.cell[t]) - atoms_.cell[atoms_.begin[atom]]);
        terms.push_back(atoms_.weight[t]);
      }
      groups[terms].push_back(static_cast<std::uint32_t>(atom));
    }
    for (auto& [key, members] : groups) {
      std::sort(members.begin(), members.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair{first_cell(a), a} < std::pair{first_cell(b), b};
      });
      for (const std::uint32_t atom : members) {
        const std::uint64_t begin = first_cell(atom), end = begin + reach(atoms_.form[atom]) + 1;
        const bool joins = atom != members.front() && begin <= spans_.back().end;
        if (!joins) spans_.push_back({begin, end, members_.size(), members_.size()});
        spans_.back().end = std::max(spans_.back().end, end);
        members_.push_back(atom);
        spans_.back().member_end = members_.size();
        longest_span_ = std::max<std::size_t>(longest_span_, spans_.back().end - spans_.back().begin);
      }
    }
  }

  std::uint32_t first_cell(std::size_t atom) const { return atoms_.cell[atoms_.begin[atom]]; }

  template <class Cell, class Out>
  void apply(const Cell* row, Cell* responses, Out* out) const {
    const auto put = [&](std::size_t atom, ValueOf<Cell> value) { out[atom] = static_cast<Out>(static_cast<double>(value) * scale_[atom]); };
    for (const std::uint32_t atom : single_) {
      const std::size_t begin = atoms_.begin[atom], terms = atoms_.begin[atom + 1] - begin;
      const Form form = atoms_.form.empty() ? Form{} : atoms_.form[atom];
      put(atom, form_value(row, atoms_.cell.data() + begin, atoms_.weight.data() + begin, terms, form));
    }
    if constexpr (std::is_integral_v<Cell>) {
      for (const Span& span : spans_) {
        const std::uint32_t one = members_[span.member_begin];  // its first cell begins the span
        const std::size_t begin = atoms_.begin[one];
        respond(row, &atoms_.cell[begin], &atoms_.weight[begin], atoms_.begin[one + 1] - begin, 1, span.end - span.begin, responses);
        for (std::size_t m = span.member_begin; m < span.member_end; ++m) {
          const std::uint32_t atom = members_[m];
          const Form& form = atoms_.form[atom];
          Reducer<Cell> reducer(form.op, form.bias);
          const Cell* at = responses + (first_cell(atom) - span.begin);
          for (std::size_t i = 0; i < form.window[0].count; ++i, at += form.window[0].stride) reducer.take(at, form.window[1].count);
          put(atom, reducer.value());
        }
      }
    }
  }

  RowLayout layout_;
  AtomList atoms_;
  std::vector<double> scale_;
  std::vector<std::uint32_t> single_, members_;
  std::vector<Span> spans_;
  std::size_t longest_span_ = 0;
};

}  // namespace morf
