// The inverse root of a symmetric matrix, in an order of operations that is the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace morf {

// Rotates rows or columns p and q, which are `step` apart from element to element.
inline void rotate(double* p, double* q, std::size_t count, std::size_t step, double cosine, double sine) {
  for (std::size_t k = 0; k < count; ++k, p += step, q += step) {
    const double a = *p, b = *q;
    *p = cosine * a - sine * b;
    *q = sine * a + cosine * b;
  }
}

// Finds the eigenvalues of a symmetric matrix of n rows, which end on its diagonal, and the eigenvectors, as rows, by Jacobi's
// cyclic rotations.
inline std::vector<double> diagonalise(std::vector<double>& matrix, std::size_t n) {
  constexpr int most_sweeps = 60;  // a few times what any matrix needs
  std::vector<double> vectors(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) vectors[i * n + i] = 1.0;
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    double beside = 0.0, total = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const double square = matrix[i * n + j] * matrix[i * n + j];
        total += square;
        if (i != j) beside += square;
      }
    if (!(beside > 1e-30 * total)) break;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double off = matrix[p * n + q];
        if (off == 0.0) continue;
        const double theta = (matrix[q * n + q] - matrix[p * n + p]) / (2.0 * off);
        const double size = 1.0 / (std::abs(theta) + std::sqrt(theta * theta + 1.0)), tangent = theta < 0.0 ? -size : size;
        const double cosine = 1.0 / std::sqrt(tangent * tangent + 1.0), sine = tangent * cosine;
        rotate(&matrix[p], &matrix[q], n, n, cosine, sine);
        rotate(&matrix[p * n], &matrix[q * n], n, 1, cosine, sine);
        rotate(&vectors[p * n], &vectors[q * n], n, 1, cosine, sine);
      }
  }
  return vectors;
}

// Eigenvalues below `least` count as that.
inline std::vector<double> inverse_root(std::vector<double> matrix, std::size_t n, double least) {
  const std::vector<double> vectors = diagonalise(matrix, n);
  std::vector<double> root(n * n, 0.0);
  for (std::size_t k = 0; k < n; ++k) {
    const double* const vector = &vectors[k * n];
    const double scale = 1.0 / std::sqrt(std::max(matrix[k * n + k], least));
    for (std::size_t i = 0; i < n; ++i) {
      const double weight = scale * vector[i];
      for (std::size_t j = 0; j < n; ++j) root[i * n + j] += weight * vector[j];
    }
  }
  return root;
}

}  // namespace morf
