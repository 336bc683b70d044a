// SPDX-License-Identifier: Apache-2.0
//
// The one loop of all reductions, once per instruction set.
//
// A block of a few vectors is loaded from every input in turn, combined in registers and stored to every output: each
// byte of input is read once and each byte of output written once, for any number of inputs and outputs. A block is
// read completely before it is written, so outputs may be inputs.
#if defined(CCOM_KERNELS_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CCOM_KERNELS_BLOCK_INL_H_
#undef CCOM_KERNELS_BLOCK_INL_H_
#else
#define CCOM_KERNELS_BLOCK_INL_H_
#endif

#include "kernels/kernel.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ccom {
namespace HWY_NAMESPACE {

template <class Lanes>
inline constexpr bool kIsStochastic = requires(const typename Lanes::V* parts) {
  Lanes::pack(parts, RandomKey{}, uint32_t{});
};

// kVectors vectors of memory, in registers: what is to be combined, then what is to be stored.
template <class Lanes, class Op, size_t kVectors>
class Block {
 public:
  using Raw = typename Lanes::Raw;
  static constexpr size_t kBytes = kVectors * Lanes::kBytes;

  HWY_INLINE Block() {}  // an implicit one would be compiled for another instruction set than its members'

  HWY_INLINE void load(const std::byte* memory) { unpack(memory, values_); }
  HWY_INLINE void combine(const std::byte* memory) {
    V more[kVectors][Lanes::kParts];
    unpack(memory, more);
    for (size_t u = 0; u < kVectors; ++u) combine_parts(values_[u], more[u]);
  }
  HWY_INLINE void finish(const KernelCall& call, size_t at) {
    for (size_t u = 0; u < kVectors; ++u) {
      divide(values_[u], call.divisor);
      raw_[u] = pack(values_[u], call, at + u * Lanes::kBytes);
    }
  }
  HWY_INLINE void finish(double divisor) {
    for (size_t u = 0; u < kVectors; ++u) {
      divide(values_[u], divisor);
      raw_[u] = Lanes::pack(values_[u]);
    }
  }
  HWY_INLINE void store(std::byte* memory) const {
    for (size_t u = 0; u < kVectors; ++u) Lanes::store(raw_[u], memory + u * Lanes::kBytes);
  }
  HWY_INLINE void stream(std::byte* memory) const {
    for (size_t u = 0; u < kVectors; ++u) Lanes::stream(raw_[u], memory + u * Lanes::kBytes);
  }

  // The same for less than one vector.
  HWY_INLINE void load_partial(const std::byte* memory, size_t size_bytes) {
    unpack_vector(Lanes::load_partial(memory, size_bytes), values_[0]);
  }
  HWY_INLINE void combine_partial(const std::byte* memory, size_t size_bytes) {
    V more[Lanes::kParts];
    unpack_vector(Lanes::load_partial(memory, size_bytes), more);
    combine_parts(values_[0], more);
  }
  HWY_INLINE void store_partial(std::byte* memory, size_t size_bytes) const {
    Lanes::store_partial(raw_[0], memory, size_bytes);
  }

 private:
  using D = typename Lanes::D;
  using V = typename Lanes::V;

  static HWY_INLINE void unpack_vector(Raw raw, V* parts) {
    Lanes::unpack(raw, parts);
    prepare(parts);
  }
  static HWY_INLINE void prepare(V* parts) {
    for (size_t p = 0; p < Lanes::kParts; ++p) parts[p] = Op::prepare(D(), parts[p]);
  }
  static HWY_INLINE void unpack(const std::byte* memory, V (&values)[kVectors][Lanes::kParts]) {
    for (size_t u = 0; u < kVectors; ++u) {
      if constexpr (requires { Lanes::load_parts(memory, values[u]); }) {
        Lanes::load_parts(memory + u * Lanes::kBytes, values[u]);
        prepare(values[u]);
      } else {
        unpack_vector(Lanes::load(memory + u * Lanes::kBytes), values[u]);
      }
    }
  }
  static HWY_INLINE void combine_parts(V* a, const V* b) {
    if constexpr (requires { Op::combine_parts(D(), a, b); }) {
      Op::combine_parts(D(), a, b);
    } else {
      for (size_t p = 0; p < Lanes::kParts; ++p) a[p] = Op::combine(D(), a[p], b[p]);
    }
  }
  static HWY_INLINE void divide(V* parts, double divisor) {
    for (size_t p = 0; p < Lanes::kParts; ++p) parts[p] = Op::finish(D(), parts[p], divisor);
  }
  static HWY_INLINE Raw pack(const V* parts, const KernelCall& call, size_t at) {
    if constexpr (kIsStochastic<Lanes>) {
      return Lanes::pack(parts, call.key, call.first_element + static_cast<uint32_t>(at / Lanes::kElementBytes));
    } else {
      return Lanes::pack(parts);
    }
  }

