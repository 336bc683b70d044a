// SPDX-License-Identifier: Apache-2.0
#include "liveness/board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>

#include "base/assert.h"
#include "base/time.h"
#include "liveness/thread_state.h"
#include "observe/shared_text.h"

namespace ccom {

namespace {

constexpr uint64_t kReportedCalls = 8;        // of each rank, the last ones
constexpr uint32_t kBoardReady = 0x62726463;  // "brdc": change with the layout
constexpr int64_t kFreshNs = 1'500'000'000;   // what was heard of other hosts

// Process-shared, unlike std::atomic::notify_all: the waiters are in other processes.
void wake_waiters(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Made when the library is loaded.
const std::vector<std::byte> kOutOfMemory = encode_error(Status(Code::OutOfMemory, "a rank ran out of memory"));

bool is_watched_at(const BoardHeader& header, int64_t now_ns) {
  const auto until_ns = static_cast<int64_t>(header.watched_until_ns.load(std::memory_order_relaxed));
  return until_ns > now_ns && until_ns - now_ns <= kLongestWatchNs;
}

bool is_watched(const BoardHeader& header) {
  return header.watched_until_ns.load(std::memory_order_relaxed) != 0 && is_watched_at(header, monotonic_ns());
}

std::vector<std::byte> encode_if_possible(const Status& status) noexcept {
  try {
    return encode_error(status);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

size_t Board::bytes(int slots) { return sizeof(BoardHeader) + static_cast<size_t>(slots) * sizeof(BoardSlot); }

Result<Board> Board::over(Bytes memory, int slots) {
  if (memory.size() < bytes(slots))
    return ccom::error(Code::InvalidArgument, "a liveness board for %d ranks needs %zu bytes, got %zu", slots,
                       bytes(slots), memory.size());
  if (reinterpret_cast<uintptr_t>(memory.data()) % alignof(BoardHeader) != 0)
    return ccom::error(Code::InvalidArgument, "a liveness board must be aligned to %zu bytes", alignof(BoardHeader));
  auto* header = reinterpret_cast<BoardHeader*>(memory.data());
  return Board(header, reinterpret_cast<BoardSlot*>(memory.data() + sizeof(BoardHeader)), slots);
}

void Board::initialise() { header_->ready.store(kBoardReady, std::memory_order_release); }

bool Board::is_ready() const { return header_->ready.load(std::memory_order_acquire) == kBoardReady; }

Status Board::take(int index, uint64_t process, RobustFutexList& robust_futexes) const {
  BoardSlot& own = slot(index);
  if (own.state.load(std::memory_order_acquire) != static_cast<uint32_t>(SlotState::Empty))
    return ccom::error(Code::InternalError, "slot %d of the liveness board is already taken", index);
  CCOM_TRY(robust_futexes.hold(own.robust_futex));
  own.pid.store(::getpid(), std::memory_order_relaxed);
  own.process.store(process, std::memory_order_relaxed);
  own.pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  own.state.store(static_cast<uint32_t>(SlotState::Alive), std::memory_order_release);
  return Status::ok();
}

// Of two ranks that leave at once, one finds that the other has left.
void Board::depart(int index, Rank rank, uint16_t history) const {
  BoardSlot& own = slot(index);
  own.history.store(history, std::memory_order_relaxed);
  own.state.store(static_cast<uint32_t>(SlotState::Left), std::memory_order_seq_cst);
  note_departure({own.activity.calls.begun.load(std::memory_order_relaxed), rank, history});
}

std::optional<Departure> Board::departure_of(int index, Rank rank) const {
  const BoardSlot& other = slot(index);
  if (other.state.load(std::memory_order_seq_cst) != static_cast<uint32_t>(SlotState::Left)) return std::nullopt;
  const auto history = static_cast<uint16_t>(other.history.load(std::memory_order_relaxed));
  if (history == 0) return std::nullopt;
  return Departure{other.activity.calls.begun.load(std::memory_order_relaxed), rank, history};
}

void Board::leave(int index, RobustFutexList& robust_futexes) const {
  BoardSlot& own = slot(index);
  own.state.store(static_cast<uint32_t>(SlotState::Left), std::memory_order_release);
  robust_futexes.release(own.robust_futex);
}

bool Board::has_died(int index) const {
  const BoardSlot& other = slot(index);
  return other.state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::Alive) &&
         other.robust_futex.is_broken();
}

bool Board::has_left(int index) const {
  return slot(index).state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::Left);
}

// A history stands at its place before anybody can see the word. It is lost if a departure with the same place comes at
// that moment: then it is not compared.
std::atomic<uint64_t>& Board::history_of_departure(uint64_t word) const {
  return header_->departure_histories[(word ^ word >> 24) % header_->departure_histories.size()];
}

std::optional<Departure> Board::first_departure() const {
  const uint64_t word = header_->departure.load(std::memory_order_acquire);
  std::optional<Departure> first = departure_from_word(word);
  if (!first) return first;
  const uint64_t known = history_of_departure(word).load(std::memory_order_relaxed);
  if ((known ^ word) << 16 == 0) first->history = static_cast<uint16_t>(known >> 48);
  return first;
}

bool Board::note_departure(const Departure& departure) const {
  const uint64_t word = to_word(departure);
  uint64_t known = header_->departure.load(std::memory_order_relaxed);
  if (known < word)
    history_of_departure(word).store(uint64_t{departure.history} << 48 | (word << 16 >> 16), std::memory_order_relaxed);
  while (known < word) {
    if (header_->departure.compare_exchange_weak(known, word, std::memory_order_acq_rel)) return true;
  }
  return false;
}

// A rank says all there is to say.
bool Board::note_lost(Rank rank) const {
  for (std::atomic<Rank>& place : header_->lost) {
    Rank found = 0;
    if (place.compare_exchange_strong(found, rank + 1, std::memory_order_relaxed)) return true;
    if (found == rank + 1) return false;
  }
  return false;
}

std::vector<Rank> Board::lost() const {
  std::vector<Rank> ranks;
  for (const std::atomic<Rank>& place : header_->lost) {
    const Rank found = place.load(std::memory_order_relaxed);
    if (found == 0) break;
    ranks.push_back(found - 1);
  }
  return ranks;
}

bool Board::has_news(size_t lost, const std::optional<Departure>& departure) const {
  if (first_departure() != departure) return true;
  if (lost < kMostLost && header_->lost[lost].load(std::memory_order_relaxed) != 0) return true;
  for (int index = 0; index < slots_; ++index)
    if (slot(index).asks.load(std::memory_order_relaxed) != 0 || has_died(index)) return true;
  return is_watched(*header_);
}

bool Board::publish(int index, const Status& status) const {
  if (header_->abort_word.load(std::memory_order_acquire) != 0) return false;
  BoardSlot& own = slot(index);
  const std::vector<std::byte> own_text = encode_if_possible(status);
  const std::vector<std::byte>& encoded = own_text.empty() ? kOutOfMemory : own_text;
  CCOM_ASSERT(encoded.size() <= sizeof own.error);
  own.error_bytes = static_cast<uint32_t>(encoded.size());
  std::ranges::copy(encoded, own.error);
  uint32_t healthy = 0;
  const auto mine = static_cast<uint32_t>(index + 1);
  if (!header_->abort_word.compare_exchange_strong(healthy, mine, std::memory_order_acq_rel)) return false;
  wake_waiters(header_->abort_word);
  return true;
}

PollWish Board::poll_wish(int64_t now_ns) const {
  uint32_t most = is_watched_at(*header_, now_ns) ? static_cast<uint32_t>(PollWish::Places) : 0;
  for (int i = 0; i < slots_; ++i) most = std::max(most, slot(i).asks.load(std::memory_order_relaxed));
  return static_cast<PollWish>(most);
}

bool ask_all_hosts(Bytes board, int64_t until_ns) {
  static_assert(offsetof(BoardHeader, elsewhere) == kBytesToAsk);
  if (board.size() < kBytesToAsk || reinterpret_cast<uintptr_t>(board.data()) % alignof(BoardHeader) != 0) return false;
  auto& header = *reinterpret_cast<BoardHeader*>(board.data());
  if (header.ready.load(std::memory_order_acquire) != kBoardReady) return false;
  header.watched_until_ns.store(static_cast<uint64_t>(until_ns), std::memory_order_relaxed);
  return true;
}

StragglerReport Board::straggler_report(const std::vector<Rank>& ranks) const {
  CCOM_ASSERT(ranks.size() == static_cast<size_t>(slots_));
  StragglerReport found;
  for (int i = 0; i < slots_; ++i) {
    const CallRecord& record = slot(i).activity.calls;
    const Rank rank = ranks[static_cast<size_t>(i)];
    const uint64_t last = record.begun.load(std::memory_order_acquire);
    StragglerReport own{last, {rank}};
    for (uint64_t number = last - std::min(last, kReportedCalls) + 1; number <= last; ++number)
      if (const auto call = record.find(number)) own.begun.push_back({*call, rank});
    found = merge(found, own);
  }
  return found;
}

void Board::publish_stragglers(const StragglerReport& found) const {
  CCOM_ASSERT(found.ranks.size() <= StragglerReport::kMost);
  header_->straggler_lock.write([&] {
    header_->straggler_calls.store(found.calls, std::memory_order_release);
    header_->straggler_count.store(static_cast<uint32_t>(found.ranks.size()), std::memory_order_release);
    for (size_t i = 0; i < found.ranks.size(); ++i)
      header_->straggler_ranks[i].store(found.ranks[i], std::memory_order_release);
  });
}

StragglerReport Board::stragglers() const {
  StragglerReport found;
  const bool is_whole = header_->straggler_lock.read([&] {
    found.calls = header_->straggler_calls.load(std::memory_order_acquire);
    found.ranks.resize(
        std::min<size_t>(header_->straggler_count.load(std::memory_order_acquire), StragglerReport::kMost));
    for (size_t i = 0; i < found.ranks.size(); ++i)
      found.ranks[i] = header_->straggler_ranks[i].load(std::memory_order_acquire);
  });
  return is_whole && !found.ranks.empty() ? found : StragglerReport();  // without ranks: never written
}

void Board::publish_elsewhere(const ActivityTable& table, int64_t now_ns) const {
  const std::vector<std::byte> bytes = encode_table(table, now_ns);
  std::array<uint64_t, kMostTableBytes / 8> packed{};
  std::memcpy(packed.data(), bytes.data(), bytes.size());
  BoardHeader::Elsewhere& elsewhere = header_->elsewhere;
  elsewhere.lock.write([&] {
    elsewhere.at_ns.store(static_cast<uint64_t>(now_ns), std::memory_order_release);
    elsewhere.size_bytes.store(bytes.size(), std::memory_order_release);
    for (size_t i = 0; i < (bytes.size() + 7) / 8; ++i) elsewhere.words[i].store(packed[i], std::memory_order_release);
  });
}

std::vector<RankActivity> Board::activities_elsewhere(Rank ranks, int64_t now_ns) const {
  const BoardHeader::Elsewhere& elsewhere = header_->elsewhere;
  std::array<uint64_t, kMostTableBytes / 8> packed{};
  int64_t at_ns = 0;
  uint64_t size_bytes = 0;
  const bool is_whole = elsewhere.lock.read([&] {
    at_ns = static_cast<int64_t>(elsewhere.at_ns.load(std::memory_order_acquire));
    size_bytes = elsewhere.size_bytes.load(std::memory_order_acquire);
    load_words(elsewhere.words, packed);
  });
  if (!is_whole || size_bytes == 0 || size_bytes > kMostTableBytes || at_ns < now_ns - kFreshNs || at_ns > now_ns)
    return {};
  const auto table = decode_table(std::as_bytes(std::span(packed)).first(size_bytes), at_ns);
  return table ? activities_in(*table, now_ns, ranks) : std::vector<RankActivity>();
}

int64_t Board::told_elsewhere_ns() const {
  return static_cast<int64_t>(header_->elsewhere.at_ns.load(std::memory_order_acquire));
}

std::vector<RankActivity> Board::activities(const std::vector<Rank>& ranks) const {
  CCOM_ASSERT(ranks.size() == static_cast<size_t>(slots_));
  std::vector<RankActivity> found;
  for (int i = 0; i < slots_; ++i) {
    const BoardSlot& of = slot(i);
    RankActivity activity = read_unresolved_activity(of.activity, monotonic_ns());
    activity.rank = ranks[static_cast<size_t>(i)];
    activity.pid = of.pid.load(std::memory_order_relaxed);
    if (of.state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::Empty))
      activity.state = RankActivity::State::Absent;
    if (has_left(i)) activity.state = RankActivity::State::Left;
    if (has_died(i)) activity.state = RankActivity::State::Dead;
    found.push_back(std::move(activity));
  }
  return found;
}

std::vector<RankWaits> Board::waits(const std::vector<Rank>& ranks, double seconds, bool reads_files) const {
  CCOM_ASSERT(ranks.size() == static_cast<size_t>(slots_));
  std::vector<RankWaits> found;
  found.reserve(ranks.size());
  for (int i = 0; i < slots_; ++i)
    found.push_back(read_waits(slot(i).activity, ranks[static_cast<size_t>(i)], seconds, reads_files));
  return found;
}

std::vector<std::pair<int, uint32_t>> Board::ask_places() const {
  const auto asks = [](const BoardSlot& of) {
    const bool can_tell = of.activity.place.can_tell.load(std::memory_order_relaxed) != 0;
    return can_tell && of.state.load(std::memory_order_relaxed) == static_cast<uint32_t>(SlotState::Alive);
  };
  std::vector<std::pair<int, uint32_t>> asked;
  for (int i = 0; i < slots_; ++i)
    if (asks(slot(i))) asked.emplace_back(i, ask_place(slot(i).activity));
  if (!asked.empty()) wake_waiters(header_->abort_word);
  return asked;
}

void Board::ask_places(std::chrono::milliseconds at_most, const std::function<bool()>& goes_on) const {
  const std::vector<std::pair<int, uint32_t>> asked = ask_places();
  const auto is_told = [this](const std::pair<int, uint32_t>& question) {
    return has_died(question.first) || is_place_told(slot(question.first).activity, question.second);
  };
  const Deadline deadline = Deadline::after(at_most);
  while (!std::ranges::all_of(asked, is_told) && !deadline.passed() && goes_on())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Status Board::error() const {
  const uint32_t winner = header_->abort_word.load(std::memory_order_acquire);
  if (winner == 0) return Status::ok();
  if (winner <= static_cast<uint32_t>(slots_)) {
    const BoardSlot& source = slot(static_cast<int>(winner - 1));
    const size_t size = std::min<size_t>(source.error_bytes, kMaxErrorBytes);
    if (auto status = decode_error(ConstBytes(source.error, size))) return *std::move(status);
  }
  return ccom::error(Code::InternalError,
                     "the liveness board is corrupt: abort word %u is set, but there is no error record", winner);
}

}  // namespace ccom
