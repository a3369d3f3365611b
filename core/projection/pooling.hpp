// Projection of atoms with operations: responses along a window, eight or more positions per instruction, and what operations
// make of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/random.hpp"
#include "projection/projection.hpp"

namespace morf {

// What becomes of a response: it is written, added to what is there, or takes its place if it is higher.
enum class Into { place, sum, highest };

// The sums over terms of weight[t] * from[t][p], into out[p]. Plain loops, which compilers turn into vectors. There is no
// instruction that multiplies vectors of 64-bit integers: `signs` are masks of all ones where a weight of size one is negative.
template <std::size_t terms, Into into, bool signs, class Cell>
void respond_to_terms(const Cell* const* from, const SumOf<Cell>* weight, std::size_t count, Cell* __restrict out) {
  const Cell *a = from[0], *b = from[terms > 1 ? 1 : 0], *c = from[terms > 2 ? 2 : 0], *d = from[terms > 3 ? 3 : 0];
  const SumOf<Cell> u = weight[0], v = weight[terms > 1 ? 1 : 0], w = weight[terms > 2 ? 2 : 0], x = weight[terms > 3 ? 3 : 0];
  const auto times = [](SumOf<Cell> factor, Cell cell) {
    const auto value = static_cast<SumOf<Cell>>(cell);
    return signs ? (value ^ factor) - factor : factor * value;
  };
  for (std::size_t p = 0; p < count; ++p) {
    SumOf<Cell> sum = times(u, a[p]);
    if constexpr (terms > 1) sum += times(v, b[p]);
    if constexpr (terms > 2) sum += times(w, c[p]);
    if constexpr (terms > 3) sum += times(x, d[p]);
    if constexpr (into == Into::sum) sum += static_cast<SumOf<Cell>>(out[p]);
    const auto response = static_cast<Cell>(sum);
    if constexpr (into == Into::highest) out[p] = out[p] > response ? out[p] : response;
    else out[p] = response;
  }
}

// The responses of a linear atom that is moved `count` times by `stride` cells. Only those of up to four terms, with a stride of
// one, need not be written.
template <Into into = Into::place, class Cell>
void respond(const Cell* row, const std::uint32_t* cell, const double* weight, std::size_t terms, std::size_t stride,
             std::size_t count, Cell* out) {
  using Sum = SumOf<Cell>;
  if (into != Into::place && (terms > 4 || stride != 1)) throw std::logic_error("such responses are written first");
  if constexpr (std::is_integral_v<Cell>) {
    if (stride != 1) {
      for (std::size_t p = 0; p < count; ++p) out[p] = static_cast<Cell>(sum_terms(row + p * stride, cell, weight, 0, terms));
      return;
    }
    for (std::size_t t = 0; t < terms; t += 4) {  // four at a time
      const Cell* from[4]{};
      Sum weights[4]{};
      const std::size_t some = std::min<std::size_t>(terms - t, 4);
      for (std::size_t k = 0; k < some; ++k) {
        from[k] = row + cell[t + k];
        weights[k] = static_cast<Sum>(static_cast<std::int64_t>(weight[t + k]));
      }
      const auto put_signed = [&]<Into here, bool signs>() {
        switch (some) {
          case 1: return respond_to_terms<1, here, signs>(from, weights, count, out);
          case 2: return respond_to_terms<2, here, signs>(from, weights, count, out);
          case 3: return respond_to_terms<3, here, signs>(from, weights, count, out);
          default: return respond_to_terms<4, here, signs>(from, weights, count, out);
        }
      };
      const auto put = [&]<Into here>() {
        if constexpr (sizeof(Cell) == 8) {
          if (std::all_of(weights, weights + some, [](Sum w) { return w == Sum{1} || w == ~Sum{0}; })) {
            for (std::size_t k = 0; k < some; ++k) weights[k] = weights[k] == Sum{1} ? Sum{0} : ~Sum{0};
            return put_signed.template operator()<here, true>();
          }
        }
        put_signed.template operator()<here, false>();
      };
      if (t == 0) put.template operator()<into>();
      else put.template operator()<Into::sum>();
    }
    if (terms == 0) std::fill_n(out, count, Cell{0});
  } else {
    throw std::logic_error("pooled atoms have integer cells");
  }
}

// Takes in responses and gives their maximum, minimum, sum, or the number of those above a bias.
template <class Cell>
class Reducer {
 public:
  using Value = ValueOf<Cell>;

