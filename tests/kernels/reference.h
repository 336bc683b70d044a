// SPDX-License-Identifier: Apache-2.0
//
// What reductions must give, written as slowly and plainly as possible and sharing no code with the kernels: narrow
// formats are tables of doubles made from their definition, and rounding is a search in the table.
#pragma once

#include "base/types.h"
#include "kernels/kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ccom::reference {

// One of the four narrow floating types.
class Format {
 public:
  static const Format& of(DataType type);

  double value(uint32_t code) const { return values_[code]; }
  // The nearest code, ties to the even one.
  uint32_t nearest(double value) const;
  uint32_t codes() const { return static_cast<uint32_t>(values_.size()); }
  uint32_t nan() const { return nan_; }

 private:
  Format(int exponent_bits, int mantissa_bits, bool has_infinity);
  uint32_t nearest_magnitude(double value) const;

  std::vector<double> values_;
  std::vector<double> scale_;  // the finite magnitudes in order, and what would follow if the exponent went on
  uint32_t nan_;
};

std::vector<std::byte> reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, size_t count);

}  // namespace ccom::reference
