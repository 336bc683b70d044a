// SPDX-License-Identifier: Apache-2.0
//
// How a communicator ends: calls that will not be made, finalize, abort, and what is kept for the next one.
#include <thread>

#include "base/log.h"
#include "comm/communicator.h"
#include "comm/learning.h"
#include "comm/lingering.h"

namespace ccom {

Communicator::~Communicator() {
  Turns::Ticket last = turns_.take();
  turns_.wait_for_all(last);
  depart(ways_to_save());
  if (messages_ != nullptr) messages_->close();
  if (lingers_) (void)Lingering::of_process().leave(membership_.communicator, nullptr);  // its start has failed
}

void Communicator::retire(std::unique_ptr<Communicator> ended) {
  if (ended == nullptr || !ended->lingers_) return;
  Communicator& its = *ended;
  Turns::Ticket last = its.turns_.take();
  its.turns_.wait_for_all(last);
  its.depart(its.ways_to_save());
  its.is_finalized_.store(true, std::memory_order_relaxed);
  its.turns_.pass(last);
  its.lingers_ = false;
  // Whatever is kept ends with the last one: ranks of one process need each other.
  const uint64_t number = its.membership_.communicator;
  const std::vector<std::unique_ptr<Communicator>> all = Lingering::of_process().leave(number, std::move(ended));
  for (const std::unique_ptr<Communicator>& each : all) each->await_departures();
}

// Other ranks of the host may send through this one until they have left.
void Communicator::await_departures() {
  const LogContext context(membership_.rank, membership_.communicator);
  const WaitLimit limit = within_ms(timeout_ms());
  const int host = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  const auto ranks = static_cast<int>(topology_.ranks_of(host).size());
  for (int local = 0; local < ranks; ++local) {
    while (!links_->monitor().has_ended(local) && status().is_ok() && !limit.is_reached())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Of a call whose turn has not come before the communicator failed.
Status Communicator::leave(Turns::Ticket place) {
  Status refused = out_of_memory();
  try {
    refused = is_finalized() ? refuse_finalized() : status();
    if (!config_.name.empty()) refused = std::move(refused).in(config_.name);
  } catch (const std::bad_alloc&) {
  }
  turns_.leave(place);
  return refused;
}

void Communicator::lose(Turns::Ticket place) noexcept {
  report(
      error(Code::OutOfMemory, "rank %d had no memory or no thread for a call, and will not make it", membership_.rank)
          .with_peers({membership_.rank}));
  turns_.leave(place);
}

// Any thread, whoever has the turn. Without memory for its text it is reported as what it is then.
void Communicator::report(const Status& cause) noexcept {
  try {
    (void)links_->monitor().report(cause);
  } catch (const std::bad_alloc&) {
  }
  wake_waiters();
}

Status Communicator::refuse_finalized() const {
  return error(ErrorKey::Finalized, "rank %d has finalized this communicator", membership_.rank)
      .with_cure("make every call before ccomCommFinalize");
}

Status Communicator::finalize() {
  const int64_t at_most_ms = timeout_ms();
  Turns::Ticket place = turns_.take();
  if (!turns_.wait(place, Deadline::after_ms(at_most_ms))) {
    if (!links_->monitor().failed())
      report(error(Code::Timeout, "rank %d finalized, but its calls before that were not over after %lld ms",
                   membership_.rank, static_cast<long long>(at_most_ms))
                 .with_peers({membership_.rank})
                 .with_cure("see what its streams are doing; raise CCOM_TIMEOUT_MS if they are only slow"));
    is_finalized_.store(true, std::memory_order_relaxed);
    Status outcome = status();
    turns_.leave(place);
    return outcome;
  }
  const LearnedWays found = ways_to_save();
  is_finalized_.store(true, std::memory_order_relaxed);  // for the next turn, which may be waiting already
  depart(found);
  Status outcome = status();
  turns_.pass(place);  // after which another thread may destroy it
  return outcome;
}

// Ranks of this host that sleep because they wait for this one learn at once that they wait in vain.
void Communicator::depart(const LearnedWays& found) {
  if (links_ == nullptr) return;
  const LogContext context(membership_.rank, membership_.communicator);
  if (!has_reported_.exchange(true)) log_waits();
  if (const Status different = links_->monitor().depart(history_); !different.is_ok())
    log(LogLevel::Warn, "%s", different.text().c_str());
  if (host_ != nullptr) host_->wake();
  if (!found.kinds.empty()) save(found);  // nobody waits for it
}

// Nothing without memory for it.
LearnedWays Communicator::ways_to_save() const noexcept {
  try {
    if (is_finalized() || !saves_ways()) return {};
    const auto self = static_cast<size_t>(membership_.rank);
    const Host& real = machine().hosts[static_cast<size_t>(machine().ranks[self].host)];
    LearnedWays found =
        learned_ways(host_->choices().found(), ranks_on(topology_, topology_.ranks[self].host), real.cpu_model);
    if (!links_->has_measured()) return found;
    found.own = links_->measured_costs().own;
    found.starts = 1;
    return found;
  } catch (const std::exception&) {
    return {};
  }
}

// One rank of each host, and one for all into a file of the user's choice: hosts are told apart by nothing that would
// be worth another file. Parts would replace what the whole has found. Who has failed hurries.
bool Communicator::saves_ways() const {
  const bool has_file = !config_.tuning_save.empty();
  if (!has_file && config_.ways_cache.empty()) return false;
  const int host = has_file ? 0 : topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  return membership_.parents.empty() && host_ != nullptr && links_ != nullptr && status().is_ok() &&
         topology_.ranks_of(host)[0] == membership_.rank;
}

// Nobody has asked for the cache: where there is none, a home that cannot be written to for example, is nobody's worry.
void Communicator::save(const LearnedWays& found) const noexcept {
  const bool has_file = !config_.tuning_save.empty();
  Status saved = out_of_memory();
  try {
    saved = has_file ? save_ways(config_.tuning_save, found) : cache_ways(config_.ways_cache, found);
  } catch (const std::exception&) {
  }
  if (!saved.is_ok())
    log(has_file ? LogLevel::Warn : LogLevel::Debug, "CCOM_TUNING_SAVE=%s: not saved: %s",
        has_file ? config_.tuning_save.c_str() : "auto", saved.message().c_str());
}

void Communicator::abort() {
  const Status in_force = links_->monitor().report(
      error(Code::Aborted, "rank %d aborted the communicator", membership_.rank).with_peers({membership_.rank}));
  CCOM_ASSERT(!in_force.is_ok());
  wake_waiters();
}

// Of this rank's calls. Any thread.
void Communicator::wake_waiters() {
  for (Transport* transport : links_->transports()) transport->wake();
  if (host_ != nullptr) host_->wake();
  if (messages_ != nullptr) messages_->wake();
  turns_.end_order();
}

Communicator::FailedCall Communicator::failed_call() const {
  const Lock lock(failed_mutex_);
  return failed_;
}

}  // namespace ccom