  // A bias beyond the cell's type, from training data of larger numbers, is above or below all responses: these never reach the
  // lowest value of the type.
  Reducer(Op op, std::int64_t bias)
      : op_(op), bias_(static_cast<Cell>(
                     std::clamp<std::int64_t>(bias, std::numeric_limits<Cell>::lowest(), std::numeric_limits<Cell>::max()))) {
    if (op == Op::max) extreme_ = std::numeric_limits<Cell>::lowest();
    if (op == Op::min) extreme_ = std::numeric_limits<Cell>::max();
  }

  void take(const Cell* response, std::size_t count) {
    Cell extreme = extreme_;
    switch (op_) {
      case Op::max:
        for (std::size_t p = 0; p < count; ++p) extreme = response[p] > extreme ? response[p] : extreme;
        break;
      case Op::min:
        for (std::size_t p = 0; p < count; ++p) extreme = response[p] < extreme ? response[p] : extreme;
        break;
      case Op::mean: {
        SumOf<Cell> sum = 0;
        for (std::size_t p = 0; p < count; ++p) sum += static_cast<SumOf<Cell>>(response[p]);
        sum_ += sum;
        break;
      }
      default: {
        SumOf<Cell> above = 0;
        const Cell bias = bias_;
        for (std::size_t p = 0; p < count; ++p) above += response[p] > bias;
        sum_ += above;
      }
    }
    extreme_ = extreme;
  }

  void take_wins(const Cell* response, const Cell* highest, std::size_t count) {
    SumOf<Cell> wins = 0;
    for (std::size_t p = 0; p < count; ++p) wins += response[p] > highest[p];
    sum_ += wins;
  }

  Value value() const { return op_ == Op::max || op_ == Op::min ? static_cast<Value>(extreme_) : value_of_sum<Cell>(sum_); }

 private:
  Op op_;
  Cell bias_, extreme_ = 0;
  SumOf<Cell> sum_ = 0;
};

// The value of an atom of any operation.
template <class Cell>
ValueOf<Cell> atom_value(const Cell* row, const std::uint32_t* cell, const double* weight, std::size_t terms,
                         const Operation& operation) {
  if (operation.op == Op::none) return sum_terms(row, cell, weight, 0, terms);
  if constexpr (std::is_integral_v<Cell>) {
    if (operation.op == Op::variance) {  // the first half of the terms sums values, the other their squares times the area
      using Sum = SumOf<Cell>;
      Sum sum = 0, squares = 0;
      for (std::size_t t = 0; t < terms; ++t)
        (2 * t < terms ? sum : squares) += static_cast<Sum>(static_cast<std::int64_t>(weight[t])) *
                                           static_cast<Sum>(row[cell[t]]);
      return value_of_sum<Cell>(squares - sum * sum);
    }
    constexpr std::size_t some = 256;
    Cell response[some], rival[some], highest[some];
    const std::size_t own = operation.own(terms);
    Reducer<Cell> reducer(operation.op, operation.bias);
    const auto [outer, inner] = operation.window;
    for (std::size_t i = 0; i < outer.count; ++i)
      for (std::size_t j = 0; j < inner.count; j += some) {
        const std::size_t count = std::min(some, inner.count - j);
        const Cell* const at = row + i * outer.stride + j * inner.stride;
        respond(at, cell, weight, own, inner.stride, count, response);
        if (operation.op != Op::win) {
          reducer.take(response, count);
          continue;
        }
        respond(at, cell + own, weight + own, own, inner.stride, count, highest);
        for (std::size_t t = 2 * own; t < terms; t += own) {
          if (own <= 4 && inner.stride == 1) {
            respond<Into::highest>(at, cell + t, weight + t, own, inner.stride, count, highest);
            continue;
          }
          respond(at, cell + t, weight + t, own, inner.stride, count, rival);
          for (std::size_t p = 0; p < count; ++p) highest[p] = highest[p] > rival[p] ? highest[p] : rival[p];
        }
        reducer.take_wins(response, highest, count);
      }
    return reducer.value();
  } else {
    throw std::logic_error("nonlinear atoms have integer cells");
  }
}

// The projection for dictionaries whose atoms may have operations.
template <class Cell>
class PooledProjector final : public Projection<ValueOf<Cell>> {
 public:
  using Value = ValueOf<Cell>;

  explicit PooledProjector(const Table& table) : base_(table.buffer().row(0)), stride_(table.buffer().stride()) {}

