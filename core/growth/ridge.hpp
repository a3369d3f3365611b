// Ridge regression on the rows of a node.
//
// Columns are integers of at most 8191 in size, and sums of their products are exact. Everything after that is float64 in an
// order that is fixed here (and in tests/oracle_combination.py), so that weights are equal everywhere, bit by bit. Inner loops
// go over independent elements and add in the order of the outer ones: compilers turn them into vectors without any change of the
// result.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/portable_math.hpp"
#include "splitting/node_rows.hpp"

namespace morf {

// The lower factor L of a symmetric positive definite matrix.
class Cholesky {
 public:
  // Of matrix + penalty * identity; matrix[k * size + i] is read for i >= k only. False if it is not positive definite.
  bool factor(const std::vector<double>& matrix, std::size_t size, double penalty) {
    size_ = size;
    reserve_at_least(column_, size * size);
    reserve_at_least(row_, size * size);
    reserve_at_least(inverse_, size);
    for (std::size_t j = 0; j < size; ++j) {
      double* const made = &column_[j * size];
      for (std::size_t i = j; i < size; ++i) made[i] = matrix[j * size + i];
      made[j] += penalty;
      std::size_t k = 0;
      for (; k + 4 <= j; k += 4) subtract(made, &column_[k * size], j);
      for (; k < j; ++k) {
        const double* const other = &column_[k * size];
        const double factor = other[j];
        for (std::size_t i = j; i < size; ++i) made[i] -= factor * other[i];
      }
      if (!(made[j] > 0.0)) return false;
      const double root = std::sqrt(made[j]);
      inverse_[j] = 1.0 / root;
      for (std::size_t i = j; i < size; ++i) made[i] *= inverse_[j];
      for (k = 0; k < j; ++k) row_[j * size + k] = column_[k * size + j];
    }
    return true;
  }

  // b becomes L^-1 b.
  void solve_lower(double* b) const {
    for (std::size_t k = 0; k < size_; ++k) {
      const double* const made = &column_[k * size_];
      const double found = b[k] *= inverse_[k];
      for (std::size_t i = k + 1; i < size_; ++i) b[i] -= found * made[i];
    }
  }

  // b becomes L'^-1 b.
  void solve_upper(double* b) const {
    for (std::size_t k = size_; k-- > 0;) {
      const double* const made = &row_[k * size_];
      const double found = b[k] *= inverse_[k];
      for (std::size_t i = 0; i < k; ++i) b[i] -= found * made[i];
    }
  }

  static constexpr std::size_t block = 16;  // vectors that are solved together

  // With Z = L^-1 X for `count` columns of X, X(j, i) = x[j * stride + i]: squares[i] is the sum over j of Z(j, i)^2,
  // products[i] that of c[j] Z(j, i). X = nullptr is the identity. `stride`, squares and products have whole blocks.
  void whiten(const double* x, std::size_t stride, std::size_t count, const double* c, double* squares, double* products) {
    reserve_at_least(solved_, size_ * block);
    for (std::size_t first = 0; first < count; first += block) {
      double square[block] = {}, product[block] = {};
      // Above its diagonal the inverse is zero.
      const std::size_t begin = x == nullptr ? first : 0;
      for (std::size_t j = begin; j < size_; ++j) {
        double sum[block];
        for (std::size_t b = 0; b < block; ++b)
          sum[b] = x == nullptr ? static_cast<double>(first + b == j) : x[j * stride + first + b];
        const double* const made = &row_[j * size_];
        for (std::size_t k = begin; k < j; ++k) {
          const double factor = made[k];
          const double* const before = &solved_[k * block];
          for (std::size_t b = 0; b < block; ++b) sum[b] -= factor * before[b];
        }
        for (std::size_t b = 0; b < block; ++b) {
          sum[b] *= inverse_[j];
          square[b] += sum[b] * sum[b];
          product[b] += c[j] * sum[b];
          solved_[j * block + b] = sum[b];
        }
      }
      std::copy_n(square, block, squares + first);
      std::copy_n(product, block, products + first);
    }
  }

 private:
  // Four columns at once, one after the other in each element.
  void subtract(double* made, const double* others, std::size_t j) const {
    const double *const a = others, *const b = a + size_, *const c = b + size_, *const d = c + size_;
    const double fa = a[j], fb = b[j], fc = c[j], fd = d[j];
    for (std::size_t i = j; i < size_; ++i) made[i] = made[i] - fa * a[i] - fb * b[i] - fc * c[i] - fd * d[i];
  }

