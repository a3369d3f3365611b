// Random numbers, portable functions, and copies of samples.
#include "base/inverse_root.hpp"
#include "base/portable_math.hpp"
#include "base/random.hpp"
#include "data/augmentation.hpp"
#include "python/glue.hpp"

namespace {

template <class Function>
auto apply_to(const Vector<double>& x, Function function) {
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(x.data()[i]);
  return to_numpy(std::move(out));
}

// The parameters of a row are angle, scale, horizontal shear, shift down and right. Planes of height x width x stride follow one another.
void warp_images(const Matrix<double>& x, std::size_t height, std::size_t width, std::size_t stride,
                 const Matrix<double>& parameters, const OutMatrix<double>& out) {
  require_shape(out, x.shape(0), x.shape(1), "copies have another shape");
  require_shape(parameters, x.shape(0), 5, "images have five parameters each");
  require(height * width * stride > 0 && x.shape(1) % (height * width * stride) == 0, "no images of that shape");
  nb::gil_scoped_release release;
  for (std::size_t row = 0; row < x.shape(0); ++row) {
    const double* const p = parameters.data() + row * 5;
    const double sine = portable_sine(p[0]), cosine = portable_cosine(p[0]), s = p[1];
    const Affine affine{s * cosine, s * -sine, s * (sine + p[2] * cosine), s * (cosine - p[2] * sine), p[3], p[4]};
    for (std::size_t plane = 0; plane < x.shape(1); plane += height * width * stride)
      for (std::size_t k = 0; k < stride; ++k)
        warp_plane(x.data() + row * x.shape(1) + plane + k, height, width, stride, affine,
                   out.data() + row * x.shape(1) + plane + k);
  }
}

// The parameters of a row are stretch, wave, move and amplitude.
void warp_all_series(const Matrix<double>& x, std::size_t length, std::size_t stride, const Matrix<double>& parameters,
                     bool around, const OutMatrix<double>& out) {
  require_shape(out, x.shape(0), x.shape(1), "copies have another shape");
  require_shape(parameters, x.shape(0), 4, "series have four parameters each");
  require(length * stride > 0 && x.shape(1) % (length * stride) == 0, "no series of that length");
  nb::gil_scoped_release release;
  for (std::size_t row = 0; row < x.shape(0); ++row) {
    const double* const p = parameters.data() + row * 4;
    for (std::size_t sensor = 0; sensor < x.shape(1); sensor += length * stride)
      for (std::size_t k = 0; k < stride; ++k)
        warp_series(x.data() + row * x.shape(1) + sensor + k, length, stride, {p[0], p[1], p[2], p[3]}, around,
                    out.data() + row * x.shape(1) + sensor + k);
  }
}

}  // namespace

void bind_functions(nb::module_& m) {
  m.def(
      "inverse_root",
      [](const Matrix<double>& matrix, double least) {
        const std::size_t n = matrix.shape(0);
        require(n > 0 && matrix.shape(1) == n && least > 0.0, "no symmetric matrix");
        return to_numpy(inverse_root({matrix.data(), matrix.data() + n * n}, n, least));
      },
      "matrix"_a, "least"_a, "The inverse root of a symmetric matrix, row after row; eigenvalues are at least `least`.");
  nb::enum_<Purpose>(m, "Purpose", "What random numbers are for that belong to no single tree.")
      .value("HELD_OUT_ROWS", Purpose::held_out_rows, "rows of boosting that judge when to stop")
      .value("ROUND_COPIES", Purpose::round_copies, "copies that a generation of boosting learns from")
      .value("ROUND_SUBSETS", Purpose::round_subsets, "atoms that some rounds of boosting share")
      .value("SHARED_ATOMS", Purpose::shared_atoms, "atoms that all trees share")
      .value("SAMPLE_OF_BLOCKS", Purpose::sample_of_blocks, "rows that represent samples in blocks");
  m.def(
      "derive", [](std::uint64_t key, std::uint64_t index) { return derive(key, index); }, "key"_a, "index"_a,
      "Return the key of a numbered stream below a key.");
  m.def(
      "tree_key", [](std::uint64_t seed, std::uint64_t tree) { return tree_key(seed, tree); }, "seed"_a, "tree"_a,
      "Return the key of a tree's random numbers, or of a purpose's.");
  m.def("tree_key", [](std::uint64_t seed, Purpose purpose) { return tree_key(seed, purpose); }, "seed"_a, "purpose"_a);
  m.def(
      "stream",
      [](std::uint64_t key, std::size_t n) {
        std::vector<std::uint64_t> numbers(n);
        Stream stream(key);
        for (auto& x : numbers) x = stream.next();
        return to_numpy(std::move(numbers));
      },
      "key"_a, "n"_a, "Return the first n numbers of a key's stream.");
  m.def(
      "uniforms",
      [](std::uint64_t key, const Vector<std::uint32_t>& ranks, const OutMatrix<double>& out) {
        require(out.shape(0) == ranks.size(), "numbers need one row per rank");
        const std::size_t count = out.shape(1);
        for (std::size_t i = 0; i < ranks.size(); ++i) {
          Stream stream(derive(derive(key, Purpose::copy), ranks.data()[i]));
          for (std::size_t k = 0; k < count; ++k) out.data()[i * count + k] = stream.unit();
        }
      },
      "key"_a, "ranks"_a, nb::arg("out").noconvert(), "Write uniform numbers in [0, 1), a row of them for each numbered sample.");
  m.def(
      "exp", [](const Vector<double>& x) { return apply_to(x, portable_exp); }, "x"_a,
      "Return exponentials, the same on every platform.");
  m.def(
      "log", [](const Vector<double>& x) { return apply_to(x, portable_log); }, "x"_a,
      "Return logarithms of positive numbers, the same on every platform.");
  m.def(
      "softmax",
      [](const Matrix<double>& scores, const OutMatrix<double>& out) {
        require_shape(out, scores.shape(0), scores.shape(1), "scores have another shape");
        nb::gil_scoped_release release;
        for (std::size_t row = 0; row < scores.shape(0); ++row)
          softmax(scores.data() + row * scores.shape(1), scores.shape(1), out.data() + row * scores.shape(1));
      },
      "scores"_a, nb::arg("out").noconvert(), "Write the probabilities of each row's outputs.");
  m.def(
      "logistic",
      [](const Matrix<double>& scores, const OutMatrix<double>& out) {
        require_shape(out, scores.shape(0), scores.shape(1), "scores have another shape");
        nb::gil_scoped_release release;
        for (std::size_t i = 0; i < scores.size(); ++i) out.data()[i] = logistic(scores.data()[i]);
      },
      "scores"_a, nb::arg("out").noconvert(), "Write the probability of each score.");
  m.def("warp_images", &warp_images, "x"_a, "height"_a, "width"_a, "stride"_a, "parameters"_a, nb::arg("out").noconvert(),
        "Write copies of images, turned, scaled, sheared and shifted.");
  m.def("warp_series", &warp_all_series, "x"_a, "length"_a, "stride"_a, "parameters"_a, "around"_a, nb::arg("out").noconvert(),
        "Write copies of series, stretched, bent, moved and amplified.");
}
