// Augmentation: copies of samples, moved and bent a little, that trees are trained on too. They are made by basic operations
// alone, so that copies are the same on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/portable_math.hpp"

namespace morf {

// The place in a sample that a pixel of the copy shows: rows and columns count from the centre.
struct Affine {
  double row_row = 1.0, row_column = 0.0, column_row = 0.0, column_column = 1.0, down = 0.0, right = 0.0;
};

// Values between pixels are interpolated, and those outside are zero. `stride` is the distance between neighbours in a line.
inline void warp_plane(const double* in, std::size_t height, std::size_t width, std::size_t stride, const Affine& a,
                       double* out) {
  const double middle_row = 0.5 * static_cast<double>(height - 1), middle_column = 0.5 * static_cast<double>(width - 1);
  const auto h = static_cast<std::int64_t>(height), w = static_cast<std::int64_t>(width);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return r >= 0 && r < h && c >= 0 && c < w ? in[(r * w + c) * stride] : 0.0;
  };
  for (std::int64_t row = 0; row < h; ++row)
    for (std::int64_t column = 0; column < w; ++column) {
      const double y = static_cast<double>(row) - middle_row, x = static_cast<double>(column) - middle_column;
      const double r = (a.row_row * y + a.row_column * x) + (a.down + middle_row),
                   c = (a.column_row * y + a.column_column * x) + (a.right + middle_column);
      const double low_r = std::floor(r), low_c = std::floor(c), f = r - low_r, g = c - low_c;
      double value = 0.0;
      if (low_r >= -1.0 && low_r < static_cast<double>(h) && low_c >= -1.0 && low_c < static_cast<double>(w)) {
        const auto i = static_cast<std::int64_t>(low_r), j = static_cast<std::int64_t>(low_c);
        value = (1.0 - f) * ((1.0 - g) * at(i, j) + g * at(i, j + 1)) + f * ((1.0 - g) * at(i + 1, j) + g * at(i + 1, j + 1));
      }
      out[(row * w + column) * stride] = value;
    }
}

// The time of a series that a step of the copy shows: it is stretched about the middle, bent by half a wave, and moved.
struct Bend {
  double stretch = 1.0, wave = 0.0, move = 0.0, amplitude = 1.0;
};

// If `around`, the series goes on at its start after its end; else its border values are repeated. `stride` is the distance
// between steps.
inline void warp_series(const double* in, std::size_t length, std::size_t stride, const Bend& b, bool around, double* out) {
  const auto n = static_cast<std::int64_t>(length);
  const double middle = 0.5 * static_cast<double>(n - 1), last = static_cast<double>(n - 1), pi = 3.141592653589793;
  const auto at = [&](std::int64_t t) {
    if (around) t = ((t % n) + n) % n;
    else t = std::clamp<std::int64_t>(t, 0, n - 1);
    return in[t * stride];
  };
  for (std::int64_t t = 0; t < n; ++t) {
    const double x = static_cast<double>(t);
    const double bent = last > 0.0 ? b.wave * portable_sine(pi * (x / last)) : 0.0;
    double place = (b.stretch * (x - middle) + middle) + (bent + b.move);
    place = std::clamp(place, -4.0 * last - 4.0, 5.0 * last + 4.0);
    const double low = std::floor(place), f = place - low;
    const auto i = static_cast<std::int64_t>(low);
    out[t * stride] = b.amplitude * ((1.0 - f) * at(i) + f * at(i + 1));
  }
}

}  // namespace morf