  void operator()(const std::uint32_t* rows, std::size_t row_count, const AtomList& atoms, std::size_t first,
                  std::size_t atom_count, Value* values, std::size_t values_stride, Range<Value>* ranges) override {
    for (std::size_t j = 0; j < atom_count; ++j)  // whole blocks hold numbers
      std::fill_n(values + j * values_stride + row_count, whole_blocks(row_count) - row_count, Value{0});
    for (std::size_t i = 0; i < row_count; ++i)
      for (std::size_t j = 0; j < atom_count; ++j) {
        const std::size_t begin = atoms.begin[first + j], terms = atoms.begin[first + j + 1] - begin;
        const Value value = atom_value(row(rows[i]), &atoms.cell[begin], &atoms.weight[begin], terms, atoms.operation[first + j]);
        values[j * values_stride + i] = value;
        Range<Value>& range = ranges[j];
        range = i == 0 ? Range<Value>{value, value} : Range<Value>{std::min(range.min, value), std::max(range.max, value)};
      }
  }

  std::unique_ptr<Projection<Value>> copy() const override { return std::make_unique<PooledProjector>(*this); }

  // A bias is the response of a row of the node, drawn by count among the rows in their order, at the drawn position.
  void set_biases(const std::uint32_t* rows, const std::uint32_t* count, std::size_t row_count, AtomList& atoms,
                  std::size_t first) override {
    ends_.resize(row_count);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < row_count; ++i) ends_[i] = total += count[i];
    for (std::size_t j = first; j < atoms.size(); ++j) {
      Operation& operation = atoms.operation[j];
      if (operation.op != Op::proportion) continue;
      const std::size_t i = std::upper_bound(ends_.begin(), ends_.end(), multiply_high(operation.draw, total)) - ends_.begin();
      const Cell* at = row(rows[i]) + operation.position / operation.window[1].count * operation.window[0].stride +
                       operation.position % operation.window[1].count * operation.window[1].stride;
      operation.bias = static_cast<std::int64_t>(
          sum_terms(at, atoms.cell.data(), atoms.weight.data(), atoms.begin[j], atoms.begin[j + 1]));
    }
  }

 private:
  const Cell* row(std::uint32_t i) const { return reinterpret_cast<const Cell*>(base_ + i * stride_); }

  const std::byte* base_;
  std::size_t stride_;
  std::vector<std::uint64_t> ends_;
};

extern template ValueOf<std::uint8_t> atom_value<std::uint8_t>(const std::uint8_t*, const std::uint32_t*, const double*,
                                                               std::size_t, const Operation&);
extern template ValueOf<std::uint16_t> atom_value<std::uint16_t>(const std::uint16_t*, const std::uint32_t*, const double*,
                                                                 std::size_t, const Operation&);
extern template ValueOf<std::int16_t> atom_value<std::int16_t>(const std::int16_t*, const std::uint32_t*, const double*,
                                                               std::size_t, const Operation&);
extern template ValueOf<std::int32_t> atom_value<std::int32_t>(const std::int32_t*, const std::uint32_t*, const double*,
                                                               std::size_t, const Operation&);
extern template ValueOf<std::int64_t> atom_value<std::int64_t>(const std::int64_t*, const std::uint32_t*, const double*,
                                                               std::size_t, const Operation&);
extern template ValueOf<double> atom_value<double>(const double*, const std::uint32_t*, const double*, std::size_t,
                                                   const Operation&);
extern template void respond<Into::place, std::uint8_t>(const std::uint8_t*, const std::uint32_t*, const double*, std::size_t,
                                                        std::size_t, std::size_t, std::uint8_t*);
extern template void respond<Into::place, std::uint16_t>(const std::uint16_t*, const std::uint32_t*, const double*, std::size_t,
                                                         std::size_t, std::size_t, std::uint16_t*);
extern template void respond<Into::place, std::int16_t>(const std::int16_t*, const std::uint32_t*, const double*, std::size_t,
                                                        std::size_t, std::size_t, std::int16_t*);
extern template void respond<Into::place, std::int32_t>(const std::int32_t*, const std::uint32_t*, const double*, std::size_t,
                                                        std::size_t, std::size_t, std::int32_t*);
extern template void respond<Into::place, std::int64_t>(const std::int64_t*, const std::uint32_t*, const double*, std::size_t,
                                                        std::size_t, std::size_t, std::int64_t*);
extern template class PooledProjector<std::uint8_t>;
extern template class PooledProjector<std::uint16_t>;
extern template class PooledProjector<std::int16_t>;
extern template class PooledProjector<std::int32_t>;
extern template class PooledProjector<std::int64_t>;
extern template class PooledProjector<double>;

}  // namespace morf
