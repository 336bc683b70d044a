// SPDX-License-Identifier: Apache-2.0
//
// Legality, the cases that need no kernel or a pass more, and the call into the kernel of the best instruction set.
#include "kernels/kernels.h"

// Each instruction set costs some fifteen seconds of compile time. x86-64 has two that nearly all machines know, and
// the baseline. Vectors of SVE and RVV have no size that the compiler knows, so they cannot sit in the arrays of
// block-inl.h.
// TODO(port): SVE, RVV. NEON has run the tests under QEMU only (GCC 12, Highway 1.0.3; docs/arm64.md).
#define CCOM_SIZELESS_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_DISABLED_TARGETS (~(HWY_AVX3 | HWY_AVX2 | (HWY_BASELINE_TARGETS & ~CCOM_SIZELESS_TARGETS)))
#define HWY_TARGET_INCLUDE "kernels/reduce-inl.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "kernels/reduce-inl.h"

#include "base/assert.h"
#include "kernels/instruction_sets.h"
#include "kernels/kernel.h"
#include "kernels/scaled_blocks.h"

#include "hwy/highway.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace ccom {

namespace {

// The same functions as each instruction set has them. Not Highway's dispatch: see instruction_sets.h.
struct KernelSet {
  int64_t target;
  decltype(&HWY_STATIC_DISPATCH(find_kernel)) kernel;
  decltype(&HWY_STATIC_DISPATCH(find_stochastic_kernel)) stochastic_kernel;
  decltype(&HWY_STATIC_DISPATCH(find_converter)) converter;
  decltype(&HWY_STATIC_DISPATCH(find_random_converter)) random_converter;
  decltype(&HWY_STATIC_DISPATCH(target_name)) name;
};
#define CCOM_KERNEL_SET(target, choose)                                                  \
  KernelSet {                                                                            \
    target, choose(find_kernel), choose(find_stochastic_kernel), choose(find_converter), \
        choose(find_random_converter), choose(target_name)                               \
  }
// Best first. One that is not compiled in has no functions; the last one always can.
constexpr KernelSet kKernelSets[] = {
#if HWY_ARCH_X86
    CCOM_KERNEL_SET(HWY_AVX3, HWY_CHOOSE_AVX3),
    CCOM_KERNEL_SET(HWY_AVX2, HWY_CHOOSE_AVX2),
#endif
    CCOM_KERNEL_SET(HWY_STATIC_TARGET, HWY_CHOOSE_FALLBACK),
};

static_assert((HWY_TARGETS & ~(HWY_AVX3 | HWY_AVX2 | HWY_STATIC_TARGET)) == 0, "no call chooses it");

bool can_run(const KernelSet& set) { return set.kernel != nullptr && has_instruction_set(set.target); }

constinit std::atomic<const KernelSet*> chosen_set{nullptr};  // by the first call; tests choose others

const KernelSet& kernel_set() {
  if (const KernelSet* const chosen = chosen_set.load(std::memory_order_relaxed)) return *chosen;
  const KernelSet& best = *std::ranges::find_if(kKernelSets, can_run);
  chosen_set.store(&best, std::memory_order_relaxed);
  return best;
}

// Two of these and an output fit into any first-level cache.
constexpr size_t kTileBytes = 4096;

bool is_integer(DataType type) {
  switch (type) {
    case DataType::Int8:
    case DataType::Uint8:
    case DataType::Int16:
    case DataType::Uint16:
    case DataType::Int32:
    case DataType::Uint32:
    case DataType::Int64:
    case DataType::Uint64: return true;
    default: return false;
  }
}

bool is_complex(DataType type) { return type == DataType::Complex64 || type == DataType::Complex128; }

bool is_logical(const Reduction& reduction) {
  return reduction.type == DataType::Bool || reduction.op == ReduceOp::Land || reduction.op == ReduceOp::Lor;
}

template <class T>
void divide_elements(std::byte* memory, size_t count, uint32_t divisor) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  for (size_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, memory + i * sizeof(T), sizeof(T));
    element = static_cast<T>(static_cast<Wide>(element) / static_cast<Wide>(divisor));
    std::memcpy(memory + i * sizeof(T), &element, sizeof(T));
  }
}

