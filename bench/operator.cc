// SPDX-License-Identifier: Apache-2.0
#include "bench/operator.h"

#include <array>
#include <type_traits>

#include "bench/codecs.h"

namespace ccom::bench {
namespace {

using launch::Outcome;
using launch::outcome_of;

// As a user would write it. Both are multiples of the element's size.
template <class T>
void add_all(const void* in, void* inout, size_t count) {
  const auto* const left = static_cast<const T*>(in);
  auto* const right = static_cast<T*>(inout);
  for (size_t i = 0; i < count; ++i) right[i] = static_cast<T>(left[i] + right[i]);
}

uint8_t sum(uint8_t a, uint8_t b) { return a | b; }  // of bool
double sum(double a, double b) { return a + b; }
Complex sum(Complex a, Complex b) { return {a.real + b.real, a.imaginary + b.imaginary}; }

template <class Codec>
void add(Codec, ccomDataType_t type, const void* in, void* inout, size_t count) {
  const size_t element = size_of(type);
  const auto* const left = static_cast<const std::byte*>(in);
  auto* const right = static_cast<std::byte*>(inout);
  for (size_t i = 0; i < count * element; i += element)
    Codec::store(right + i, sum(Codec::load(left + i), Codec::load(right + i)));
}
template <class T>
void add(Integer<T>, ccomDataType_t, const void* in, void* inout, size_t count) {
  add_all<std::make_unsigned_t<T>>(in, inout, count);
}
template <class T>
void add(WideFloat<T>, ccomDataType_t, const void* in, void* inout, size_t count) {
  add_all<T>(in, inout, count);
}

template <class Codec>
ccomResult_t compose_all(Codec, const void*, void*, size_t) {
  return ccomInvalidArgument;  // is_legal() keeps such types away
}
template <class T>
ccomResult_t compose_all(Integer<T>, const void* in, void* inout, size_t count) {
  const auto* const left = static_cast<const T*>(in);
  auto* const right = static_cast<T*>(inout);
  for (size_t i = 0; i < count; ++i) right[i] = compose(left[i], right[i]);
  return ccomSuccess;
}

}  // namespace

ccomResult_t ccom_bench_add(const void* in, void* inout, size_t count, ccomDataType_t type, void*) {
  with_codec(type, [&](auto codec) { add(codec, type, in, inout, count); });
  return ccomSuccess;
}

ccomResult_t ccom_bench_compose(const void* in, void* inout, size_t count, ccomDataType_t type, void*) {
  return with_codec(type, [&](auto codec) { return compose_all(codec, in, inout, count); });
}

Outcome Operator::create(const Pattern& pattern, int rank) {
  const Reduction reduction = pattern.reduction;
  if (reduction == Reduction::Move) return {};
  op_ = builtin_of(reduction);
  ccomResult_t result = ccomSuccess;
  if (reduction == Reduction::PreMulSum) {
    alignas(16) std::array<std::byte, 16> scalar{};
    write_scalar(pattern, rank, scalar.data());
    result = ccomRedOpCreatePreMulSum(&op_, scalar.data(), pattern.type, ccomScalarHostImmediate, comm_);
  } else if (reduction == Reduction::User) {
    result = ccomRedOpCreate(&op_, ccom_bench_add, nullptr, ccomRedOpCommutative, comm_);
  } else if (reduction == Reduction::UserOrdered) {
    result = ccomRedOpCreate(&op_, ccom_bench_compose, nullptr, ccomRedOpOrdered, comm_);
  } else {
    return {};
  }
  created_ = result == ccomSuccess;
  return created_ ? Outcome{} : outcome_of(result, comm_, "create an operator");
}

}  // namespace ccom::bench
