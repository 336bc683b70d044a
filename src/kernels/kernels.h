// SPDX-License-Identifier: Apache-2.0
//
// Elementwise reductions over every type and operator: the only code in ccom that knows what an element is.
//
// Same bits everywhere: the result does not depend on the instruction set, on alignment, on how a vector is cut into
// calls, or (for two inputs) on their order. 16- and 8-bit floating types are widened to float, combined in input
// order, divided, and rounded once; no conversion flushes subnormals. A NaN in any input gives a NaN, also for max and
// min; max(+0, -0) is +0 and min(+0, -0) is -0 in either order. Whatever the payloads of the NaNs that went in, the NaN
// that comes out is the positive quiet one, 0x7fc00000 for float32, except where a single input is merely copied; an
// E4M3FN overflow, also a NaN, keeps its sign. Complex products are (ac - bd) + (ad + bc)i without recovery of
// infinities. Integers wrap. Nor does it depend on the calling thread's rounding mode, on whether it flushes
// subnormals, or on its floating-point traps (float_environment.h).
#pragma once

#include "base/types.h"
#include "kernels/float_environment.h"
#include "kernels/user_operator.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ccom {

// Whether the pair is legal; the table stands at ccomBuiltinOp_t.
bool is_legal(DataType type, ReduceOp op);

// How sums, products and averages of the 16- and 8-bit floating types are rounded; other types and operators take no
// notice. Stochastic: up or down at random, up with the probability of the fraction that is dropped, so that the
// expectation is the exact value. Numbers beyond the largest finite one overflow as with NearestEven, but no smaller
// one is rounded up to infinity: it becomes the largest finite one. Unbiased for all others, subnormals included, down
// to 2^-8 of the smallest subnormal; below that the result is zero. The random bits are a function of the seed and of
// the element's index alone.
enum class Rounding : uint8_t { NearestEven, Stochastic };

struct Reduction {
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  // Avg only: the number of contributions to divide by (a true division, no product with the inverse), applied after
  // the last combination. 0 = this is not the last one, combine only (Avg then equals Sum).
  uint32_t divide_by = 0;
  Rounding rounding = Rounding::NearestEven;
  uint64_t seed = 0;             // stochastic rounding only
  UserOperator* user = nullptr;  // User and UserOrdered: outlives the reduction; nothing is divided or rounded
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

struct KernelCall;

// The kernel of a reduction, chosen once: a call is then one indirect call. A value, cheap to copy. A default one may
// only be assigned to.
class Reducer {
 public:
  Reducer() = default;
  explicit Reducer(const Reduction& reduction);

  // outputs[m][i] = inputs[0][i] op inputs[1][i] op ... for every m and `count` elements. One or more inputs and
  // outputs; one input copies (and divides), but Bool, Land and Lor give 0 or 1 even then. Any output may equal any
  // input exactly, also all of them at once: a block is read from all inputs before any of it is written. Other overlap
  // is not allowed. Any alignment.
  //
  // The first `streamed` outputs are written past the caches, in whole lines: those of them that reach the boundary of
  // a cache line together with the first output; the others as usual, and so are averages of integers. A store fence
  // follows: a release store publishes them like any others.
  //
  // `first_element`: the index of element 0 in the whole vector, for stochastic rounding.
  //
  // A user's operator is applied to two at a time, in the order of `inputs`, in the same floating-point environment; it
  // may fail (UserOperator::has_failed()).
  [[gnu::always_inline]] void operator()(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                                         size_t count, size_t streamed = 0, uint64_t first_element = 0) const {
    const DefaultFloatEnvironment environment;
    const size_t size_bytes = count * element_bytes_;
    if (size_bytes < small_bytes_ && inputs.size() > 1 && outputs.size() == 1) {
      return small_kernel_(inputs.data(), inputs.size(), outputs[0], size_bytes, divisor_);
    }
    call(inputs, outputs, count, streamed, first_element);
  }

 private:
  void call(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, size_t count,
            size_t streamed, uint64_t first_element) const;
  void copy(const KernelCall& call) const;
  void call_stochastic(KernelCall& call, uint64_t first_element) const;
  void call_integer_average(KernelCall& call) const;

  using Kernel = void (*)(const KernelCall&);
  using SmallKernel = void (*)(const std::byte* const*, size_t, std::byte*, size_t, double);
  Kernel kernel_ = nullptr;
  SmallKernel small_kernel_ = nullptr;
  size_t small_bytes_ = 0;             // for fewer it may be called
  Kernel one_input_kernel_ = nullptr;  // if a copy is not what kernel_ does
  double divisor_ = 1;
  uint64_t seed_ = 0;
  UserOperator* user_ = nullptr;
  uint32_t integer_divisor_ = 0;
  DataType type_ = DataType::Float32;
  uint8_t element_bytes_ = 0;
  bool stochastic_ = false;
};

// One output, nearest even or not, nothing streamed.
void reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output, size_t count);

// memcpy past the caches: `to` is written by streaming stores, followed by a store fence. No overlap.
void copy_streaming(std::byte* to, const std::byte* from, size_t size_bytes);

// output[i] = scalar * input[i], rounded to the type. `scalar` points to one element of the type. Output may equal
// input. Not for Bool.
void multiply(DataType type, const std::byte* scalar, const std::byte* input, std::byte* output, size_t count);

// "AVX3" (AVX-512), "AVX2", "SSE2", "NEON", "SCALAR": the instruction set in use, in Highway's words.
const char* kernel_target();
// Those that there are kernels for and this machine has, best first.
std::vector<const char*> kernel_targets();
// For tests: what is chosen from now on is that one's.
void use_kernel_target(std::string_view name);

}  // namespace ccom