void divide_integers(DataType type, std::byte* memory, size_t count, uint32_t divisor) {
  switch (type) {
    case DataType::Int8: return divide_elements<int8_t>(memory, count, divisor);
    case DataType::Uint8: return divide_elements<uint8_t>(memory, count, divisor);
    case DataType::Int16: return divide_elements<int16_t>(memory, count, divisor);
    case DataType::Uint16: return divide_elements<uint16_t>(memory, count, divisor);
    case DataType::Int32: return divide_elements<int32_t>(memory, count, divisor);
    case DataType::Uint32: return divide_elements<uint32_t>(memory, count, divisor);
    case DataType::Int64: return divide_elements<int64_t>(memory, count, divisor);
    case DataType::Uint64: return divide_elements<uint64_t>(memory, count, divisor);
    default: CCOM_ASSERT(!"an integer type");
  }
}

Kernel copy_kernel() { return kernel_set().kernel(DataType::Uint8, ReduceOp::Bor).any; }

// Beyond this a call has other costs than its arguments.
constexpr size_t kSmallBytes = 256;

}  // namespace

bool is_legal(DataType type, ReduceOp op) {
  if (size_of(type) == 0) return false;
  if (is_block(type)) return op == ReduceOp::Sum || op == ReduceOp::Avg;
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod: return true;
    case ReduceOp::Avg: return type != DataType::Bool;
    case ReduceOp::Max:
    case ReduceOp::Min: return !is_complex(type);
    case ReduceOp::Band:
    case ReduceOp::Bor:
    case ReduceOp::Bxor:
    case ReduceOp::Land:
    case ReduceOp::Lor: return is_integer(type) || type == DataType::Bool;
    case ReduceOp::User:
    case ReduceOp::UserOrdered: return true;
  }
  return false;
}

Reducer::Reducer(const Reduction& reduction)
    : seed_(reduction.seed),
      user_(reduction.user),
      type_(reduction.type),
      element_bytes_(static_cast<uint8_t>(size_of(reduction.type))) {
  CCOM_ASSERT(is_legal(reduction.type, reduction.op) && is_user(reduction.op) == (user_ != nullptr));
  if (user_ != nullptr) return;
  const bool divides = reduction.op == ReduceOp::Avg && reduction.divide_by != 0;
  const ReduceOp op = reduction.op == ReduceOp::Avg && !divides ? ReduceOp::Sum : reduction.op;
  if (divides && is_integer(type_)) {
    integer_divisor_ = reduction.divide_by;
  } else if (divides) {
    divisor_ = reduction.divide_by;
  }
  Kernels kernels;
  if (reduction.rounding == Rounding::Stochastic) kernels = kernel_set().stochastic_kernel(type_, op);
  stochastic_ = kernels.any != nullptr;
  if (!stochastic_) kernels = kernel_set().kernel(type_, op);
  kernel_ = kernels.any;
  small_kernel_ = kernels.small;
  if (small_kernel_ != nullptr && integer_divisor_ == 0) small_bytes_ = kSmallBytes;
  const bool copies_one = !divides && !is_logical(reduction);
  one_input_kernel_ = copies_one ? copy_kernel() : kernel_;
}

void Reducer::call(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, size_t count,
                   size_t streamed, uint64_t first_element) const {
  if (user_ != nullptr) return user_->combine(inputs, outputs, count, type_);
  CCOM_ASSERT(kernel_ != nullptr && !inputs.empty() && !outputs.empty() && streamed <= outputs.size());
  KernelCall call{.inputs = inputs.data(),
                  .outputs = outputs.data(),
                  .input_count = inputs.size(),
                  .output_count = outputs.size(),
                  .streamed = streamed,
                  .begin_bytes = 0,
                  .end_bytes = count * element_bytes_,
                  .divisor = divisor_,
                  .key = {},
                  .first_element = 0};
  if (inputs.size() == 1 && one_input_kernel_ != kernel_) return copy(call);
  if (stochastic_) return call_stochastic(call, first_element);
  if (integer_divisor_ != 0) return call_integer_average(call);
  kernel_(call);
}

void Reducer::copy(const KernelCall& call) const {
  if (call.output_count > 1 || call.streamed != 0) return one_input_kernel_(call);
  if (call.outputs[0] != call.inputs[0]) std::memcpy(call.outputs[0], call.inputs[0], call.end_bytes);
}

// One call for each 2^32 elements of the whole vector: a kernel counts in 32 bits.
void Reducer::call_stochastic(KernelCall& call, uint64_t first_element) const {
  const size_t end_bytes = call.end_bytes;
  while (call.begin_bytes < end_bytes) {
    const uint64_t begin = first_element + call.begin_bytes / element_bytes_;
    const uint64_t room = (uint64_t{1} << 32) - static_cast<uint32_t>(begin);
    call.end_bytes = call.begin_bytes + std::min<uint64_t>(room * element_bytes_, end_bytes - call.begin_bytes);
    call.key = random_key(seed_, static_cast<uint32_t>(begin >> 32));
    call.first_element = static_cast<uint32_t>(first_element);
    kernel_(call);
    call.begin_bytes = call.end_bytes;
  }
}

