// SPDX-License-Identifier: Apache-2.0
//
// Combines the host's Board, the LossWatch and the control trees between hosts.
//
// There are four trees, whose members are the lowest and the second-lowest (or only) rank of each host (state.h); all
// use one board. When a member dies, another rank of its host detects it within milliseconds and notifies the other
// hosts over trees of the other member; the dead one's connections close only when its memory has been torn down.
#include "liveness/monitor.h"

#include <algorithm>

#include "base/mutex.h"
#include "liveness/board.h"
#include "liveness/control_join.h"
#include "liveness/control_tree.h"
#include "liveness/departure_watch.h"
#include "liveness/host_consensus.h"
#include "liveness/liveness_thread.h"
#include "liveness/loss_watch.h"
#include "liveness/monitor_config.h"
#include "liveness/straggler_watch.h"

namespace ccom {
namespace {
constexpr int64_t kCheckIntervalNs = 5 * kNsPerMs;

class MonitorImpl final : public Monitor, private LivenessTask {
 public:
  MonitorImpl(MonitorConfig config, Board board, std::shared_ptr<LivenessThread> thread);
  ~MonitorImpl() override;
  Status start();

  std::string control_address() const override { return address_; }
  Status connect(const std::vector<std::string>& addresses, const WaitLimit& limit) override;
  Status status() const override;
  Status report(const Status& error) override;
  Status look() override;
  Status check() override;
  void on_failure(std::function<void()> listener) override;
  void depart() override;
  std::optional<Status> find_departed(const std::vector<Rank>& peers) const override {
    return departures_.find_departed(peers);
  }
  Result<Consensus> agree(const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                          const WaitLimit& limit) override {
    if (thread_->in_forked_child()) return forked_error();
    const auto find_lost = [this] { return losses_.check(monotonic_ns()); };
    return agree_on_host(board_, config_, ++rounds_, terms, excluded, find_lost, limit);
  }
  bool has_ended(int local_rank) const override { return board_.has_died(local_rank) || board_.has_left(local_rank); }
  std::chrono::milliseconds warn_after() const override { return std::chrono::milliseconds(config_.warn_ms); }
  std::vector<Rank> find_stragglers() override;
  void compare_calls() override;
  void end_comparison() override {
    if (!thread_->in_forked_child()) stragglers_.ask(false);
  }

 private:
  // LivenessTask: on the liveness thread.
  int64_t poll(int64_t now_ns) override;
  bool has_work() const override { return !trees_.empty() || (failed() && (!flooded_ || has_listener_)); }
  void run_out_of_memory() noexcept override { board_.publish(slot_, with_rank(out_of_memory(), config_.rank)); }
  const std::atomic<uint32_t>* awaited_word() const override { return flooded_ ? nullptr : &board_.abort_word(); }
  template <typename Fn>
  void for_each_tree(Fn fn) {
    for (auto& tree : trees_)
      if (tree) fn(*tree);
  }
  void flood_failure();
  void call_listener();
  bool poll_stragglers();
  void leave();

  const HostMembers& host() const { return config_.hosts[static_cast<size_t>(config_.host_index)]; }
  bool shares_board() const { return board_.slots() > 1; }
  Status listen();
  void publish(const Status& error);
  Status in_force();
  void publish_difference(const StragglerReport& known);
  bool tell_trees_of_losses(int64_t now_ns);  // whether there were any
  void announce_departure();
  void spread_departure();

  const MonitorConfig config_;
  const Board board_;
  const int slot_;
  const std::shared_ptr<LivenessThread> thread_;
  LossWatch losses_;
  const DepartureWatch departures_;
  const StragglerWatch stragglers_;
  uint64_t rounds_ = 0;  // of agreement
  Descriptor listener_socket_;
  std::string address_;
  Mutex mutex_;  // also of the writing of this rank's error record
  std::function<void()> listener_ CCOM_GUARDED_BY(mutex_);
  std::atomic<bool> has_listener_ = false;

