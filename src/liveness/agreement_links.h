// SPDX-License-Identifier: Apache-2.0
//
// Connects an AgreementState to the clock and to sockets: connections between ranks of several hosts, which are made
// when somebody has something to say, and found to have ended at once when a process has.
//
// Each rank has a port (agreement_port.h), and listens there from the time when its communicator has failed, or it
// takes part in a round. So who refuses connections, although it has had time to find out that the communicator has
// failed, has ended, where no other rank of its host is there to tell. Who does not answer is silent.
//
// Threads: wait_for_outcome(), has_ended() any thread; the rest on the liveness thread only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "liveness/agreement.h"
#include "liveness/agreement_port.h"
#include "liveness/board.h"
#include "liveness/control_family.h"
#include "liveness/control_link.h"
#include "liveness/liveness_thread.h"
#include "liveness/monitor.h"

namespace ccom {

class AgreementLinks {
 public:
  // The configuration, the port, the thread and the task, which polls this, must outlive it.
  AgreementLinks(const MonitorConfig& config, Board board, AgreementPort& port, LivenessThread& thread,
                 LivenessTask& task);
  ~AgreementLinks();
  AgreementLinks(const AgreementLinks&) = delete;
  AgreementLinks& operator=(const AgreementLinks&) = delete;

  const std::string& address() const { return port_.address(); }
  // Of all ranks. Before that nothing is done here.
  void set_addresses(std::vector<std::string> addresses) { addresses_ = std::move(addresses); }
  // Whether it listens.
  bool is_open() const { return is_open_; }
  // Receives, connects, sends; returns the time of the next call at the latest. Once it listens, to be called often.
  int64_t poll(int64_t now_ns);

  // See AgreementState.
  void begin(uint64_t round, const ConsensusTerms& terms, const std::vector<Rank>& excluded);
  void end_wait();
  void give_up();
  // That rank has left in order, after so many rounds.
  void see_left(Rank rank, uint64_t rounds);
  std::vector<Rank> missing() const { return agreement_.missing(); }
  bool is_cut_off() const { return agreement_.is_cut_off(); }
  // Says goodbye, after so many rounds, and closes all connections. Does not block.
  void leave(uint64_t rounds);

  // Of the round that has begun last; waits for it for that long at most.
  std::optional<ConsensusOutcome> wait_for_outcome(std::chrono::microseconds longest);
  size_t size() const { return ended_.size(); }  // ranks
  bool has_ended(Rank rank) const { return ended_[static_cast<size_t>(rank)].load(std::memory_order_acquire); }

 private:
  struct Link {
    Rank rank = -1;
    std::unique_ptr<ControlLink> link;
    int64_t heard_ns = 0;
    bool has_spoken =
        false;  // the other side has kept the connection, too: two may be made at once, and one be given up
  };
  struct Attempt {
    ControlConnector connector;
    int64_t since_ns = 0;
    int64_t refused_since_ns = 0;  // 0: it is not refused
  };

  void open();
  void look_at_board(int64_t now_ns);
  void arrive(Rank member, std::shared_ptr<ControlConnection> connection);
  void attach(Rank rank, std::shared_ptr<ControlConnection> connection, int64_t now_ns);
  void receive(Link& link, int64_t now_ns);
  void drop_ended();
  void connect(int64_t now_ns);
  bool is_watched(Rank rank) const;
  std::optional<PeerView> verdict(Rank rank, Attempt& attempt, int64_t now_ns) const;
  void beat(int64_t now_ns);
  void apply();
  void send(Rank rank, const AgreementMessage& message);

  const MonitorConfig& config_;
  const std::vector<Rank>& local_ranks_;
  const Board board_;
  AgreementPort& port_;
  LivenessThread& thread_;
  LivenessTask& task_;
  const int64_t dead_ns_;
  std::vector<std::string> addresses_;
  bool is_open_ = false;
  bool has_complained_ = false;  // that it cannot listen
  int64_t failed_ns_ = 0;        // when this rank found out that the communicator has failed; 0: it has not
  AgreementState agreement_;
  AgreementState::Outputs outputs_;
  std::vector<Link> links_;
  std::map<Rank, Attempt> attempts_;
  int64_t next_beat_ns_ = 0, next_probe_ns_ = 0;
  std::vector<std::atomic<bool>> ended_;  // by rank
  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<ConsensusOutcome> outcome_ CCOM_GUARDED_BY(mutex_);
};

}  // namespace ccom
