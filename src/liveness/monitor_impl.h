// SPDX-License-Identifier: Apache-2.0
//
// The Monitor: combines the host's Board, the LossWatch, and the control trees and connections between hosts.
//
// There are four trees, whose members are the lowest and the second-lowest (or only) rank of each host (state.h); all
// use one board. When a member dies, another rank of its host detects it within milliseconds and notifies the other
// hosts over trees of the other member; the dead one's connections close only when its memory has been torn down.
#pragma once

#include "base/mutex.h"
#include "base/time.h"
#include "liveness/agreement_links.h"
#include "liveness/board.h"
#include "liveness/control_family.h"
#include "liveness/control_join.h"
#include "liveness/control_tree.h"
#include "liveness/departure_watch.h"
#include "liveness/liveness_thread.h"
#include "liveness/loss_watch.h"
#include "liveness/monitor.h"
#include "liveness/monitor_config.h"
#include "liveness/straggler_watch.h"
#include "observe/activity_pulse.h"

namespace ccom {

class MonitorImpl final : public Monitor, private LivenessTask {
 public:
  // family: of a part.
  MonitorImpl(MonitorConfig config, std::shared_ptr<ControlFamily> family, Board board,
              std::shared_ptr<LivenessThread> thread);
  ~MonitorImpl() override;
  Status start();

  std::shared_ptr<ControlFamily> family() const override { return family_; }
  Status prepare(const std::vector<std::vector<HeldConnection>>& held) override;
  Addresses addresses() const override { return {address_, agreement_ ? agreement_->address() : ""}; }
  Status connect(const std::vector<Addresses>& addresses, const WaitLimit& limit) override;
  Status status() const override;
  Status report(const Status& error) override;
  Status look() override;
  Status check() override;
  void on_failure(std::function<void()> listener) override;
  Status depart(uint64_t history) override;
  std::optional<Status> find_departed(const std::vector<Rank>& peers) const override {
    return departures_.find_departed(peers);
  }
  Result<Consensus> agree(const ConsensusTerms& terms, const std::vector<Rank>& excluded,
                          const WaitLimit& limit) override;
  bool has_rank_ended(Rank rank) const override { return agreement_ ? agreement_->has_ended(rank) : has_ended(rank); }
  bool has_ended(int local_rank) const override { return board_.has_died(local_rank) || board_.has_left(local_rank); }
  std::chrono::milliseconds warn_after() const override { return std::chrono::milliseconds(config_.warn_ms); }
  std::vector<RankActivity> known_activities() const override;
  std::vector<RankWaits> known_waits(double seconds) const override;
  std::vector<RankActivity> ask_activities() override;
  std::vector<Rank> find_stragglers() override;
  void compare_calls() override;
  void end_comparison() override {
    if (!thread_->in_forked_child()) stragglers_.ask(PollWish::Nothing);
  }

 private:
  // LivenessTask: on the liveness thread.
  int64_t poll(int64_t now_ns) override;
  bool has_work() const override;
  void run_out_of_memory() noexcept override { board_.publish(slot_, attributed(out_of_memory(), config_)); }
  const std::atomic<uint32_t>* awaited_word() const override { return flooded_ ? nullptr : &board_.abort_word(); }
  template <typename Fn>
  void for_each_tree(Fn fn) {
    for (auto& tree : trees_)
      if (tree) fn(*tree);
  }
  void flood_failure();
  void call_listener();
  void wake() { thread_->wake(this); }  // for what has_work() does not see
  bool poll_stragglers(int64_t now_ns);
  void leave();
  // Of all communicators of the process, unlike that of others on its host.
  int64_t beat_phase_ns() const { return static_cast<int64_t>(thread_->process() % (uint64_t{1} << 30)); }

  const HostMembers& host() const { return config_.hosts[static_cast<size_t>(config_.host_index)]; }
  bool shares_board() const { return board_.slots() > 1; }
  Status start_family();
  Status listen();
  std::unique_ptr<ControlLink> open_stream(const TreeEdge& edge, std::shared_ptr<ControlConnection> connection);
  void attach_links();
  Status add_connection(const JoinPeer& peer, std::shared_ptr<ControlConnection> connection);
  Status join(const std::vector<Addresses>& addresses, const WaitLimit& limit);
  void publish(const Status& error);
  void publish_finding(const Status& error, bool asks);
  Status quoted(const Status& error) const noexcept;
  StragglerReport ask_all_hosts(const std::function<bool()>& goes_on);
  bool has_several_hosts() const { return config_.hosts.size() > 1; }
  Status in_force();
  void publish_difference(const StragglerReport& known);
  void settle_difference(const StragglerReport& known, int64_t now_ns);
  bool tell_trees_of_losses(int64_t now_ns);  // whether there were any
  void announce_departure();
  void note_departure(const Departure& of_another_host);
  void spread_departure();

  const MonitorConfig config_;
  const Board board_;
  const int slot_;
  const bool is_tree_member_;
  const std::shared_ptr<LivenessThread> thread_;
  LossWatch losses_;
  const DepartureWatch departures_;
  StragglerWatch stragglers_;
  ActivityPulse pulse_;
  uint64_t rounds_ = 0;                            // of agreement
  std::atomic<int64_t> asked_ns_ = INT64_MIN / 2;  // when all hosts were asked last
  Descriptor listener_socket_;
  std::string address_;
  Mutex mutex_;  // also of the writing of this rank's error record
  std::function<void()> listener_ CCOM_GUARDED_BY(mutex_);
  std::atomic<bool> has_listener_ = false;
  struct Edge {
    TreeEdge to;
    bool is_shared = false;             // the connection was there
    std::unique_ptr<ControlLink> link;  // null: the connection is still to be made, or the tree has it
  };
  std::vector<Edge> edges_;  // of this rank

  // Used on the liveness thread only.
  bool taken_ = false;                 // the slot is claimed
  uint16_t history_ = 0;               // Departure's, once this rank has left
  std::atomic<bool> flooded_ = false;  // the board's error was sent to the trees; read by all threads
  int64_t next_beat_ns_ = 0;
  int64_t difference_ns_ = 0;                        // found then, between hosts; 0: none is known
  std::optional<Departure> departure_told_;          // to the trees
  std::shared_ptr<ControlFamily> family_;            // null on a single host
  std::vector<std::unique_ptr<ControlTree>> trees_;  // null where this rank is not its host's member
  std::unique_ptr<AgreementLinks> agreement_;        // null on a single host
};

}  // namespace ccom
