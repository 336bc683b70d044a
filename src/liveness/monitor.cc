// SPDX-License-Identifier: Apache-2.0
#include "liveness/monitor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "liveness/activity_report.h"
#include "liveness/host_consensus.h"
#include "liveness/monitor_config.h"
#include "liveness/monitor_impl.h"
#include "liveness/network_consensus.h"
#include "observe/source_line.h"

namespace ccom {
namespace {

std::map<Rank, const HostMembers*> ranks_elsewhere(const MonitorConfig& config) {
  std::map<Rank, const HostMembers*> hosts;
  for (const HostMembers& host : config.hosts)
    for (const Rank rank : host.ranks) hosts[rank] = &host;
  for (const Rank rank : config.hosts[static_cast<size_t>(config.host_index)].ranks) hosts.erase(rank);
  return hosts;
}

// Those of a start are the family's ranks.
MonitorConfig with_members(MonitorConfig config) {
  if (!config.members.empty()) return config;
  for (Rank rank = 0; rank < count_ranks(config); ++rank) config.members.push_back(rank);
  return config;
}

}  // namespace

MonitorImpl::MonitorImpl(MonitorConfig config, std::shared_ptr<ControlFamily> family, Board board,
                         std::shared_ptr<LivenessThread> thread)
    : config_(with_members(std::move(config))),
      board_(board),
      slot_(slot_of(config_)),
      is_tree_member_(is_tree_member(config_)),
      thread_(std::move(thread)),
      losses_(board, config_, thread_->process(), [this] { wake(); }),
      departures_(board, config_.hosts, config_.host_index, config_.rank),
      stragglers_(board, host(), slot_),
      pulse_(board.slot(slot_).activity),
      family_(std::move(family)) {
  communicator_ = config_.communicator;
  abort_word_ = &board_.abort_word();
  activity_.emplace(board_.slot(slot_).activity);
  message_activity_.emplace(board_.slot(slot_).activity, *activity_);
}

Status MonitorImpl::start() {
  if (has_several_hosts()) CCOM_TRY(start_family());
  for (int tree = 0; tree < tree_count(config_.hosts); ++tree) {
    trees_.push_back(nullptr);
    if (tree_member(config_.hosts, config_.host_index, tree) != config_.rank) continue;
    TreeConfig config = tree_config(config_, tree);
    config.beat_phase_ns = beat_phase_ns();
    trees_.back() = std::make_unique<ControlTree>(
        std::move(config),
        ControlTree::Hooks{.found = [this](const Status& error) { publish(quoted(error)); },
                           .report = [this](const Status& error) { publish(error); },
                           .departed = [this](const Departure& departure) { note_departure(departure); },
                           .lost = [this](const Status& loss) { losses_.hear(loss); },
                           .left = [this](Rank rank, uint64_t rounds) { agreement_->see_left(rank, rounds); }});
  }
  Status taken;
  thread_->run([this, &taken] {
    taken = board_.take(slot_, thread_->process(), thread_->robust_futexes());
    taken_ = taken.is_ok();
    if (!taken_) return;
    board_.slot(slot_).rank.store(config_.rank + 1, std::memory_order_relaxed);
    thread_->add(this);
  });
  return taken;
}

MonitorImpl::~MonitorImpl() {
  // A forked child closes its copies of the descriptors; board, robust futex and connections belong to the parent.
  if (!thread_->in_forked_child()) thread_->run([this] { leave(); });
}

Status MonitorImpl::depart(uint64_t history) {
  if (thread_->in_forked_child()) return {};
  // A bit is given up, so that no history is 0.
  const Departure own{last_call().number, config_.rank, static_cast<uint16_t>(history >> kHistoryShift | 1)};
  // Now, as this one may take the place of the first departure; and again, for who leaves meanwhile on this host.
  std::optional<Status> different = departures_.find_different(own);
  thread_->run([this, &own] {
    history_ = own.history;
    try {
      announce_departure();
    } catch (const std::bad_alloc&) {  // tried again by leave() and by the host's other tree member
    }
  });
  if (!different) different = departures_.find_different(own);
  if (!different || failed()) return {};
  publish_finding(*different, false);
  return *different;
}

// On the liveness thread. Where all ranks have left, the line in the log is all that anybody sees.
void MonitorImpl::note_departure(const Departure& of_another_host) {
  board_.note_departure(of_another_host);
  const auto different = failed() ? std::nullopt : departures_.find_different(of_another_host);
  if (!different) return;
  log(LogLevel::Warn, "%s", different->text().c_str());
  publish(quoted(*different));
}

Status MonitorImpl::status() const {
  if (thread_->in_forked_child()) return forked_error();
  return board_.error();
}

// The files of debug information are not for the liveness thread.
std::vector<RankActivity> MonitorImpl::known_activities() const {
  SourceLines lines(!thread_->is_current());
  std::vector<RankActivity> all = board_.activities(host().ranks);
  for (RankActivity& activity : all) {
    activity.site = lines.of_this_host(activity.site);
    activity.place = lines.of_this_host(activity.place);
    if (has_several_hosts()) activity.host = host().name;
  }
  if (!has_several_hosts()) return all;
  const std::map<Rank, const HostMembers*> elsewhere = ranks_elsewhere(config_);
  for (RankActivity& activity : board_.activities_elsewhere(INT32_MAX, monotonic_ns())) {
    const auto found = elsewhere.find(activity.rank);
    if (found == elsewhere.end()) continue;
    activity.site = lines.of_another_host(activity.site);
    activity.place = lines.of_another_host(activity.place);
    activity.host = found->second->name;
    all.push_back(std::move(activity));
  }
  std::ranges::sort(all, {}, &RankActivity::rank);
  return all;
}

Status MonitorImpl::quoted(const Status& error) const noexcept {
  try {
    return with_activities(error, known_activities());
  } catch (const std::bad_alloc&) {
    return error;
  }
}

std::vector<RankWaits> MonitorImpl::known_waits(double seconds) const {
  return board_.waits(host().ranks, seconds, !thread_->is_current());
}

// What this rank has found out by itself, with what the ranks do. asks: all hosts are asked for that first, which is no
// time for a death that others have not noticed, or for who aborts.
void MonitorImpl::publish_finding(const Status& error, bool asks) {
  if (failed() || !is_about_ranks(error)) return publish(error);
  publish(asks && !thread_->is_current() ? with_activities(error, ask_activities()) : quoted(error));
}

void MonitorImpl::publish(const Status& error) {
  {
    const Lock lock(mutex_);
    if (!board_.publish(slot_, error)) return;
  }
  wake();
}

Status MonitorImpl::report(const Status& error) {
  CCOM_ASSERT(!error.is_ok());
  if (thread_->in_forked_child()) return forked_error();
  publish_finding(attributed(error, config_), is_of_late_ranks(error));
  return in_force();
}

// Whoever learns of the error may end the process at once, which other hosts would take for a death and for its cause.
// One iteration of the liveness thread's loop, once: it waits for no peer.
Status MonitorImpl::in_force() {
  if (!failed() || flooded_ || !is_tree_member_) return status();
  try {
    thread_->is_current() ? flood_failure() : thread_->run([this] { flood_failure(); });
  } catch (const std::bad_alloc&) {  // poll() tries again
  }
  return status();
}

Status MonitorImpl::check() {
  Status known = look();
  if (!known.is_ok() || !config_.interrupted || !config_.interrupted()) return known;
  publish_finding(interruption(config_.rank, last_call()), true);
  return in_force();
}

Status MonitorImpl::look() {
  const LogContext context(config_.rank, config_.communicator);
  if (thread_->in_forked_child()) return forked_error();
  if (const auto lost = failed() ? std::nullopt : losses_.check(monotonic_ns())) publish_finding(*lost, false);
  if (const auto missing = departures_.find_missing(last_call()); missing && !failed()) publish_finding(*missing, true);
  return in_force();
}

void MonitorImpl::on_failure(std::function<void()> listener) {
  if (thread_->in_forked_child()) return;
  {
    const Lock lock(mutex_);
    listener_ = std::move(listener);
    has_listener_ = true;
  }
  if (failed()) wake();  // else the failure will
}

std::vector<Rank> MonitorImpl::find_stragglers() {
  if (thread_->in_forked_child()) return {};
  StragglerReport found = stragglers_.on_host();
  publish_difference(found);
  if (has_several_hosts()) found = ask_all_hosts([this] { return check().is_ok(); });
  return found.calls < last_call().number ? found.ranks : std::vector<Rank>();
}

StragglerReport MonitorImpl::ask_all_hosts(const std::function<bool()>& goes_on) {
  StragglerReport found = stragglers_.ask_all_hosts([this] { wake(); }, goes_on);
  asked_ns_ = monotonic_ns();
  return found;
}

std::vector<RankActivity> MonitorImpl::ask_activities() {
  constexpr std::chrono::milliseconds kAtMost(300);
  constexpr int64_t kFreshNs = 500 * kNsPerMs;
  const auto goes_on = [this] { return !failed(); };  // not check(), which may have come here
  if (thread_->in_forked_child()) return known_activities();
  if (has_several_hosts() && monotonic_ns() - asked_ns_ > kFreshNs) ask_all_hosts(goes_on);
  board_.ask_places(kAtMost, goes_on);
  return known_activities();
}

void MonitorImpl::compare_calls() {
  if (thread_->in_forked_child()) return;
  publish_difference(stragglers_.on_host());
  if (has_several_hosts() && stragglers_.ask(PollWish::Calls) == PollWish::Nothing) wake();
}

// Of several hosts the liveness threads do that.
void MonitorImpl::publish_difference(const StragglerReport& known) {
  const auto ranks = static_cast<size_t>(count_ranks(config_));
  const auto difference = failed() || has_several_hosts() ? std::nullopt : difference_error(known, ranks);
  if (difference) publish_finding(*difference, true);
}

Result<Consensus> MonitorImpl::agree(const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                                     const WaitLimit& limit) {
  if (thread_->in_forked_child()) return forked_error();
  board_.slot(slot_).rounds.store(++rounds_, std::memory_order_release);
  if (agreement_) return agree_over_network(*agreement_, *thread_, config_, rounds_, terms, excluded, limit);
  const auto find_lost = [this] { return losses_.check(monotonic_ns()); };
  return agree_on_host(board_, config_, rounds_, terms, excluded, find_lost, limit);
}

size_t Monitor::board_bytes(int local_ranks) { return Board::bytes(local_ranks); }

Result<std::unique_ptr<Monitor>> Monitor::create(MonitorConfig config, Bytes memory, bool initialise) {
  CCOM_TRY(check_config(config));
  CCOM_TRY_ASSIGN(const Board board, open_board(config, memory, initialise));
  CCOM_TRY_ASSIGN(auto thread, LivenessThread::of_this_process());
  std::shared_ptr<ControlFamily> family = std::exchange(config.family, nullptr);
  if (config.hosts.size() == 1) family.reset();
  auto monitor = std::make_unique<MonitorImpl>(std::move(config), std::move(family), board, std::move(thread));
  CCOM_TRY(monitor->start());
  return std::unique_ptr<Monitor>(std::move(monitor));
}

}  // namespace ccom