  // Used on the liveness thread only.
  bool taken_ = false;                 // the slot is claimed
  std::atomic<bool> flooded_ = false;  // the board's error was sent to the trees; read by all threads
  int64_t next_beat_ns_ = 0;
  std::vector<std::unique_ptr<ControlTree>> trees_;  // null where this rank is not its host's member
};

MonitorImpl::MonitorImpl(MonitorConfig config, Board board, std::shared_ptr<LivenessThread> thread)
    : config_(std::move(config)),
      board_(board),
      slot_(slot_of(config_)),
      thread_(std::move(thread)),
      losses_(board, config_, thread_->process(), [this] { thread_->wake(); }),
      departures_(board, config_.hosts, config_.host_index, config_.rank),
      stragglers_(board, host().ranks, slot_) {
  abort_word_ = &board_.abort_word();
  calls_ = &board_.slot(slot_).calls;
}

Status MonitorImpl::start() {
  CCOM_TRY(listen());
  for (int tree = 0; tree < tree_count(config_.hosts); ++tree) {
    trees_.push_back(nullptr);
    if (tree_member(config_.hosts, config_.host_index, tree) != config_.rank) continue;
    trees_.back() = std::make_unique<ControlTree>(
        tree_config(config_, tree), *thread_,
        ControlTree::Hooks{.report = [this](const Status& error) { publish(error); },
                           .departed = [this](const Departure& departure) { board_.note_departure(departure); },
                           .lost = [this](const Status& loss) { losses_.hear(loss); }});
  }
  Status taken;
  thread_->run([this, &taken] {
    taken = board_.take(slot_, thread_->process(), thread_->robust_futexes());
    taken_ = taken.is_ok();
    if (taken_) thread_->add(this);
  });
  return taken;
}

Status MonitorImpl::listen() {
  if (!accepts_connections(config_)) return Status::ok();
  CCOM_TRY_ASSIGN(listener_socket_, listen_on(config_.bind_address, config_.ports));
  CCOM_TRY_ASSIGN(address_, address_of(listener_socket_));
  return {};
}

MonitorImpl::~MonitorImpl() {
  // A forked child closes its copies of the descriptors; board, robust futex and connections belong to the parent.
  if (!thread_->in_forked_child()) thread_->run([this] { leave(); });
}

void MonitorImpl::depart() {
  if (thread_->in_forked_child()) return;
  thread_->run([this] {
    try {
      announce_departure();
    } catch (const std::bad_alloc&) {  // tried again by leave() and by the host's other tree member
    }
  });
}

// A communicator that has failed is not left: its error says more.
void MonitorImpl::announce_departure() {
  if (failed()) return;
  board_.depart(slot_, config_.rank);
  spread_departure();
}

// The communicator's error, if any, or the departure is sent before the goodbye.
void MonitorImpl::leave() {
  if (!taken_) return;
  thread_->remove(this);
  try {
    flood_failure();
    announce_departure();
    for_each_tree([](ControlTree& tree) { tree.leave(); });
  } catch (const std::bad_alloc&) {  // the closed connections tell the other hosts
    trees_.clear();
  }
  board_.leave(slot_, thread_->robust_futexes());
  taken_ = false;
}

Status MonitorImpl::connect(const std::vector<std::string>& addresses, const WaitLimit& limit) {
  if (thread_->in_forked_child()) return forked_error();
  const Descriptor listener = std::move(listener_socket_);  // closed on every path
  CCOM_TRY_ASSIGN(const JoinPlan plan, plan_connections(config_, addresses));
  const JoinHooks hooks{.attach =
                            [this](const JoinEdge& edge, std::unique_ptr<ControlLink> link) {
                              // The TreeState's timeouts come first; these cover connections that it never hears from.
                              const std::chrono::milliseconds silence(2 * config_.dead_ms);
                              enable_keepalive(link->fd(), silence);
                              set_user_timeout(link->fd(), silence);
                              thread_->run([this, &edge, &link] {
                                trees_[static_cast<size_t>(edge.tree)]->attach(edge.host, std::move(link),
                                                                               monotonic_ns());
                              });
                            },
                        .check = [this] { return check(); }};
  return join_control_trees(plan, listener, hooks, limit);
}

Status MonitorImpl::status() const {
  if (thread_->in_forked_child()) return forked_error();
  return board_.error();
}

void MonitorImpl::publish(const Status& error) {
  {
    const Lock lock(mutex_);
    if (!board_.publish(slot_, error)) return;
  }
  thread_->wake();
}

Status MonitorImpl::report(const Status& error) {
  CCOM_ASSERT(!error.is_ok());
  if (thread_->in_forked_child()) return forked_error();
  publish(with_rank(error, config_.rank));
  return in_force();
}

// Whoever learns of the error may end the process at once, which other hosts would take for a death and for its cause.
// One iteration of the liveness thread's loop, once: it waits for no peer.
Status MonitorImpl::in_force() {
  if (!failed() || flooded_ || !is_tree_member(config_)) return status();
  try {
    thread_->is_current() ? flood_failure() : thread_->run([this] { flood_failure(); });
  } catch (const std::bad_alloc&) {  // poll() tries again
  }
  return status();
}

Status MonitorImpl::check() {
  Status known = look();
  if (!known.is_ok() || !config_.interrupted || !config_.interrupted()) return known;
  publish(interruption(config_.rank, last_call()));
  return in_force();
}

Status MonitorImpl::look() {
  if (thread_->in_forked_child()) return forked_error();
  if (const auto lost = failed() ? std::nullopt : losses_.check(monotonic_ns())) publish(*lost);
  if (const auto missing = departures_.find_missing(last_call()); missing && !failed()) publish(*missing);
  return in_force();
}

void MonitorImpl::on_failure(std::function<void()> listener) {
  if (thread_->in_forked_child()) return;
  {
    const Lock lock(mutex_);
    listener_ = std::move(listener);
    has_listener_ = true;
  }
  if (failed()) thread_->wake();  // else the failure will
}

int64_t MonitorImpl::poll(int64_t now_ns) {
  int64_t next_ns = INT64_MAX;
  if (shares_board()) {
    if (now_ns >= next_beat_ns_) {
      board_.slot(slot_).beats.fetch_add(1, std::memory_order_relaxed);
      next_beat_ns_ = now_ns + config_.dead_ms * kNsPerMs / 12;
    }
    next_ns = next_beat_ns_;
  }
  flood_failure();  // the board's error is sent before others are received
  for (auto& tree : trees_) {
    if (!tree) continue;
    next_ns = std::min(next_ns, tree->poll(now_ns));
    if (shares_board() && !failed()) next_ns = std::min(next_ns, now_ns + kCheckIntervalNs);
  }
  if (tell_trees_of_losses(now_ns)) next_ns = now_ns;
  if (poll_stragglers()) next_ns = std::min(next_ns, now_ns + kCheckIntervalNs);
  spread_departure();
  flood_failure();
  call_listener();
  return next_ns;
}

bool MonitorImpl::tell_trees_of_losses(int64_t now_ns) {
  if (failed() || !is_tree_member(config_)) return false;
  const std::vector<Status> losses = losses_.take_new(now_ns);
  for (const Status& loss : losses) for_each_tree([&](ControlTree& tree) { tree.find_lost(loss, now_ns); });
  return !losses.empty();
}

// For members of the first tree. Returns whether a poll is in progress.
bool MonitorImpl::poll_stragglers() {
  if (trees_.empty() || !trees_.front() || failed()) return false;
  const std::optional<StragglerReport> found = stragglers_.poll(*trees_.front());
  if (found) publish_difference(*found);
  return found.has_value();
}

std::vector<Rank> MonitorImpl::find_stragglers() {
  if (thread_->in_forked_child()) return {};
  StragglerReport found = stragglers_.on_host();
  publish_difference(found);
  if (!trees_.empty()) {
    found = stragglers_.ask_all_hosts([this] { thread_->wake(); }, [this] { return check().is_ok(); });
  }
  return found.calls < last_call().number ? found.ranks : std::vector<Rank>();
}

void MonitorImpl::compare_calls() {
  if (thread_->in_forked_child()) return;
  publish_difference(stragglers_.on_host());
  if (!trees_.empty() && !stragglers_.ask(true)) thread_->wake();
}

void MonitorImpl::publish_difference(const StragglerReport& known) {
  if (const auto difference = failed() ? std::nullopt : difference_error(known)) publish(*difference);
}

// To the other hosts: of any rank of this host. On the liveness thread.
void MonitorImpl::spread_departure() {
  const std::optional<Departure> first = board_.first_departure();
  if (!first || failed()) return;
  for_each_tree([&](ControlTree& tree) { tree.depart(*first); });
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

}  // namespace

size_t Monitor::board_bytes(int local_ranks) { return Board::bytes(local_ranks); }

Result<std::unique_ptr<Monitor>> Monitor::create(MonitorConfig config, Bytes memory, bool initialise) {
  CCOM_TRY(check_config(config));
  CCOM_TRY_ASSIGN(const Board board, open_board(config, memory, initialise));
  CCOM_TRY_ASSIGN(auto thread, LivenessThread::of_this_process());
  auto monitor = std::make_unique<MonitorImpl>(std::move(config), board, std::move(thread));
  CCOM_TRY(monitor->start());
  return std::unique_ptr<Monitor>(std::move(monitor));
}

}  // namespace ccom
