// SPDX-License-Identifier: Apache-2.0
//
// The last calls of one rank, in the board of its host: written by that rank with every call, and read by others when a
// wait lasts.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/call.h"

namespace ccom {

// What is known of a call besides its descriptor, each as a TextTable's reference; 0: unknown. Ranks may differ in it.
struct CallOrigin {
  uint32_t site = 0;       // who made it
  uint32_t algorithm = 0;  // how it runs; known once it runs
  friend bool operator==(const CallOrigin&, const CallOrigin&) = default;
};

struct alignas(64) CallRecord {
  static constexpr uint64_t kKept = 16;
  struct Kept {
    std::atomic<uint64_t> count, kind, origin, results;
  };
  std::atomic<uint64_t> begun;      // calls; the number of the last one
  std::atomic<uint64_t> ended;      // likewise
  std::array<Kept, kKept> by_turn;  // by number modulo kKept

  // By one thread at a time, with the next number each time. Who reads a part of this call in by_turn finds that the
  // one before has begun.
  void begin(const CallDescriptor& call, CallOrigin origin = {}) {
    Kept& kept = by_turn[call.number % kKept];
    kept.count.store(call.count, std::memory_order_release);
    kept.kind.store(call.kind, std::memory_order_release);
    kept.origin.store(to_word(origin), std::memory_order_release);
    kept.results.store(call.results, std::memory_order_release);
    begun.store(call.number, std::memory_order_release);
  }
  // Of the last call, before it ends.
  void amend(CallOrigin origin) {
    by_turn[begun.load(std::memory_order_relaxed) % kKept].origin.store(to_word(origin), std::memory_order_release);
  }
  // The last call has ended; that it failed is no matter here.
  void end() { ended.store(begun.load(std::memory_order_relaxed), std::memory_order_release); }

  // The last one; only for whom begin() cannot run at the same time.
  CallDescriptor last() const {
    const uint64_t number = begun.load(std::memory_order_relaxed);
    const Kept& kept = by_turn[number % kKept];
    return {number, kept.count.load(std::memory_order_relaxed), kept.kind.load(std::memory_order_relaxed),
            kept.results.load(std::memory_order_relaxed)};
  }

  // The call of that number; empty if it has not begun, or no longer known: its place is that of the call that may be
  // beginning just now.
  std::optional<CallDescriptor> find(uint64_t number, CallOrigin* origin = nullptr) const {
    if (number == 0 || number > begun.load(std::memory_order_acquire)) return std::nullopt;
    const Kept& kept = by_turn[number % kKept];
    const CallDescriptor call{number, kept.count.load(std::memory_order_acquire),
                              kept.kind.load(std::memory_order_acquire), kept.results.load(std::memory_order_acquire)};
    const uint64_t word = kept.origin.load(std::memory_order_acquire);
    if (begun.load(std::memory_order_relaxed) - number >= kKept - 1) return std::nullopt;
    if (origin != nullptr) *origin = {static_cast<uint32_t>(word), static_cast<uint32_t>(word >> 32)};
    return call;
  }

 private:
  static uint64_t to_word(CallOrigin origin) { return origin.site | static_cast<uint64_t>(origin.algorithm) << 32; }
};

}  // namespace ccom
