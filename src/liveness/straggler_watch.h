// SPDX-License-Identifier: Apache-2.0
//
// Finds why a rank of this host waits for long: which ranks have not come, which ones made another call, and what the
// ranks of other hosts do.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "liveness/board.h"
#include "liveness/control_tree.h"

namespace ccom {

struct HostMembers;

// Thread-safe but for what belongs to the liveness thread.
class StragglerWatch {
 public:
  // host: the board's, outlives the watch.
  StragglerWatch(Board board, const HostMembers& host, int own_slot)
      : board_(board), host_(host), own_slot_(own_slot) {}

  // What this rank asks of other hosts; the tree's member of this host sees it within 5 ms. Returns what it did before.
  PollWish ask(PollWish wish) const {
    return static_cast<PollWish>(
        board_.slot(own_slot_).asks.exchange(static_cast<uint32_t>(wish), std::memory_order_relaxed));
  }
  // Of this host, as it is now.
  StragglerReport on_host() const;
  // Of all hosts, as of the last poll: who is furthest behind.
  StragglerReport on_all_hosts() const { return board_.stragglers(); }

  // The same when all hosts have been asked: 150 ms later. wake: the thread that asks them; until goes_on() is false.
  // What the ranks do is on the board then.
  StragglerReport ask_all_hosts(const std::function<void()>& wake, const std::function<bool()>& goes_on) const;

  // On the liveness thread of the tree's member: tells the tree what is known here, if anybody asks for it, and returns
  // what is known of all hosts.
  std::optional<StragglerReport> poll(ControlTree& tree, int64_t now_ns);
  // On that thread: asks until then, too.
  void ask_until(int64_t until_ns) { asks_until_ns_ = until_ns; }

 private:
  ActivityTable read_activities(int64_t now_ns) const;
  bool reads_now(bool asks_places, int64_t now_ns);

  const Board board_;
  const HostMembers& host_;
  const int own_slot_;
  // Of the liveness thread. 0: no poll is on.
  int64_t begun_ns_ = 0, last_reading_ns_ = 0, next_question_ns_ = 0, asks_until_ns_ = 0;
  ActivityTable activities_;  // of this host, when they were read last
};

// A Mismatch if calls of equal number in the report differ; or if results before them do, once it holds the calls of
// all `nranks` ranks.
std::optional<Status> difference_error(const StragglerReport& known, size_t nranks);

}  // namespace ccom