  V values_[kVectors][Lanes::kParts];
  Raw raw_[kVectors];
};

// Streaming stores want whole cache lines.
inline constexpr size_t kLineBytes = 64;

HWY_INLINE size_t bytes_to_line(const std::byte* memory) { return -reinterpret_cast<uintptr_t>(memory) % kLineBytes; }

// Any number of bytes, vector by vector and then in part: short calls and the ends of long ones. Never streams. Called
// at both ends: inlined, it would be a quarter of all code.
template <class Lanes, class Op>
HWY_NOINLINE void reduce_ends(const KernelCall& call, size_t at, size_t end) {
  Block<Lanes, Op, 1> block;
  for (; end - at >= Lanes::kBytes; at += Lanes::kBytes) {
    block.load(call.inputs[0] + at);
    for (size_t k = 1; k < call.input_count; ++k) block.combine(call.inputs[k] + at);
    block.finish(call, at);
    for (size_t m = 0; m < call.output_count; ++m) block.store(call.outputs[m] + at);
  }
  const size_t rest = end - at;
  if (rest == 0) return;
  block.load_partial(call.inputs[0] + at, rest);
  for (size_t k = 1; k < call.input_count; ++k) block.combine_partial(call.inputs[k] + at, rest);
  block.finish(call, at);
  for (size_t m = 0; m < call.output_count; ++m) block.store_partial(call.outputs[m] + at, rest);
}

// Whole blocks to one output; returns where they end. Measured and left out: the loop over the inputs unrolled for
// common numbers of them (no gain, as processors overlap its passes), and prefetching (slower within the caches, and
// hardly faster beyond).
template <class Lanes, class Op>
HWY_INLINE size_t reduce_to_one(const KernelCall& call, size_t at, size_t end) {
  using WholeBlock = Block<Lanes, Op, Lanes::kUnroll>;
  WholeBlock block;
  const std::byte* const* const inputs = call.inputs;
  const size_t input_count = call.input_count;
  std::byte* const output = call.outputs[0];
  for (; end - at >= WholeBlock::kBytes; at += WholeBlock::kBytes) {
    block.load(inputs[0] + at);
    for (size_t k = 1; k < input_count; ++k) block.combine(inputs[k] + at);
    block.finish(call, at);
    block.store(output + at);
  }
  return at;
}

// The same to any number of outputs, streaming to those of the first call.streamed that begin a line at `at`.
template <class Lanes, class Op>
HWY_INLINE size_t reduce_to_many(const KernelCall& call, size_t at, size_t end) {
  using WholeBlock = Block<Lanes, Op, Lanes::kUnroll>;
  WholeBlock block;
  for (; end - at >= WholeBlock::kBytes; at += WholeBlock::kBytes) {
    block.load(call.inputs[0] + at);
    for (size_t k = 1; k < call.input_count; ++k) block.combine(call.inputs[k] + at);
    block.finish(call, at);
    for (size_t m = 0; m < call.output_count; ++m) {
      std::byte* const output = call.outputs[m] + at;
      if (m < call.streamed && bytes_to_line(output) == 0) {
        block.stream(output);
      } else {
        block.store(output);
      }
    }
  }
  return at;
}

template <class Lanes, class Op>
void run(const KernelCall& call) {
  size_t at = call.begin_bytes;
  const size_t end = call.end_bytes;
  if (end - at >= Block<Lanes, Op, Lanes::kUnroll>::kBytes) {
    if (call.streamed != 0) {
      // To the first line of output 0, if a whole number of elements leads there.
      const size_t head = std::min(bytes_to_line(call.outputs[0] + at), end - at);
      if (head % Lanes::kElementBytes == 0) {
        reduce_ends<Lanes, Op>(call, at, at + head);
        at += head;
      }
    }
    if (call.output_count == 1 && call.streamed == 0) {
      at = reduce_to_one<Lanes, Op>(call, at, end);
    } else {
      at = reduce_to_many<Lanes, Op>(call, at, end);
    }
  }
  reduce_ends<Lanes, Op>(call, at, end);
  if (call.streamed != 0) hwy::FlushStream();
}

// The same for one output and few bytes.
template <class Lanes, class Op>
void run_small(const std::byte* const* inputs, size_t input_count, std::byte* output, size_t size_bytes,
               double divisor) {
  Block<Lanes, Op, 1> block;
  size_t at = 0;
  for (; size_bytes - at >= Lanes::kBytes; at += Lanes::kBytes) {
    block.load(inputs[0] + at);
    for (size_t k = 1; k < input_count; ++k) block.combine(inputs[k] + at);
    block.finish(divisor);
    block.store(output + at);
  }
  const size_t rest = size_bytes - at;
  if (rest == 0) return;
  block.load_partial(inputs[0] + at, rest);
  for (size_t k = 1; k < input_count; ++k) block.combine_partial(inputs[k] + at, rest);
  block.finish(divisor);
  block.store_partial(output + at, rest);
}

}  // namespace HWY_NAMESPACE
}  // namespace ccom
HWY_AFTER_NAMESPACE();

#endif
