#include "growth/combination.hpp"
#include "growth/ridge.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include "check.hpp"
#include "data.hpp"

using namespace morf;

// Gaussian elimination with pivots: another way than the one under test.
static std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    for (std::size_t j = 0; j < n; ++j) std::swap(a[k * n + j], a[pivot * n + j]);
    std::swap(b[k], b[pivot]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= a[k * n + j] * b[j];
    b[k] /= a[k * n + k];
  }
  return b;
}

struct Data {
  std::size_t n, d;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> target;
  double at(std::size_t i, std::size_t j) const { return columns[j * n + i]; }
};

static Data make(Random& random, std::size_t n, std::size_t d) {
  Data data{n, d, std::vector<std::int32_t>(n * d), std::vector<std::int64_t>(n)};
  for (auto& q : data.columns) q = static_cast<std::int32_t>(random.between(0, 16382)) - 8191;
  for (std::size_t i = 0; i < n; ++i)
    data.target[i] = data.columns[i] + (d > 1 ? data.columns[n + i] : 0) + static_cast<std::int64_t>(random.between(0, 9999));
  return data;
}

static double penalty_unit(const Data& data) {
  double total = 0.0;
  for (std::size_t j = 0; j < data.d; ++j) {
    double mean = 0.0;
    for (std::size_t i = 0; i < data.n; ++i) mean += data.at(i, j) / static_cast<double>(data.n);
    for (std::size_t i = 0; i < data.n; ++i) total += (data.at(i, j) - mean) * (data.at(i, j) - mean);
  }
  return total / static_cast<double>(data.d);
}

// Weights of a ridge regression without one row, and what it gets wrong of that row; all rows for left_out = n.
static std::vector<double> refit(const Data& data, double penalty, std::size_t left_out, double& residual) {
  const std::size_t n = data.n, d = data.d;
  const double rows = static_cast<double>(n - (left_out < n));
  std::vector<double> mean(d, 0.0), a(d * d, 0.0), b(d, 0.0);
  double mean_target = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (i == left_out) continue;
    mean_target += static_cast<double>(data.target[i]) / rows;
    for (std::size_t j = 0; j < d; ++j) mean[j] += data.at(i, j) / rows;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (i == left_out) continue;
    for (std::size_t j = 0; j < d; ++j) {
      b[j] += (data.at(i, j) - mean[j]) * (static_cast<double>(data.target[i]) - mean_target);
      for (std::size_t k = 0; k < d; ++k) a[j * d + k] += (data.at(i, j) - mean[j]) * (data.at(i, k) - mean[k]);
    }
  }
  for (std::size_t j = 0; j < d; ++j) a[j * d + j] += penalty;
  const std::vector<double> weights = solve(a, b);
  if (left_out < n) {
    residual = static_cast<double>(data.target[left_out]) - mean_target;
    for (std::size_t j = 0; j < d; ++j) residual -= weights[j] * (data.at(left_out, j) - mean[j]);
  }
  return weights;
}

static bool near(double a, double b, double scale) { return std::abs(a - b) <= 1e-8 * scale; }

TEST(factors_multiply_back_and_solve) {
  Random random(1);
  for (const std::size_t size : {1, 2, 5, 9, 23}) {
    std::vector<double> matrix(size * size), b(size);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = i; j < size; ++j)
        matrix[i * size + j] = matrix[j * size + i] = static_cast<double>(random.between(0, 100)) / 100;
    for (auto& x : b) x = static_cast<double>(random.between(0, 100));
    std::vector<double> full = matrix;
    for (std::size_t i = 0; i < size; ++i) full[i * size + i] += 50.0;
    Cholesky factor;
    CHECK(factor.factor(matrix, size, 50.0), size);
    std::vector<double> found = b;
    factor.solve_lower(found.data());
    factor.solve_upper(found.data());
    const std::vector<double> expected = solve(full, b);
    for (std::size_t i = 0; i < size; ++i) CHECK(near(found[i], expected[i], 10.0), size, i, found[i], expected[i]);
  }
}