// Sums a tile to the first output, divides it while it is still in the first-level cache, and copies it to the others.
void Reducer::call_integer_average(KernelCall& call) const {
  const size_t end_bytes = call.end_bytes;
  const size_t output_count = call.output_count;
  std::byte* const first = call.outputs[0];
  call.output_count = 1;
  call.streamed = 0;
  for (size_t begin = 0; begin < end_bytes; begin = call.end_bytes) {
    call.begin_bytes = begin;
    call.end_bytes = std::min(begin + kTileBytes, end_bytes);
    kernel_(call);
    const size_t size_bytes = call.end_bytes - begin;
    divide_integers(type_, first + begin, size_bytes / element_bytes_, integer_divisor_);
    for (size_t m = 1; m < output_count; ++m) {
      if (call.outputs[m] != first) std::memcpy(call.outputs[m] + begin, first + begin, size_bytes);
    }
  }
}

bool can_convert(DataType from, DataType to) { return kernel_set().converter(from, to) != nullptr; }

void convert(DataType from, DataType to, const std::byte* input, std::byte* output, size_t values) {
  const auto converter = kernel_set().converter(from, to);
  CCOM_ASSERT(converter != nullptr);
  const DefaultFloatEnvironment environment;
  converter(input, output, values);
}

// One call for each 2^32 elements of the whole vector, as Reducer::call_stochastic().
void convert_at_random(DataType to, const std::byte* input, std::byte* output, size_t values, RandomPlace place) {
  const auto converter = kernel_set().random_converter(to);
  CCOM_ASSERT(converter != nullptr);
  const DefaultFloatEnvironment environment;
  while (values > 0) {
    const auto first = static_cast<uint32_t>(place.first_element);
    const size_t now = std::min<uint64_t>((uint64_t{1} << 32) - first, values);
    converter(input, output, now, random_key(place.seed, static_cast<uint32_t>(place.first_element >> 32)), first);
    input += now * sizeof(float);
    output += now * size_of(to);
    values -= now;
    place.first_element += now;
  }
}

void reduce(const Reduction& reduction, std::span<const std::byte* const> inputs, std::byte* output, size_t count) {
  const Reducer reducer(reduction);
  reducer(inputs, {&output, 1}, count);
}

void copy_streaming(std::byte* to, const std::byte* from, size_t size_bytes) {
  copy_kernel()({.inputs = &from,
                 .outputs = &to,
                 .input_count = 1,
                 .output_count = 1,
                 .streamed = 1,
                 .begin_bytes = 0,
                 .end_bytes = size_bytes,
                 .divisor = 1,
                 .key = {},
                 .first_element = 0});
}

// The product of the input with a tile full of the scalar.
void multiply(DataType type, const std::byte* scalar, const std::byte* input, std::byte* output, size_t count) {
  CCOM_ASSERT(type != DataType::Bool && size_of(type) != 0);
  const size_t element_bytes = size_of(type);
  const size_t size_bytes = count * element_bytes;
  std::array<std::byte, kTileBytes> repeated;
  for (size_t at = 0; at < std::min(size_bytes, kTileBytes); at += element_bytes) {
    std::memcpy(repeated.data() + at, scalar, element_bytes);
  }
  const Reducer product({.type = type, .op = ReduceOp::Prod});
  for (size_t begin = 0; begin < size_bytes; begin += kTileBytes) {
    const std::array<const std::byte*, 2> factors = {repeated.data(), input + begin};
    const std::array<std::byte*, 1> tile = {output + begin};
    product(factors, tile, std::min(kTileBytes, size_bytes - begin) / element_bytes);
  }
}

const char* kernel_target() { return kernel_set().name(); }

std::vector<const char*> kernel_targets() {
  std::vector<const char*> names;
  for (const KernelSet& set : kKernelSets)
    if (can_run(set)) names.push_back(set.name());
  return names;
}

void use_kernel_target(std::string_view name) {
  const auto is_it = [name](const KernelSet& set) { return can_run(set) && set.name() == name; };
  const KernelSet* const found = std::ranges::find_if(kKernelSets, is_it);
  CCOM_ASSERT(found != std::end(kKernelSets));
  chosen_set = found;
}

}  // namespace ccom
