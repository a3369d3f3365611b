#include "projection/atom_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "data/sample_reader.hpp"
#include "projection/gap_projection.hpp"
#include "projection/pooling.hpp"

namespace morf {

AtomValues::AtomValues(RowLayout layout, AtomList atoms, std::vector<double> scale, bool real)
    : layout_(std::move(layout)), atoms_(std::move(atoms)), scale_(std::move(scale)), real_(real) {
  atoms_.check(layout_, real_);
  if (scale_.size() != atoms_.size() || !std::all_of(scale_.begin(), scale_.end(), [](double s) { return std::isfinite(s); }))
    throw std::invalid_argument("damaged atoms: scales");
  make_groups();
}

void AtomValues::transform(const Samples& x, CellType type, const Quantiser& quantiser, float* out) const {
  transform_into(x, type, quantiser, out);
}
void AtomValues::transform(const Samples& x, CellType type, const Quantiser& quantiser, double* out) const {
  transform_into(x, type, quantiser, out);
}

template <class Out>
void AtomValues::transform_into(const Samples& x, CellType type, const Quantiser& quantiser, Out* out) const {
  if (type == CellType::bytes || real_ != (type == CellType::f64))
    throw std::invalid_argument("cell type does not fit the atoms");
  with_cell_type(type, [&](auto cell) {
    using Cell = decltype(cell);
    SampleReader<Cell> reader(layout_, quantiser, x.gaps());
    const RowBuffer buffer(1, layout_.cells() * sizeof(Cell));
    Cell* const row = reinterpret_cast<Cell*>(buffer.row(0));
    std::vector<Cell> responses(longest_span_ + 64);
    for (std::size_t i = 0; i < x.rows(); ++i) {
      const std::unique_ptr<RowMask> mask = reader.read(x, i, row);
      apply(row, responses.data(), out + i * size());
      if (mask && mask->has_absent()) correct(row, *mask, out + i * size());
    }
  });
}

// Replaces the values of atoms that touch absent values.
template <class Cell, class Out>
void AtomValues::correct(const Cell* row, const RowMask& mask, Out* out) const {
  if constexpr (std::is_unsigned_v<Cell>) {
    throw std::invalid_argument("samples with missing values have signed cells");
  } else {
    for (std::size_t atom = 0; atom < size(); ++atom) {
      const std::size_t begin = atoms_.begin[atom], terms = atoms_.terms(atom);
      const std::uint32_t* const cell = atoms_.cell.data() + begin;
      const double* const weight = atoms_.weight.data() + begin;
      const Operation operation = atoms_.operation_of(atom);
      if (operation.pooled()) {
        const auto value = value_of_existing(row, mask, cell, weight, terms, operation);
        out[atom] = value ? static_cast<Out>(static_cast<double>(*value) * scale_[atom]) : std::numeric_limits<Out>::quiet_NaN();
      } else if (mask.touches(cell, weight, terms, Mark::absent)) {
        out[atom] = std::numeric_limits<Out>::quiet_NaN();
      }
    }
  }
}

bool AtomValues::grouped(std::size_t atom) const {
  if (atoms_.operation.empty()) return false;
  const Operation& operation = atoms_.operation[atom];
  return operation.pooled() && operation.op != Op::win && operation.window[1].stride == 1 && atoms_.terms(atom) > 0;
}

void AtomValues::make_groups() {
  // By the cells of the terms relative to the first, and their weights.
  std::map<std::vector<double>, std::vector<std::uint32_t>> groups;
  std::vector<double> terms;
  for (std::size_t atom = 0; atom < size(); ++atom) {
    if (!grouped(atom)) {
      single_.push_back(static_cast<std::uint32_t>(atom));
      continue;
    }
    terms.clear();
    for (std::size_t t = atoms_.begin[atom]; t < atoms_.begin[atom + 1]; ++t) {
      terms.push_back(static_cast<double>(atoms_.cell[t]) - atoms_.cell[atoms_.begin[atom]]);
      terms.push_back(atoms_.weight[t]);
    }
    groups[terms].push_back(static_cast<std::uint32_t>(atom));
  }
  for (auto& [key, members] : groups) {
    std::sort(members.begin(), members.end(),
              [&](std::uint32_t a, std::uint32_t b) { return std::pair{first_cell(a), a} < std::pair{first_cell(b), b}; });
    for (const std::uint32_t atom : members) {
      const std::uint64_t begin = first_cell(atom), end = begin + atoms_.operation[atom].reach() + 1;
      const bool joins = atom != members.front() && begin <= spans_.back().end;
      if (!joins) spans_.push_back({begin, end, members_.size(), members_.size()});
      spans_.back().end = std::max(spans_.back().end, end);
      members_.push_back(atom);
      spans_.back().member_end = members_.size();
      longest_span_ = std::max<std::size_t>(longest_span_, spans_.back().end - spans_.back().begin);
    }
  }
}

template <class Cell, class Out>
void AtomValues::apply(const Cell* row, Cell* responses, Out* out) const {
  const auto put = [&](std::size_t atom, ValueOf<Cell> value) {
    out[atom] = static_cast<Out>(static_cast<double>(value) * scale_[atom]);
  };
  for (const std::uint32_t atom : single_) {
    const std::size_t begin = atoms_.begin[atom], terms = atoms_.begin[atom + 1] - begin;
    const Operation operation = atoms_.operation_of(atom);
    put(atom, atom_value(row, atoms_.cell.data() + begin, atoms_.weight.data() + begin, terms, operation));
  }
  if constexpr (std::is_integral_v<Cell>) {
    for (const Span& span : spans_) {
      const std::uint32_t one = members_[span.member_begin];  // its first cell begins the span
      const std::size_t begin = atoms_.begin[one];
      respond(row, &atoms_.cell[begin], &atoms_.weight[begin], atoms_.begin[one + 1] - begin, 1, span.end - span.begin,
              responses);
      for (std::size_t m = span.member_begin; m < span.member_end; ++m) {
        const std::uint32_t atom = members_[m];
        const Operation& operation = atoms_.operation[atom];
        Reducer<Cell> reducer(operation.op, operation.bias);
        const Cell* at = responses + (first_cell(atom) - span.begin);
        for (std::size_t i = 0; i < operation.window[0].count; ++i, at += operation.window[0].stride)
          reducer.take(at, operation.window[1].count);
        put(atom, reducer.value());
      }
    }
  }
}

}  // namespace morf
