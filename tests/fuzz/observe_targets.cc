// SPDX-License-Identifier: Apache-2.0
//
// What tools read from memory of other processes of the user: directories, and boards with what ranks say in them.
#include <cstdint>
#include <cstring>

#include "liveness/board.h"
#include "observe/directory.h"
#include "observe/rank_activity.h"
#include "observe/straggler_report.h"
#include "tests/fuzz/memory.h"
#include "tests/fuzz/target.h"

namespace ccom {
namespace {

using fuzz::Memory;
using fuzz::Reader;
using fuzz::require;

CCOM_FUZZ_TARGET(directory) {
  Reader reader(input);
  const Memory memory(1 + reader.below(sizeof(Directory)));
  if (memory.bytes().size() >= sizeof(uint64_t))
    std::memcpy(memory.bytes().data(), &Directory::kMagic, sizeof(uint64_t));
  memory.fill(reader);
  const std::optional<DirectoryContents> contents = read_directory(memory.bytes());
  if (!contents) return;
  for (const CommunicatorEntry& entry : contents->entries) {
    require(entry.rank >= 0 && entry.rank < entry.ranks && entry.host >= 0 && entry.host < entry.hosts);
    require(entry.slot >= 0 && entry.slot < entry.slots && entry.slots <= entry.ranks && entry.board_fd >= 0);
    for (const char c : entry.name + entry.host_name) require(static_cast<unsigned char>(c) >= ' ');
  }
}

CCOM_FUZZ_TARGET(board) {
  constexpr int kSlots = 2;
  Reader reader(input);
  const Memory memory(Board::bytes(kSlots));
  memory.fill(reader);
  const Board board = Board::over(memory.bytes(), kSlots).value();
  std::vector<RankActivity> activities;
  for (int slot = 0; slot < kSlots; ++slot) {
    activities.push_back(read_activity(board.slot(slot).activity, 1'000'000'000, false));
    for (const CallTotals::Of& of : totals_of(board.slot(slot).activity.counters).calls)
      require(of.size_class < kSizeClasses && of.timed <= of.calls);
    (void)board.has_died(slot);
  }
  require(describe(activities).size() <= 700);
  const WaitReport report = report_waits(board.waits({0, 1}, 1, false), kSlots);
  require(text_of(report).size() < 16384 && json_of(report).size() < 16384);
  (void)board.error();
}

}  // namespace
}  // namespace ccom
