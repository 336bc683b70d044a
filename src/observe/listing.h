// SPDX-License-Identifier: Apache-2.0
//
// Writes this process's directory (directory.h): made with the first communicator and closed with the last, one
// descriptor, memory as far as it is used.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "observe/activity_record.h"
#include "observe/directory.h"

namespace ccom {

// A communicator's place in the directory, for as long as it lives. One that could not be listed, because there is no
// memory, descriptor or place for it, is empty and works all the same. Belongs to one thread at a time; the directory
// is thread-safe, and not shared with forked children.
class Listing {
 public:
  Listing() = default;
  // record: of this rank's activity; outlives the listing.
  Listing(const CommunicatorEntry& entry, const ActivityRecord& record) noexcept;
  Listing(Listing&& other) noexcept
      : index_(std::exchange(other.index_, kNone)), generation_(std::exchange(other.generation_, 0)) {}
  Listing& operator=(Listing&& other) noexcept {
    std::swap(index_, other.index_);
    std::swap(generation_, other.generation_);
    return *this;
  }
  ~Listing();
  bool is_listed() const { return index_ != kNone; }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t index_ = kNone;
  uint32_t generation_ = 0;  // of the process that it was listed in
};

// What the rank of that record does in another communicator of this process, for texts about one in which it is in no
// call: "in allreduce #2 of communicator f4ab04 (whole) at program+0x12 step", of several the call that has lasted
// longest. "" if there is none, or if the process has several ranks of one communicator: it may be another one's. The
// record is listed. Thread-safe.
std::string call_elsewhere(const ActivityRecord& record, int64_t now_ns);
// Whether it may say something.
bool has_other_communicators();

}  // namespace ccom
