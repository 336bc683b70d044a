// SPDX-License-Identifier: Apache-2.0
//
// Where the communicators of a process are: a small memory of each process that uses ccom, a memfd with a fixed name,
// which tools of the same user find below /proc. It says of each communicator who this rank is in it, and where the
// board of its host lies: in which descriptor of this process, and at which offset.
//
// One process writes, anybody reads. Readers take nothing for granted: any process of the user may have written it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "observe/sequence_lock.h"

namespace ccom {

inline constexpr const char* kDirectoryName = "ccom-directory";  // of the memfd

// A communicator, as one of its ranks knows it.
struct CommunicatorEntry {
  uint64_t communicator = 0;  // its number
  uint64_t parent = 0;        // that of the one that it is a part of; 0: none
  Rank rank = -1;
  int ranks = 0, hosts = 0, host = -1;  // how many, and this one's index
  int slot = -1, slots = 0;             // of the board: this rank's, and all
  int board_fd = -1;                    // of this process
  uint64_t board_offset = 0;
  int64_t begun_ns = 0;     // CLOCK_MONOTONIC
  std::string name{};       // ccomConfig_t.commName
  std::string host_name{};  // as in error texts

  friend bool operator==(const CommunicatorEntry&, const CommunicatorEntry&) = default;
};

// Zeroed memory is an empty directory that nobody has begun.
struct Directory {
  static constexpr uint64_t kMagic = 0x3472696463636f6d;  // change with the layout, or that of boards
  static constexpr size_t kEntries = 4096;                // that of others are not listed
  struct Entry {
    SequenceLock lock;
    std::atomic<uint64_t> is_used, communicator, parent;
    std::atomic<int32_t> rank, ranks, hosts, host, slot, slots, board_fd, unused;
    std::atomic<uint64_t> board_offset, begun_ns;
    std::array<std::atomic<uint64_t>, 6> name;
    std::array<std::atomic<uint64_t>, 8> host_name;
    std::array<std::atomic<uint64_t>, 8> spare;
  };
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> used;      // no entry behind so many is used, or was
  std::atomic<uint64_t> unlisted;  // communicators that found no place
  std::array<std::atomic<uint64_t>, 29> spare;
  std::array<Entry, kEntries> entries;

  // By one thread at a time. Texts that are too long lose their end.
  void put(size_t index, const CommunicatorEntry& entry);
  void clear(size_t index);
};
static_assert(sizeof(Directory::Entry) == 256);

// All that are in it and make sense as far as one can see here; nothing if it is none, or of another version of ccom.
// bytes: of the memory, which may be shorter than a whole directory.
struct DirectoryContents {
  std::vector<CommunicatorEntry> entries;
  uint64_t unlisted = 0;
};
std::optional<DirectoryContents> read_directory(ConstBytes bytes);

}  // namespace ccom
