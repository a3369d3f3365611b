// Samples as they are handed to the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace morf {

// Rows of features, one after another, of one of four types.
class Samples {
 public:
  enum class Type : std::uint8_t { u8, i64, f32, f64 };

  // With `gaps` some values may be missing: they are NaN.
  template <class In>
  Samples(const In* data, std::size_t rows, std::size_t features, bool gaps = false)
      : data_(data), type_(type_of<In>()), gaps_(gaps), rows_(rows), features_(features) {}

  std::size_t rows() const { return rows_; }
  std::size_t features() const { return features_; }
  bool gaps() const { return gaps_; }

  // Calls `use` with a typed pointer to the features of a row.
  template <class Use>
  decltype(auto) with_row(std::size_t row, Use use) const {
    const std::size_t first = row * features_;
    switch (type_) {
      case Type::u8: return use(static_cast<const std::uint8_t*>(data_) + first);
      case Type::i64: return use(static_cast<const std::int64_t*>(data_) + first);
      case Type::f32: return use(static_cast<const float*>(data_) + first);
      case Type::f64: break;
    }
    return use(static_cast<const double*>(data_) + first);
  }

 private:
  template <class In>
  static constexpr Type type_of() {
    if constexpr (std::is_same_v<In, std::uint8_t>) return Type::u8;
    else if constexpr (std::is_same_v<In, std::int64_t>) return Type::i64;
    else if constexpr (std::is_same_v<In, float>) return Type::f32;
    else {
      static_assert(std::is_same_v<In, double>);
      return Type::f64;
    }
  }

  const void* data_;
  Type type_;
  bool gaps_;
  std::size_t rows_, features_;
};

}  // namespace morf
