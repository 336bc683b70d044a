// SPDX-License-Identifier: Apache-2.0
//
// Collective calls of equal units, ready to run but for their buffers and their number: what is the same in each call
// with the same arguments is found out once.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "comm/program_cache.h"
#include "node/flag_barrier.h"
#include "node/small_call.h"

namespace ccom {

struct PreparedCall {
  CallWords words{};                                          // of its envelope, without the number
  uint64_t hash = 0;                                          // of these, without that of the number
  size_t unit_bytes = 0, sent_bytes = 0, received_bytes = 0;  // of this rank's buffers
  bool has_in_place = false;
  uintptr_t in_place_distance = 0;       // from the output to the input, where they are in place
  std::optional<SmallCall> small{};      // nothing: a program runs
  Reducer reducer{};                     // of `small`
  std::array<ProgramUse, 2> programs{};  // by whether the buffers are in place

  bool is_in_place(const void* input, const void* output) const {
    return has_in_place &&
           reinterpret_cast<uintptr_t>(input) - reinterpret_cast<uintptr_t>(output) == in_place_distance;
  }
  // Whether the buffers are there, and overlap as in place or not at all.
  bool takes(const void* input, const void* output) const {
    if ((input == nullptr && sent_bytes > 0) || (output == nullptr && received_bytes > 0)) return false;
    const auto from = reinterpret_cast<uintptr_t>(input), to = reinterpret_cast<uintptr_t>(output);
    return from + sent_bytes <= to || to + received_bytes <= from || sent_bytes == 0 || received_bytes == 0 ||
           is_in_place(input, output);
  }
};

// Belongs to one thread at a time. An entry lives until add() is called.
class PreparedCalls {
 public:
  // Of kind_of() and as in the C API; null: not known.
  PreparedCall* find(uint64_t kind, size_t count) {
    const Recent& recent = recent_[slot_of(kind, count)];
    if (recent.kind == kind && recent.count == count && recent.call != nullptr) [[likely]]
      return recent.call;
    return look_up(kind, count);
  }
  // One that is not known.
  PreparedCall& add(uint64_t kind, size_t count, const PreparedCall& call);

 private:
  struct Key {
    uint64_t kind = 0;
    size_t count = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return mixed(key.kind, key.count); }
  };
  struct Recent {
    uint64_t kind = 0;
    size_t count = 0;
    PreparedCall* call = nullptr;
  };
  static constexpr size_t kRecent = 64;
  static constexpr size_t kMostCalls = 8192;  // some 4 MiB

  static uint64_t mixed(uint64_t kind, size_t count) {
    const uint64_t product = (kind ^ count * 0xff51afd7ed558ccdU) * 0x9e3779b97f4a7c15U;
    return product ^ product >> 32;
  }
  static size_t slot_of(uint64_t kind, size_t count) { return mixed(kind, count) % kRecent; }
  PreparedCall* look_up(uint64_t kind, size_t count);

  std::array<Recent, kRecent> recent_{};
  std::unordered_map<Key, PreparedCall, Hash> all_;
};

}  // namespace ccom