  std::size_t size_ = 0;
  std::vector<double> column_, row_;  // L by columns with the diagonal, and by rows without
  std::vector<double> inverse_;  // of the diagonal
  std::vector<double> solved_;
};

// Ridge regression with an intercept and a penalty chosen by the leave-one-out error, in closed form.
class Ridge {
 public:
  // Penalties are relative to the mean sum of squares of the centred columns, and the earlier wins among equals.
  explicit Ridge(std::vector<double> penalties) : penalties_(std::move(penalties)) {}

  // Learns from columns[j * stride + i], row i of column j. False where nothing can be learned. Sums of `rows` targets
  // must fit 62 bits.
  bool learn(const std::int32_t* columns, std::size_t stride, std::size_t rows, std::size_t count, const std::int64_t* target) {
    rows_ = rows;
    count_ = count;
    if (!centre_target(target) || !measure(columns, stride)) return false;
    const bool found = rows >= count ? learn_primal(columns, stride) : learn_dual(columns, stride);
    return found && std::all_of(weight_.begin(), weight_.begin() + count, [](double w) { return std::isfinite(w); });
  }

  const double* weights() const { return weight_.data(); }
  double error() const { return error_; }  // leave-one-out, the sum of squares, in units of (rows * target)^2
  double penalty() const { return penalty_; }  // the chosen one

 private:
  static constexpr std::size_t exact = 32;  // products of 8191 * 8191 whose sum fits 32 bits

