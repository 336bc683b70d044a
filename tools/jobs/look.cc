// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/look.h"

#include <algorithm>
#include <map>
#include <thread>
#include <tuple>

#include "base/time.h"
#include "liveness/board.h"
#include "observe/directory.h"
#include "observe/source_line.h"
#include "tools/jobs/links.h"
#include "tools/jobs/shared_file.h"

namespace ccom {
namespace {

constexpr int kMostSlots = 1 << 16;
constexpr Rank kMostTold = 1 << 16;  // ranks of other hosts
// What is asked at once is answered within 150 ms, with the places outside of calls. Hosts that have not answered by
// the end do not.
constexpr std::chrono::milliseconds kWaits{150}, kWaitsAtMost{300}, kLooksEvery{20};

// Where a board is.
using BoardPlace = std::pair<FileNumber, uint64_t>;

// Boards that were read, each once: all ranks of a host name the same one.
class Boards {
 public:
  Boards(int64_t now_ns, const LookWishes& wishes) : now_ns_(now_ns), lines_(wishes.with_source_lines) {}

  void read(const ProcessSeen& process, uid_t user, const CommunicatorEntry& entry) {
    CommunicatorSeen& communicator = communicators_[entry.communicator];
    if (communicator.seen.empty()) describe(entry, communicator);
    communicator.age = std::max(communicator.age, static_cast<double>(now_ns_ - entry.begun_ns) * 1e-9);
    if (entry.slots > kMostSlots || entry.ranks != communicator.ranks) return;
    const std::optional<SharedFile> file = process.open_file(entry.board_fd, user);
    if (!file) return;
    const BoardPlace place{file->number, entry.board_offset};
    if (std::ranges::find(read_, place) != read_.end()) return;
    const auto mapping = ReadOnlyMapping::map(*file, entry.board_offset, Board::bytes(entry.slots));
    if (!mapping) return;
    // Board has a view that may write; of one that is mapped for reading only what reads is called.
    const ConstBytes bytes = mapping->bytes();
    const Result<Board> board = Board::over({const_cast<std::byte*>(bytes.data()), bytes.size()}, entry.slots);
    if (!board || !board->is_ready()) return;
    read_.push_back(place);
    read(*board, entry, communicator);
    if (entry.hosts == 1 || !communicator.error.empty()) return;
    read_told(*board, entry);
    write_to(*file, entry.board_offset, kBytesToAsk,
             [&](Bytes first) { return ask_all_hosts(first, now_ns_ + static_cast<int64_t>(kWatchSeconds * 1e9)); });
  }

  std::vector<CommunicatorSeen> take() {
    std::vector<CommunicatorSeen> all;
    for (auto& [number, communicator] : communicators_) {
      if (communicator.seen.empty()) continue;
      std::ranges::stable_sort(communicator.seen, {}, [](const RankSeen& rank) { return rank.activity.rank; });
      if (communicator.hosts > 1) add_told(told_[number], communicator);
      all.push_back(std::move(communicator));
    }
    std::ranges::stable_sort(
        all, {}, [](const CommunicatorSeen& c) { return std::tuple(c.parent != 0, -c.ranks, -c.age, c.number); });
    return all;
  }

 private:
  static void describe(const CommunicatorEntry& entry, CommunicatorSeen& communicator) {
    communicator.number = entry.communicator;
    communicator.parent = entry.parent;
    communicator.name = entry.name;
    communicator.ranks = entry.ranks;
    communicator.hosts = entry.hosts;
  }

  void read(const Board& board, const CommunicatorEntry& entry, CommunicatorSeen& communicator) {
    for (int slot = 0; slot < board.slots(); ++slot) {
      RankSeen rank = read_rank(board, slot);
      rank.host = entry.host_name;
      const Rank number = rank.activity.rank;
      const bool is_known = std::ranges::any_of(
          communicator.seen, [number](const RankSeen& other) { return other.activity.rank == number; });
      if (number >= 0 && number < communicator.ranks && !is_known) communicator.seen.push_back(std::move(rank));
    }
    const Status error = board.error();
    if (error.is_ok() || !communicator.error.empty()) return;
    communicator.error = printable(error.message());
    for (const int peer : error.peers())
      if (peer >= 0 && peer < communicator.ranks) communicator.failed.push_back(peer);
  }

  // What this board says of ranks of other hosts.
  void read_told(const Board& board, const CommunicatorEntry& entry) {
    std::map<Rank, RankSeen>& told = told_[entry.communicator];
    const double told_before = std::max(0.0, static_cast<double>(now_ns_ - board.told_elsewhere_ns()) * 1e-9);
    for (RankActivity& activity : board.activities_elsewhere(std::min<Rank>(entry.ranks, kMostTold), now_ns_)) {
      RankSeen& rank = told[activity.rank];
      if (!rank.is_here() && rank.told_before <= told_before) continue;
      std::string host = std::exchange(activity.host, {});
      rank = {.host = std::move(host), .activity = std::move(activity), .totals = {}, .told_before = told_before};
    }
  }

