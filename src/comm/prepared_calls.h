// SPDX-License-Identifier: Apache-2.0
//
// Collective calls of equal units, v-forms among them, ready to run but for their buffers and their number: what is the
// same in each call with the same arguments is found out once.
#pragma once

#include <array>
#include <optional>
#include <unordered_map>

#include "base/collective.h"
#include "comm/program_cache.h"
#include "node/flag_barrier.h"
#include "node/small_call.h"
#include "observe/call_counters.h"
#include "observe/call_site.h"

namespace ccom {

struct PreparedCall {
  CallWords words{};  // of its envelope; the number's is that of the last call
  uint64_t hash = 0;  // of these, without that of the number
  size_t count = 0;   // as in the C API; of a v-form: of each part
  bool is_v = false;
  size_t unit_bytes = 0;
  BufferUse buffers{};
  CallCounters::Cell* counters = nullptr;  // where it is counted
  LastCallSite site{};
  std::optional<SmallCall> small{};      // nothing: a program runs
  std::array<ProgramUse, 2> programs{};  // by whether the buffers are in place

  // Whether the buffers are there and legal.
  bool takes(const void* input, const void* output) const {
    return (input != nullptr || buffers.input_bytes == 0) && (output != nullptr || buffers.output_bytes == 0) &&
           buffers.is_legal(input, output);
  }
};

// Belongs to one thread at a time. An entry lives until add() is called.
class PreparedCalls {
 public:
  // Of kind_of() and PreparedCall::count; null: not known.
  PreparedCall* find(uint64_t kind, size_t count) {
    const Recent& recent = recent_[slot_of(kind, count)];
    if (recent.kind == kind && recent.count == count && recent.call != nullptr) [[likely]]
      return recent.call;
    return look_up(kind, count);
  }
  void forget_all();
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