  // Multiples by the number of rows stay whole numbers.
  bool centre_target(const std::int64_t* target) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rows_; ++i) sum += target[i];
    reserve_at_least(target_, rows_);
    bool varies = false;
    for (std::size_t i = 0; i < rows_; ++i) {
      target_[i] = static_cast<double>(static_cast<std::int64_t>(rows_) * target[i] - sum);
      varies |= target[i] != target[0];
    }
    return varies;
  }

  // Sums of the columns, and the unit of penalties.
  bool measure(const std::int32_t* columns, std::size_t stride) {
    reserve_at_least(sum_, count_);
    reserve_at_least(mean_, count_);
    const auto n = static_cast<std::int64_t>(rows_);
    std::int64_t spread = 0;
    for (std::size_t j = 0; j < count_; ++j) {
      const std::int32_t* const column = columns + j * stride;
      std::int64_t sum = 0, squares = 0;
      for (std::size_t i = 0; i < rows_; ++i) {
        sum += column[i];
        squares += column[i] * column[i];
      }
      sum_[j] = sum;
      mean_[j] = static_cast<double>(sum) / static_cast<double>(n);
      spread += n * squares - sum * sum;
    }
    unit_ = static_cast<double>(spread) / static_cast<double>(n) / static_cast<double>(count_);
    return spread > 0;
  }

  static std::int64_t dot(const std::int16_t* a, const std::int16_t* b, std::size_t size) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < size; i += exact) {
      std::int32_t sum = 0;
      for (std::size_t e = 0; e < exact; ++e) sum += std::int32_t{a[i + e]} * b[i + e];
      total += sum;
    }
    return total;
  }

  static constexpr std::size_t whole(std::size_t size, std::size_t of) { return (size + of - 1) / of * of; }

  bool learn_primal(const std::int32_t* columns, std::size_t stride) {
    const std::size_t n = rows_, d = count_, length = whole(n, exact), wide = whole(n, Cholesky::block);
    cells_.assign(d * length, 0);
    centred_.assign(d * wide, 0.0);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < n; ++i) {
        cells_[j * length + i] = static_cast<std::int16_t>(columns[j * stride + i]);
        centred_[j * wide + i] = static_cast<double>(columns[j * stride + i]) - mean_[j];
      }
    reserve_at_least(matrix_, d * d);
    const auto rows = static_cast<std::int64_t>(n);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t k = j; k < d; ++k) {
        const std::int64_t products = dot(&cells_[j * length], &cells_[k * length], length);
        matrix_[j * d + k] = static_cast<double>(rows * products - sum_[j] * sum_[k]) / static_cast<double>(rows);
      }
    multiply_target(wide);
    return choose([&](double penalty) {
      if (!factor_.factor(matrix_, d, penalty)) return infinity;
      solution_.assign(product_.begin(), product_.begin() + d);
      factor_.solve_lower(solution_.data());
      factor_.whiten(centred_.data(), wide, n, solution_.data(), square_.data(), fit_.data());
      const double others = 1.0 - 1.0 / static_cast<double>(n);
      double error = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const double left = others - square_[i], residual = target_[i] - fit_[i];
        if (!(left > 0.0)) return infinity;
        error += (residual / left) * (residual / left);
      }
      factor_.solve_upper(solution_.data());
      return error;
    });
  }

  // product_[j] is the sum over rows, in their order, of centred column times target; a few columns side by side.
  void multiply_target(std::size_t wide) {
    constexpr std::size_t together = 8;
    reserve_at_least(product_, count_);
    for (std::size_t first = 0; first < count_; first += together) {
      const std::size_t some = std::min(together, count_ - first);
      double sum[together] = {};
      const double* column[together];
      for (std::size_t b = 0; b < together; ++b) column[b] = &centred_[(first + std::min(b, some - 1)) * wide];
      for (std::size_t i = 0; i < rows_; ++i)
        for (std::size_t b = 0; b < together; ++b) sum[b] += column[b][i] * target_[i];
      std::copy_n(sum, some, product_.begin() + first);
    }
  }

  // Fewer rows than columns: weights are a combination of the rows.
  bool learn_dual(const std::int32_t* columns, std::size_t stride) {
    const std::size_t n = rows_, d = count_, length = whole(d, exact);
    cells_.assign(n * length, 0);
    for (std::size_t j = 0; j < d; ++j)
      for (std::size_t i = 0; i < n; ++i) cells_[i * length + j] = static_cast<std::int16_t>(columns[j * stride + i]);
    products_.resize(n * n);
    row_sum_.assign(n, 0);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = i; k < n; ++k) {
        const std::int64_t products = dot(&cells_[i * length], &cells_[k * length], length);
        products_[i * n + k] = products;
        row_sum_[i] += products;
        if (k != i) row_sum_[k] += products;
      }
    for (std::size_t i = 0; i < n; ++i) total += row_sum_[i];
    reserve_at_least(matrix_, n * n);
    const auto rows = static_cast<std::int64_t>(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = i; k < n; ++k) {
        const std::int64_t centred = rows * (rows * products_[i * n + k] - row_sum_[i] - row_sum_[k]) + total;
        matrix_[i * n + k] = static_cast<double>(centred) / static_cast<double>(rows * rows);
      }
    const bool found = choose([&](double penalty) {
      if (!factor_.factor(matrix_, n, penalty)) return infinity;
      lower_.assign(target_.begin(), target_.begin() + n);
      factor_.solve_lower(lower_.data());
      factor_.whiten(nullptr, 0, n, lower_.data(), square_.data(), fit_.data());
      double error = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const double left = penalty * square_[i] - 1.0 / static_cast<double>(n), residual = penalty * fit_[i];
        if (!(left > 0.0)) return infinity;
        error += (residual / left) * (residual / left);
      }
      solution_.assign(fit_.begin(), fit_.begin() + n);
      return error;
    });
    if (!found) return false;
    product_.assign(weight_.begin(), weight_.begin() + n);
    weight_.assign(d, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      const double share = product_[i];
      const std::int16_t* const row = &cells_[i * length];
      for (std::size_t j = 0; j < d; ++j) weight_[j] += share * (static_cast<double>(row[j]) - mean_[j]);
    }
    return true;
  }

  // `attempt` returns the error of a penalty and leaves what it found in solution_; weight_ becomes the best of these.
  template <class Attempt>
  bool choose(Attempt attempt) {
    reserve_at_least(square_, whole(rows_, Cholesky::block));
    reserve_at_least(fit_, whole(rows_, Cholesky::block));
    error_ = infinity;
    for (const double relative : penalties_) {
      const double error = attempt(relative * unit_);
      if (!(error < error_)) continue;
      error_ = error;
      penalty_ = relative;
      weight_.swap(solution_);
    }
    return error_ < infinity;
  }

  std::vector<double> penalties_;
  std::size_t rows_ = 0, count_ = 0;
  double unit_ = 0.0, error_ = 0.0, penalty_ = 0.0;
  Cholesky factor_;
  std::vector<std::int64_t> sum_, products_, row_sum_;
  std::vector<std::int16_t> cells_;  // columns, or rows, of which products are summed
  std::vector<double> mean_, target_, centred_, matrix_, product_, lower_, square_, fit_, solution_, weight_;
};

}  // namespace morf
