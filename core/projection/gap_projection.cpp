#include "projection/gap_projection.hpp"

#include <stdexcept>

namespace morf {
namespace {

// Calls use(cells from the first to the position) for each position of a window.
template <class Use>
void each_position(const Operation& operation, Use use) {
  for (std::size_t i = 0; i < operation.window[0].count; ++i)
    for (std::size_t j = 0; j < operation.window[1].count; ++j)
      use(i * operation.window[0].stride + j * operation.window[1].stride);
}

// A sum over some positions as if it were over all.
std::int64_t as_if_all(std::int64_t sum, std::uint64_t existing, std::uint64_t positions) {
  return std::llrint(static_cast<double>(sum) * static_cast<double>(positions) / static_cast<double>(existing));
}

}  // namespace

template <class Cell>
std::optional<ValueOf<Cell>> value_of_existing(const Cell* row, const RowMask& mask, const std::uint32_t* cell,
                                               const double* weight, std::size_t terms, const Operation& operation) {
  if constexpr (std::is_integral_v<Cell>) {
    const std::size_t own = operation.own(terms);
    Reducer<Cell> reducer(operation.op, operation.bias);
    std::uint64_t existing = 0;
    each_position(operation, [&](std::size_t moved) {
      Cell highest = std::numeric_limits<Cell>::lowest();
      for (std::size_t t = 0; t < terms; t += own)
        if (mask.touches(cell + t, weight + t, own, Mark::absent, moved)) return;
      ++existing;
      const auto response = [&](std::size_t t) {
        return static_cast<Cell>(sum_terms(row + moved, cell + t, weight + t, 0, own));
      };
      const Cell here = response(0);
      if (operation.op != Op::win) return reducer.take(&here, 1);
      for (std::size_t t = own; t < terms; t += own) highest = std::max(highest, response(t));
      reducer.take_wins(&here, &highest, 1);
    });
    if (existing == 0) return std::nullopt;
    const ValueOf<Cell> value = reducer.value();
    if (operation.op == Op::max || operation.op == Op::min || existing == operation.positions()) return value;
    return static_cast<ValueOf<Cell>>(as_if_all(value, existing, operation.positions()));
  } else {
    throw std::logic_error("pooled atoms have integer cells");
  }
}

bool GapReader::touches(const AtomList& atoms, std::size_t atom, std::uint32_t row, Mark mark) const {
  const RowMask* const mask_of_row = table_.mask(row);
  if (mask_of_row == nullptr) return false;
  const auto [list, number] = resolve(atoms, atom);
  const Operation operation = list->operation_of(number);
  const std::size_t begin = list->begin[number], terms = list->terms(number);
  const std::uint32_t* const cell = &list->cell[begin];
  const double* const weight = &list->weight[begin];
  if (!operation.pooled()) return mask_of_row->touches(cell, weight, terms, mark);
  if (!mask_of_row->has_absent()) return false;
  const std::size_t own = operation.own(terms);
  bool exists = false;
  each_position(operation, [&](std::size_t moved) {
    if (exists) return;
    bool whole = true;
    for (std::size_t t = 0; whole && t < terms; t += own)
      whole = !mask_of_row->touches(cell + t, weight + t, own, Mark::absent, moved);
    exists = whole;
  });
  return !exists;
}

template <class Value>
std::optional<Value> GapReader::pooled_value(const AtomList& atoms, std::size_t atom, std::uint32_t row) const {
  const auto [list, number] = resolve(atoms, atom);
  const std::size_t begin = list->begin[number];
  std::optional<Value> found;
  with_cell_type(table_.type(), [&](auto cell) {
    using Cell = decltype(cell);
    if constexpr (std::is_same_v<ValueOf<Cell>, Value>)
      found = value_of_existing(reinterpret_cast<const Cell*>(table_.buffer().row(row)), *table_.mask(row), &list->cell[begin],
                                &list->weight[begin], list->terms(number), list->operation_of(number));
  });
  return found;
}

template class GapProjection<std::int32_t>;
template class GapProjection<std::int64_t>;
template class GapProjection<double>;
template std::optional<std::int32_t> GapReader::pooled_value(const AtomList&, std::size_t, std::uint32_t) const;
template std::optional<std::int64_t> GapReader::pooled_value(const AtomList&, std::size_t, std::uint32_t) const;
template std::optional<double> GapReader::pooled_value(const AtomList&, std::size_t, std::uint32_t) const;
template std::optional<std::int32_t> value_of_existing(const std::int16_t*, const RowMask&, const std::uint32_t*, const double*,
                                                       std::size_t, const Operation&);
template std::optional<std::int32_t> value_of_existing(const std::int32_t*, const RowMask&, const std::uint32_t*, const double*,
                                                       std::size_t, const Operation&);
template std::optional<std::int64_t> value_of_existing(const std::int64_t*, const RowMask&, const std::uint32_t*, const double*,
                                                       std::size_t, const Operation&);
template std::optional<double> value_of_existing(const double*, const RowMask&, const std::uint32_t*, const double*, std::size_t,
                                                 const Operation&);

}  // namespace morf
