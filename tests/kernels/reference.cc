// SPDX-License-Identifier: Apache-2.0
#include "reference.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ccom::reference {
namespace {

template <class T>
T at(const std::byte* memory, size_t index) {
  T element;
  std::memcpy(&element, memory + index * sizeof(T), sizeof(T));
  return element;
}

template <class T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

// Sums, products and quotients of floats are correctly rounded when double's are rounded again.
float add(float a, float b) { return static_cast<float>(static_cast<double>(a) + static_cast<double>(b)); }
float multiply(float a, float b) { return static_cast<float>(static_cast<double>(a) * static_cast<double>(b)); }
float divide(float a, float b) { return static_cast<float>(static_cast<double>(a) / static_cast<double>(b)); }
double add(double a, double b) { return a + b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }

template <class T>
T maximum(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T>
T combine_floats(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::Prod: return multiply(a, b);
    case ReduceOp::Max: return maximum(a, b);
    case ReduceOp::Min: return -maximum(-a, -b);
    default: return add(a, b);
  }
}

template <class T>
T reduce_floats(const Reduction& reduction, std::span<const T> elements) {
  T result = elements[0];
  for (const T element : elements.subspan(1)) result = combine_floats(reduction.op, result, element);
  if (reduction.op == ReduceOp::Avg && reduction.divide_by)
    result = divide(result, static_cast<T>(reduction.divide_by));
  return one_nan(result);
}

template <class T>
std::complex<T> reduce_complex(const Reduction& reduction, std::span<const std::complex<T>> elements) {
  std::complex<T> a = elements[0];
  for (const std::complex<T> b : elements.subspan(1)) {
    if (reduction.op == ReduceOp::Prod) {
      const T real = add(multiply(a.real(), b.real()), -multiply(a.imag(), b.imag()));
      const T imaginary = add(multiply(a.real(), b.imag()), multiply(a.imag(), b.real()));
      a = {real, imaginary};
    } else {
      a = {add(a.real(), b.real()), add(a.imag(), b.imag())};
    }
  }
  if (reduction.op == ReduceOp::Avg && reduction.divide_by) {
    const T divisor = static_cast<T>(reduction.divide_by);
    a = {divide(a.real(), divisor), divide(a.imag(), divisor)};
  }
  return {one_nan(a.real()), one_nan(a.imag())};
}

template <class T>
T combine_integers(ReduceOp op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  using Wide = unsigned __int128;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Avg: return static_cast<T>(static_cast<U>(static_cast<Wide>(static_cast<U>(a)) + static_cast<U>(b)));
    case ReduceOp::Prod:
      return static_cast<T>(static_cast<U>(static_cast<Wide>(static_cast<U>(a)) * static_cast<U>(b)));
    case ReduceOp::Max: return std::max(a, b);
    case ReduceOp::Min: return std::min(a, b);
    case ReduceOp::Band: return static_cast<T>(a & b);
    case ReduceOp::Bor: return static_cast<T>(a | b);
    case ReduceOp::Bxor: return static_cast<T>(a ^ b);
    case ReduceOp::Land: return a && b;
    case ReduceOp::Lor: return a || b;
    case ReduceOp::User:
    case ReduceOp::UserOrdered: break;  // have no reference
  }
  return 0;
}

template <class T>
T reduce_integers(const Reduction& reduction, std::span<const T> elements) {
  const bool logical = reduction.op == ReduceOp::Land || reduction.op == ReduceOp::Lor;
  T result = logical ? elements[0] != 0 : elements[0];
  for (const T element : elements.subspan(1)) result = combine_integers(reduction.op, result, element);
  if (reduction.op != ReduceOp::Avg || !reduction.divide_by) return result;
  return static_cast<T>(static_cast<__int128>(result) / static_cast<__int128>(reduction.divide_by));
}

uint8_t reduce_bools(const Reduction& reduction, std::span<const uint8_t> elements) {
  bool result = elements[0] != 0;
  for (const uint8_t element : elements.subspan(1)) {
    const bool other = element != 0;
    switch (reduction.op) {
      case ReduceOp::Prod:
      case ReduceOp::Min:
      case ReduceOp::Band:
      case ReduceOp::Land: result = result && other; break;
      case ReduceOp::Bxor: result = result != other; break;
      default: result = result || other; break;
    }
  }
  return result;
}

template <class Code>
Code reduce_narrow(const Reduction& reduction, std::span<const Code> codes) {
  const Format& format = Format::of(reduction.type);
  std::vector<float> values;
  for (const Code code : codes) values.push_back(static_cast<float>(format.value(code)));
  return static_cast<Code>(format.nearest(static_cast<double>(reduce_floats<float>(reduction, values))));
}

template <class T, class Function>
std::vector<std::byte> each(const Reduction& reduction, std::span<const std::byte* const> inputs, size_t count,
                            Function function) {
  std::vector<std::byte> output(count * sizeof(T));
  std::vector<T> elements(inputs.size());
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) elements[k] = at<T>(inputs[k], i);
    const T result = function(reduction, std::span<const T>(elements));
    std::memcpy(output.data() + i * sizeof(T), &result, sizeof(T));
  }
  return output;
}

