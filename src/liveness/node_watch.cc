// SPDX-License-Identifier: Apache-2.0
#include "liveness/node_watch.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace ccom {

std::function<ThreadState(const BoardSlot&)> state_of_holders() {
  return [here = pid_namespace()](const BoardSlot& slot) {
    if (here == 0 || slot.pid_namespace.load(std::memory_order_relaxed) != here) return ThreadState::Unknown;
    return thread_state(slot.pid.load(std::memory_order_relaxed), slot.robust_futex.holder());
  };
}

NodeWatch::NodeWatch(Board board, Config config) : board_(board), config_(std::move(config)) {
  CCOM_ASSERT(static_cast<int>(config_.ranks.size()) == board_.slots());
  beats_.resize(config_.ranks.size());
}

std::optional<Status> NodeWatch::find_failures(int64_t now_ns) {
  if (!mutex_.try_lock()) return std::nullopt;
  const Lock lock(mutex_, std::adopt_lock);
  // Silence is measured only over time in which this process was checking: between calls it does not, and a process
  // that was itself stopped cannot judge others.
  const bool fresh = now_ns - last_check_ns_ > config_.dead_ns / 2;
  last_check_ns_ = now_ns;
  std::vector<int> dead, silent;
  for (int slot = 0; slot < board_.slots(); ++slot) {
    if (!is_watched(slot)) continue;
    if (board_.has_died(slot)) {
      dead.push_back(slot);
    } else if (is_silent(slot, now_ns, fresh)) {
      silent.push_back(slot);
    }
  }
  if (!dead.empty()) {
    add_ending(dead);
    return death_error(dead);
  }
  if (!silent.empty()) return silence_error(silent);
  return std::nullopt;
}

bool NodeWatch::is_watched(int index) const {
  if (index == config_.own_slot) return false;
  const BoardSlot& slot = board_.slot(index);
  const auto state = static_cast<SlotState>(slot.state.load(std::memory_order_acquire));
  if (state == SlotState::Empty || state == SlotState::Left) return false;
  return slot.process.load(std::memory_order_relaxed) != config_.process;
}

// One that is killed dies when it is scheduled, which is milliseconds later on a busy host.
void NodeWatch::add_ending(std::vector<int>& dead) const {
  const auto known = static_cast<std::ptrdiff_t>(dead.size());
  for (int slot = 0; slot < board_.slots(); ++slot) {
    if (!is_watched(slot) || std::binary_search(dead.begin(), dead.begin() + known, slot)) continue;
    if (board_.has_died(slot) || config_.state_of(board_.slot(slot)) == ThreadState::Ending) dead.push_back(slot);
  }
  std::ranges::sort(dead);
}

bool NodeWatch::is_silent(int index, int64_t now_ns, bool fresh) {
  Beats& seen = beats_[static_cast<size_t>(index)];
  const uint64_t count = board_.slot(index).beats.load(std::memory_order_relaxed);
  const bool is_new = seen.since_ns == 0;  // it joined after the last check
  if (fresh || is_new || count != seen.count) {
    seen = {.count = count, .since_ns = now_ns, .alive_ns = now_ns, .looked_ns = now_ns};
    return false;
  }
  const int64_t silence_ns = now_ns - seen.since_ns;
  if (silence_ns <= config_.dead_ns / 6) return false;
  if (!seen.suspected) {
    seen.suspected = true;
    log_rarely(LogTopic::Silence, LogLevel::Warn, "rank %d on host %s has sent no heartbeat for %.2f s",
               config_.ranks[static_cast<size_t>(index)], config_.host.c_str(), static_cast<double>(silence_ns) * 1e-9);
  }
  const bool is_over = now_ns - seen.alive_ns >= config_.dead_ns;
  if (!is_over && now_ns - seen.looked_ns < config_.dead_ns / 12) return false;
  seen.looked_ns = now_ns;
  if (is_starved(index, silence_ns)) {
    seen.alive_ns = now_ns;
    return false;
  }
  return is_over && board_.slot(index).beats.load(std::memory_order_relaxed) == seen.count;  // it may have got a core
}

bool NodeWatch::is_starved(int index, int64_t silence_ns) {
  if (config_.state_of(board_.slot(index)) != ThreadState::Runnable) return false;
  bool& spared = beats_[static_cast<size_t>(index)].spared;
  if (silence_ns >= config_.dead_ns && !std::exchange(spared, true)) {
    log_rarely(LogTopic::Starvation, LogLevel::Warn, "rank %d on host %s gets no core, or hardly, and counts as alive",
               config_.ranks[static_cast<size_t>(index)], config_.host.c_str());
  }
  return true;
}

std::vector<Rank> NodeWatch::ranks_of(const std::vector<int>& slots) const {
  std::vector<Rank> ranks;
  for (int slot : slots) ranks.push_back(config_.ranks[static_cast<size_t>(slot)]);
  return ranks;
}

// "pid 17" or "pids 17, 18"; at most eight are named.
std::string NodeWatch::name_processes(const std::vector<int>& slots) const {
  std::string text = slots.size() == 1 ? "pid " : "pids ";
  for (size_t i = 0; i < slots.size() && i < 8; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(board_.slot(slots[i]).pid.load(std::memory_order_relaxed));
  return slots.size() > 8 ? text + ", ..." : text;
}

Status NodeWatch::death_error(const std::vector<int>& slots) const {
  const std::vector<Rank> ranks = ranks_of(slots);
  return error(ErrorKey::RankDied, "%s on host %s died (%s)", name_ranks(ranks).c_str(), config_.host.c_str(),
               name_processes(slots).c_str())
      .with_peers({ranks.begin(), ranks.end()})
      .with_host(config_.host)
      .with_cure(
          "check the output of the dead rank and the kernel log of its host (out of memory?); restart the job, or "
          "shrink the communicator to the survivors");
}

Status NodeWatch::silence_error(const std::vector<int>& slots) const {
  const std::vector<Rank> ranks = ranks_of(slots);
  return error(ErrorKey::RankSilent, "%s on host %s sent no heartbeat for %.1f s (%s)", name_ranks(ranks).c_str(),
               config_.host.c_str(), static_cast<double>(config_.dead_ns) * 1e-9, name_processes(slots).c_str())
      .with_peers({ranks.begin(), ranks.end()})
      .with_host(config_.host)
      .with_cure(
          "check whether the process is stopped (debugger, frozen cgroup) or starved of CPU time; a larger "
          "CCOM_DEAD_MS tolerates longer pauses");
}

}  // namespace ccom