TEST(a_matrix_that_is_not_positive_has_no_factor) {
  Cholesky factor;
  CHECK(!factor.factor({1.0, 2.0, 2.0, 1.0}, 2, 0.0));
}

TEST(weights_and_errors_are_those_of_refits) {
  Random random(2);
  for (const auto& [n, d] :
       std::vector<std::pair<std::size_t, std::size_t>>{{4, 2}, {17, 5}, {33, 33}, {40, 20}, {5, 9}, {18, 40}}) {
    const Data data = make(random, n, d);
    const std::vector<double> grid{10.0, 1.0, 0.1, 0.01};
    double lowest = infinity, chosen = 0.0;
    for (const double relative : grid) {
      double error = 0.0, residual = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        refit(data, relative * penalty_unit(data), i, residual);
        error += residual * residual;
      }
      Ridge alone({relative});
      CHECK(alone.learn(data.columns.data(), n, n, d, data.target.data()), n, d);
      const double rows = static_cast<double>(n);
      CHECK(near(alone.error() / rows / rows, error, error), n, d, relative, alone.error() / rows / rows, error);
      if (error < lowest) lowest = error, chosen = relative;
    }
    Ridge ridge(grid);
    CHECK(ridge.learn(data.columns.data(), n, n, d, data.target.data()));
    CHECK_EQUAL(ridge.penalty(), chosen, n, d);
    double none = 0.0, largest = 0.0;
    const std::vector<double> expected = refit(data, chosen * penalty_unit(data), n, none);
    for (const double w : expected) largest = std::max(largest, std::abs(w));
    for (std::size_t j = 0; j < d; ++j)
      CHECK(near(ridge.weights()[j] / static_cast<double>(n), expected[j], largest), n, d, j, ridge.weights()[j], expected[j]);
  }
}

TEST(nothing_is_learned_from_constants) {
  const std::vector<std::int32_t> same(10, 7), columns{1, 2, 3, 4, 5, 6, 7, 8, 9, 1};
  const std::vector<std::int64_t> target{1, -1, 1, -1, 1}, constant(5, 3);
  Ridge ridge({1.0});
  CHECK(!ridge.learn(same.data(), 5, 5, 2, target.data()));
  CHECK(!ridge.learn(columns.data(), 5, 5, 2, constant.data()));
  CHECK(ridge.learn(columns.data(), 5, 5, 2, target.data()));
}

TEST(the_largest_values_do_not_overflow) {
  const std::size_t n = combination_rows, d = 3;
  std::vector<std::int32_t> columns(n * d);
  std::vector<std::int64_t> target(n);
  for (std::size_t i = 0; i < n; ++i) {
    target[i] = i % 2 ? 1 : -1;
    for (std::size_t j = 0; j < d; ++j) columns[j * n + i] = (i >> j) % 2 ? combination_largest : -combination_largest;
  }
  Ridge ridge({0.01});
  CHECK(ridge.learn(columns.data(), n, n, d, target.data()));
  const std::vector<std::int32_t> weights = whole_weights(ridge.weights(), d);
  CHECK(weights[0] > 60000, weights);
  CHECK(std::abs(weights[1]) < 100 && std::abs(weights[2]) < 100, weights);
}

TEST(whole_weights_use_the_mass_they_have) {
  Random random(3);
  for (const std::size_t count : {1, 2, 100, 5000}) {
    std::vector<double> weights(count);
    for (auto& w : weights) w = (static_cast<double>(random.between(0, 2000)) - 1000.5) * 1e-20;
    std::int64_t mass = 0;
    for (const std::int32_t w : whole_weights(weights.data(), count)) mass += std::abs(w);
    CHECK(mass <= 1 << combination_bits && mass > (1 << combination_bits) / 5, count, mass);
  }
  const std::vector<double> none(3, 0.0);
  CHECK_EQUAL(whole_weights(none.data(), 3), std::vector<std::int32_t>(3, 0));
}
