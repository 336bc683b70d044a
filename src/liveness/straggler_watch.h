// SPDX-License-Identifier: Apache-2.0
//
// Finds why a rank of this host waits for long: which ranks have not come, and which ones made another call.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "liveness/board.h"
#include "liveness/control_tree.h"

namespace ccom {

// Thread-safe but for poll().
class StragglerWatch {
 public:
  // ranks: of the board's host, outlive the watch.
  StragglerWatch(Board board, const std::vector<Rank>& ranks, int own_slot)
      : board_(board), ranks_(ranks), own_slot_(own_slot) {}

  // Whether this rank asks for what is known of other hosts; the tree's member of this host sees it within 5 ms.
  // Returns whether it did before.
  bool ask(bool asks) const { return board_.slot(own_slot_).asks.exchange(asks, std::memory_order_relaxed) != 0; }
  // Of this host, as it is now.
  StragglerReport on_host() const { return board_.straggler_report(ranks_); }
  // Of all hosts, as of the last poll: who is furthest behind.
  StragglerReport on_all_hosts() const { return board_.stragglers(); }

  // The same when all hosts have been asked: 150 ms later. wake: the thread that asks them; until goes_on() is false.
  StragglerReport ask_all_hosts(const std::function<void()>& wake, const std::function<bool()>& goes_on) const;

  // On the liveness thread of the tree's member: tells the tree what is known here, if anybody asks for it, and returns
  // what is known of all hosts.
  std::optional<StragglerReport> poll(ControlTree& tree) const;

 private:
  const Board board_;
  const std::vector<Rank>& ranks_;
  const int own_slot_;
};

// A Mismatch if calls of equal number in the report differ; or if results before them do, once it holds the calls of
// all `nranks` ranks.
std::optional<Status> difference_error(const StragglerReport& known, size_t nranks);

}  // namespace ccom
