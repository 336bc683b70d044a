// SPDX-License-Identifier: Apache-2.0
//
// Two ranks of a host, on a core each, of which one does in memory that both reach what the other asks for, and the
// times that follow: what lines and bytes cost that another core has just touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bench/memory_probes.h"

namespace ccom::bench {

constexpr size_t kPairBytes = size_t{1} << 20;

// In memory that both ranks have mapped, zero at first.
struct PairMemory {
  enum class Act : uint32_t { End, Barriers, Store, Load, LoadAndClaim, StoreOwn };
  struct alignas(128) Word {
    std::atomic<uint32_t> value{0};
  };
  Word asked, done;      // Numbers of requests.
  Word here, there;      // Arrivals of the rank that asks and of the one that answers.
  alignas(128) Act act;  // Of the latest request.
  size_t amount;         // Rounds, or bytes.
  int64_t pid;           // Of the rank that answers,
  uint64_t own_address;  // and kPairBytes of its own memory.
  alignas(4096) std::byte bytes[kPairBytes];
};

// Answers until it is told to end; false if nothing was asked for five seconds.
bool serve_pair(PairMemory& memory);

// Nanoseconds, of a line or a byte; 0: not measured.
struct PairCosts {
  double line = 0, further_line = 0;  // That the other has just written: one, and each that is loaded at the same time.
  double barrier = 0;                 // Both store a flag and wait for that of the other.
  // Passed from one to the other in the manner that is the cheaper one: who loads a line claims it by storing to it, or
  // does not. So calls do it, which find out by themselves (docs/decisions/0015-claimed-lines.md).
  ByteCosts shared, long_shared;
  double read_call = 0, read_byte = 0;  // process_vm_readv
};
// On the asking rank, while the other serves; ends that. nullopt if it did not answer.
std::optional<PairCosts> measure_pair_memory(PairMemory& memory, const CacheSizes& caches, double cached_store_ns);

}  // namespace ccom::bench
