// SPDX-License-Identifier: Apache-2.0
//
// What a Monitor does on the liveness thread.
#include <algorithm>

#include "base/log.h"
#include "liveness/monitor_config.h"
#include "liveness/monitor_impl.h"

namespace ccom {
namespace {

constexpr int64_t kPollIntervalNs = 5 * kNsPerMs;  // while hosts compare their calls
constexpr int64_t kMostBeatNs = 250 * kNsPerMs;    // tools and error texts say since when a process has not run
constexpr int64_t kDifferenceNs = 15 * kNsPerMs;   // more of what ranks do arrives meanwhile

}  // namespace

// A communicator that has failed is not left: its error says more.
void MonitorImpl::announce_departure() {
  if (failed()) return;
  board_.depart(slot_, config_.rank, history_);
  spread_departure();
}

// The communicator's error, if any, or the departure is sent before the goodbye.
void MonitorImpl::leave() {
  if (!taken_) return;
  try {
    flood_failure();
    announce_departure();
    const uint64_t rounds = board_.slot(slot_).rounds.load(std::memory_order_acquire);
    for_each_tree([rounds](ControlTree& tree) { tree.leave(rounds); });
    if (agreement_) agreement_->leave(rounds);
  } catch (const std::bad_alloc&) {  // the closed streams tell the other hosts
  }
  edges_.clear();
  trees_.clear();
  agreement_.reset();
  family_.reset();
  thread_->remove(this);
  board_.leave(slot_, thread_->robust_futexes());
  taken_ = false;
}

// Silent ranks and connections are found when poll() is due.
bool MonitorImpl::has_work() const {
  if ((failed() && (!flooded_ || has_listener_)) || pulse_.is_asked()) return true;
  if (trees_.empty()) return false;
  if (agreement_ && agreement_->is_open()) return true;
  return !failed() && is_tree_member_ && board_.has_news(losses_.taken(), departure_told_);
}

int64_t MonitorImpl::poll(int64_t now_ns) {
  const LogContext context(config_.rank, config_.communicator);
  int64_t next_ns = INT64_MAX;
  if (shares_board() || has_several_hosts()) {
    if (now_ns >= next_beat_ns_) {
      board_.slot(slot_).beats.fetch_add(1, std::memory_order_relaxed);
      pulse_.beat(now_ns);
      next_beat_ns_ = next_beat_ns(now_ns, std::min(config_.dead_ms * kNsPerMs / 12, kMostBeatNs), beat_phase_ns());
    }
    next_ns = next_beat_ns_;
  }
  if (pulse_.answer(now_ns)) next_ns = std::min(next_ns, now_ns + kNsPerMs);
  flood_failure();  // the board's error is sent before others are received
  for (auto& tree : trees_) {
    if (!tree) continue;
    next_ns = std::min(next_ns, tree->poll(now_ns));
  }
  if (tell_trees_of_losses(now_ns)) next_ns = now_ns;
  if (poll_stragglers(now_ns)) next_ns = std::min(next_ns, now_ns + kPollIntervalNs);
  spread_departure();
  flood_failure();
  call_listener();
  return agreement_ ? std::min(next_ns, agreement_->poll(now_ns)) : next_ns;
}

bool MonitorImpl::tell_trees_of_losses(int64_t now_ns) {
  if (failed() || !is_tree_member_) return false;
  const std::vector<Status> losses = losses_.take_new(now_ns);
  if (!losses.empty()) {  // host 0 hears what the ranks do, and whoever hears that says the same
    stragglers_.ask_until(now_ns + kDecisionNs);
    poll_stragglers(now_ns);
    if (failed()) return false;
  }
  for (const Status& loss : losses) for_each_tree([&](ControlTree& tree) { tree.find_lost(loss, now_ns); });
  return !losses.empty();
}

// For members of the first tree. Returns whether a poll is in progress.
bool MonitorImpl::poll_stragglers(int64_t now_ns) {
  if (trees_.empty() || !trees_.front() || failed()) return false;
  const std::optional<StragglerReport> found = stragglers_.poll(*trees_.front(), now_ns);
  if (found) settle_difference(*found, now_ns);
  return found.has_value();
}

// All hosts find it, and all ranks are to have one text: that of host 0, which others wait for, unless it takes as long
// as no host should.
void MonitorImpl::settle_difference(const StragglerReport& known, int64_t now_ns) {
  const auto difference = failed() ? std::nullopt : difference_error(known, static_cast<size_t>(count_ranks(config_)));
  if (!difference) return;
  if (difference_ns_ == 0) difference_ns_ = now_ns;
  if (config_.host_index == 0 && now_ns - difference_ns_ >= kDifferenceNs) publish(quoted(*difference));
  if (now_ns - difference_ns_ >= kDecisionNs) publish(*difference);
}

// To the other hosts: of any rank of this host. On the liveness thread.
void MonitorImpl::spread_departure() {
  const std::optional<Departure> first = board_.first_departure();
  if (!first || failed()) return;
  for_each_tree([&](ControlTree& tree) { tree.depart(*first); });
  departure_told_ = first;
}

void MonitorImpl::flood_failure() {
  if (flooded_ || !failed()) return;
  for_each_tree([error = board_.error()](ControlTree& tree) { tree.fail(error); });
  flooded_ = true;
}

void MonitorImpl::call_listener() {
  if (!failed()) return;
  std::function<void()> listener;
  {
    const Lock lock(mutex_);
    listener.swap(listener_);
    has_listener_ = false;
  }
  if (listener) listener();
}

}  // namespace ccom