  // Of ranks that are seen here what others say does not count.
  void add_told(std::map<Rank, RankSeen>& told, CommunicatorSeen& communicator) const {
    std::vector<RankSeen> all;
    auto here = communicator.seen.begin();
    for (Rank rank = 0; rank < std::min<Rank>(communicator.ranks, kMostTold); ++rank) {
      if (here != communicator.seen.end() && here->activity.rank == rank) {
        all.push_back(std::move(*here++));
      } else if (const auto found = told.find(rank); found != told.end()) {
        RankActivity& activity = found->second.activity;
        activity.site = lines_.of_another_host(activity.site);
        activity.place = lines_.of_another_host(activity.place);
        all.push_back(std::move(found->second));
      } else {
        communicator.unknown.push_back(rank);
      }
    }
    std::move(here, communicator.seen.end(), std::back_inserter(all));
    communicator.seen = std::move(all);
  }

  RankSeen read_rank(const Board& board, int index) {
    const BoardSlot& slot = board.slot(index);
    RankSeen rank;
    rank.activity = read_unresolved_activity(slot.activity, now_ns_);
    rank.activity.rank = slot.rank.load(std::memory_order_relaxed) - 1;
    rank.activity.pid = slot.pid.load(std::memory_order_relaxed);
    rank.activity.algorithm = printable(std::move(rank.activity.algorithm));
    rank.activity.site = printable(lines_.of_this_host(rank.activity.site));
    rank.activity.place = printable(lines_.of_this_host(rank.activity.place));
    if (slot.state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::Empty))
      rank.activity.state = RankActivity::State::Absent;
    if (board.has_left(index)) rank.activity.state = RankActivity::State::Left;
    if (board.has_died(index)) rank.activity.state = RankActivity::State::Dead;
    rank.totals = totals_of(slot.activity.counters);
    return rank;
  }

  // For terminals.
  static std::string printable(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
    return text;
  }

  const int64_t now_ns_;
  SourceLines lines_;
  std::map<uint64_t, CommunicatorSeen> communicators_{};
  std::map<uint64_t, std::map<Rank, RankSeen>> told_{};  // by communicator
  std::vector<BoardPlace> read_{};
};

// Directories of one process: one, unless it has come by another one's.
std::vector<CommunicatorEntry> read_directories(const ProcessSeen& process, const std::vector<int>& fds, uid_t user,
                                                std::vector<FileNumber>& known, HostSeen& seen) {
  std::vector<CommunicatorEntry> entries;
  for (const int fd : fds) {
    const std::optional<SharedFile> file = process.open_file(fd, user);
    if (!file || std::ranges::find(known, file->number) != known.end()) continue;
    known.push_back(file->number);
    const auto mapping = ReadOnlyMapping::map(*file, 0, std::min<uint64_t>(file->size_bytes, sizeof(Directory)));
    std::optional<DirectoryContents> contents = mapping ? read_directory(mapping->bytes()) : std::nullopt;
    if (!contents) {
      ++seen.other_versions;
      continue;
    }
    seen.unlisted += contents->unlisted;
    std::ranges::move(contents->entries, std::back_inserter(entries));
  }
  return entries;
}

std::vector<Rank> ranks_in(const std::vector<CommunicatorEntry>& entries) {
  std::vector<Rank> ranks;
  for (const CommunicatorEntry& entry : entries)
    if (entry.parent == 0 && std::ranges::find(ranks, entry.rank) == ranks.end()) ranks.push_back(entry.rank);
  std::ranges::sort(ranks);
  return ranks;
}

HostSeen look_once(uid_t user, const LookWishes& wishes) {
  HostSeen seen;
  seen.at_ns = monotonic_ns();
  std::vector<FileNumber> known;
  Boards boards(seen.at_ns, wishes);
  std::vector<ProcessSockets> sockets;
  for (const pid_t pid : all_processes()) {
    const std::optional<ProcessSeen> process = ProcessSeen::open(pid, user);
    if (!process) continue;
    ProcessSeen::Files files = process->files(kDirectoryName);
    const auto entries = read_directories(*process, files.memfds, user, known, seen);
    for (const CommunicatorEntry& entry : entries) boards.read(*process, user, entry);
    if (!entries.empty()) sockets.push_back({pid, ranks_in(entries), std::move(files.sockets)});
  }
  seen.communicators = boards.take();
  seen.links = links_of(sockets);
  return seen;
}

bool misses_hosts(const HostSeen& seen) {
  return std::ranges::any_of(seen.communicators, [](const CommunicatorSeen& each) {
    return each.hosts > 1 && each.error.empty() && !each.unknown.empty();
  });
}

}  // namespace

HostSeen look_at_host(uid_t user, const LookWishes& wishes) {
  const Deadline deadline = Deadline::after(kWaitsAtMost);
  HostSeen seen = look_once(user, wishes);
  if (!wishes.waits_for_hosts || !misses_hosts(seen)) return seen;
  std::this_thread::sleep_for(kWaits);
  for (;;) {
    seen = look_once(user, wishes);
    if (!misses_hosts(seen) || deadline.passed()) return seen;
    std::this_thread::sleep_for(kLooksEvery);
  }
}

}  // namespace ccom