bool copies(const Reduction& reduction, size_t inputs) {
  const bool logical =
      reduction.type == DataType::Bool || reduction.op == ReduceOp::Land || reduction.op == ReduceOp::Lor;
  return inputs == 1 && !logical && !(reduction.op == ReduceOp::Avg && reduction.divide_by);
}

}  // namespace

Format::Format(int exponent_bits, int mantissa_bits, bool has_infinity) {
  const int bits = 1 + exponent_bits + mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t magnitudes = 1u << (bits - 1);
  const uint32_t top_exponent = (1u << exponent_bits) - 1;
  const uint32_t first_special = has_infinity ? top_exponent << mantissa_bits : magnitudes - 1;
  nan_ = has_infinity ? first_special | (1u << (mantissa_bits - 1)) : first_special;
  values_.resize(2 * magnitudes);
  for (uint32_t magnitude = 0; magnitude < magnitudes; ++magnitude) {
    const uint32_t exponent = magnitude >> mantissa_bits;
    const uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
    const double significand = exponent == 0 ? mantissa : mantissa + (1u << mantissa_bits);
    double value = std::ldexp(significand, static_cast<int>(std::max(exponent, 1u)) - bias - mantissa_bits);
    if (magnitude <= first_special) scale_.push_back(value);
    if (magnitude >= first_special) {
      const bool infinite = has_infinity && magnitude == first_special;
      value = infinite ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
    }
    values_[magnitude] = value;
    values_[magnitude + magnitudes] = -value;
  }
}

const Format& Format::of(DataType type) {
  static const Format float16(5, 10, true), bfloat16(8, 7, true), e4m3(4, 3, false), e5m2(5, 2, true);
  switch (type) {
    case DataType::Float16: return float16;
    case DataType::Bfloat16: return bfloat16;
    case DataType::Float8e4m3: return e4m3;
    default: return e5m2;
  }
}

uint32_t Format::nearest_magnitude(double value) const {
  const auto above = std::lower_bound(scale_.begin(), scale_.end(), value);
  if (above == scale_.end()) return static_cast<uint32_t>(scale_.size() - 1);
  const uint32_t code = static_cast<uint32_t>(above - scale_.begin());
  if (*above == value) return code;
  const double up = *above - value;
  const double down = value - scale_[code - 1];
  if (up != down) return up < down ? code : code - 1;
  return code % 2 == 0 ? code : code - 1;
}

uint32_t Format::nearest(double value) const {
  if (std::isnan(value)) return nan_;
  return nearest_magnitude(std::fabs(value)) | (std::signbit(value) ? codes() / 2 : 0);
}

std::vector<std::byte> reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, size_t count) {
  if (copies(reduction, inputs.size())) {
    return {inputs[0], inputs[0] + count * size_of(reduction.type)};
  }
  switch (reduction.type) {
    case DataType::Int8: return each<int8_t>(reduction, inputs, count, reduce_integers<int8_t>);
    case DataType::Uint8: return each<uint8_t>(reduction, inputs, count, reduce_integers<uint8_t>);
    case DataType::Int16: return each<int16_t>(reduction, inputs, count, reduce_integers<int16_t>);
    case DataType::Uint16: return each<uint16_t>(reduction, inputs, count, reduce_integers<uint16_t>);
    case DataType::Int32: return each<int32_t>(reduction, inputs, count, reduce_integers<int32_t>);
    case DataType::Uint32: return each<uint32_t>(reduction, inputs, count, reduce_integers<uint32_t>);
    case DataType::Int64: return each<int64_t>(reduction, inputs, count, reduce_integers<int64_t>);
    case DataType::Uint64: return each<uint64_t>(reduction, inputs, count, reduce_integers<uint64_t>);
    case DataType::Bool: return each<uint8_t>(reduction, inputs, count, reduce_bools);
    case DataType::Float16:
    case DataType::Bfloat16: return each<uint16_t>(reduction, inputs, count, reduce_narrow<uint16_t>);
    case DataType::Float8e4m3:
    case DataType::Float8e5m2: return each<uint8_t>(reduction, inputs, count, reduce_narrow<uint8_t>);
    case DataType::Float32: return each<float>(reduction, inputs, count, reduce_floats<float>);
    case DataType::Float64: return each<double>(reduction, inputs, count, reduce_floats<double>);
    case DataType::Complex64: return each<std::complex<float>>(reduction, inputs, count, reduce_complex<float>);
    case DataType::Complex128: return each<std::complex<double>>(reduction, inputs, count, reduce_complex<double>);
    case DataType::Float8Block:
    case DataType::Int8Block: break;  // scaled_blocks_test.cc has sums of its own
  }
  return {};
}

}  // namespace ccom::reference
