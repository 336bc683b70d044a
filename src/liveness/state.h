// SPDX-License-Identifier: Apache-2.0
//
// One host's part of a control tree as a pure state machine without clock, threads or sockets. Inputs: time
// (nanoseconds of any monotonic clock), messages, lost connections; outputs: messages and reports. The simulator runs
// the same code.
//
// Hosts form a heap-ordered tree of degree 8: parent (i-1)/8, children 8i+1 ... 8i+8. Neighbours send heartbeats every
// dead/12; one that is silent for dead/6 is suspected, after `dead` it and all its ranks are declared dead. A
// connection that ends without a goodbye means that the process at its other end is dead, and only that one. Every
// component of the tree without its dead hosts is adjacent to one of them, so every connected survivor gets an error
// that names a dead rank.
//
// A host has several trees but one error, which the caller keeps: the first that one of them reports. The caller passes
// it to fail() of each, which sends it to the neighbours that have sent none.
//
// A death or a silence is told to all hosts at once, but becomes the error a little later, so that ranks that die
// together are named together, alike everywhere. Host 0 makes the error, of all that it has heard within settle_ns of
// the first, or three times as long when a neighbour does not answer. Other hosts wait for it: for decision_ns, which
// is longer than a busy machine keeps a thread from running, or for three times settle_ns when their parent is lost.
// Then they make their own. Hosts that no connection of the trees joins any more may differ.
//
// Not thread-safe. One instance per host and tree.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "liveness/losses.h"
#include "liveness/message.h"

namespace ccom {

inline constexpr int kTreeDegree = 8;
// The first ranks of a host have connections; there is a tree for each choice of one on hosts of even depth and one on
// those of odd depth, so any two ranks of neighbouring hosts are joined in one.
inline constexpr int kTreeMembers = 2;
inline constexpr int kTrees = kTreeMembers * kTreeMembers;
// Ranks that one fault kills at once are known to be dead within milliseconds of each other.
inline constexpr int64_t kSettleNs = 3'000'000;
// See above; noticed only where host 0 is stopped, or its members of both trees die, when a rank of another host dies.
inline constexpr int64_t kDecisionNs = 100'000'000;

// When to beat after `now_ns`: within the interval, and at the same times as all trees of a process that have its phase
// and whatever else beats there as often. So there are few wakes, and few packets where trees share connections.
constexpr int64_t next_beat_ns(int64_t now_ns, int64_t interval_ns, int64_t phase_ns) {
  const int64_t latest_ns = now_ns + interval_ns;
  return latest_ns - (latest_ns + phase_ns) % (interval_ns / 4 + 1);
}
constexpr int tree_parent(int host) { return host == 0 ? -1 : (host - 1) / kTreeDegree; }
// Which of a host's ranks is its member in that tree; the last, where it has fewer.
int tree_member_index(int host, int tree);
// Parent first, then children.
std::vector<int> tree_neighbours(int host, int hosts);

struct TreeHost {
  std::string name;
  Rank member = -1;         // the rank that owns this host's connections
  std::vector<Rank> ranks;  // all ranks of the host, ascending
};

struct TreeConfig {
  std::vector<TreeHost> hosts;
  int self = 0;
  int64_t dead_ns = 0;
  int64_t settle_ns = 0;
  int64_t decision_ns = 0;
  int64_t beat_phase_ns = 0;  // not negative
};

struct TreeOutput {
  enum class Kind {
    Send,     // message -> host
    Report,   // message.error becomes this host's error, unless it has one; its error goes to fail(). It was made here,
              // of lost ranks, if the host is `self`; else it has come from that one
    Suspect,  // host is silent; message.error goes to the log
    Depart,   // message.departure has come from another host
    Lose,     // message.error names ranks of whose loss this host has not heard before
    Leave,    // the member of that host has left in order, after so many rounds of agreement
  };
  Kind kind = Kind::Send;
  int host = -1;
  ControlMessage message;
};
using TreeOutputs = std::vector<TreeOutput>;  // to be applied in this order

class TreeState {
 public:
  explicit TreeState(TreeConfig config);

  // The connection to a neighbour is established.
  void attach(int host, int64_t now_ns, TreeOutputs& out);
  void receive(int host, const ControlMessage& message, int64_t now_ns, TreeOutputs& out);
  // The connection has ended; everything received over it was passed to receive() before.
  void lose(int host, std::string_view reason, int64_t now_ns, TreeOutputs& out);
  // Ranks were lost otherwise: of this host, or as another tree of it has told.
  void find_lost(const Status& loss, int64_t now_ns, TreeOutputs& out) { add_loss(loss, -1, now_ns, out); }
  // Advances the time. Call it at next_tick_ns() at the latest, after passing on everything received.
  void tick(int64_t now_ns, TreeOutputs& out);
  // A rank of this host has left in order.
  void depart(const Departure& departure, TreeOutputs& out);
  // This host has an error, of its own or reported.
  void fail(const Status& error, TreeOutputs& out);
  // This host's contribution to a straggler poll, to be called whenever it changes while one is on or asked for here.
  // tells_activities: see StragglerPoll.
  void poll_stragglers(StragglerReport own, bool tells_activities, TreeOutputs& out);
  const StragglerPoll& straggler_poll() const { return straggler_poll_; }
  // This host's member leaves in order, after so many rounds of agreement; nothing is sent afterwards.
  void leave(uint64_t rounds, TreeOutputs& out);

  Rank member_of(int host) const { return config_.hosts[static_cast<size_t>(host)].member; }
  bool is_self(int host) const { return host == config_.self; }
  int64_t next_tick_ns() const { return next_tick_ns_; }
  bool failed() const { return !error_.is_ok(); }
  // Ranks are lost, and the error is still to be made.
  bool is_settling() const { return !failed() && !left_ && !losses_.empty(); }

 private:
  enum class Link : uint8_t { Absent, Up, Gone };
  struct Neighbour {
    int host = -1;
    Link link = Link::Absent;
    int64_t last_heard_ns = 0;
    bool suspected = false;
    bool grace_given = false;  // the silence was excused once since the last message
    bool has_error = false;
  };

  Neighbour& neighbour(int host);
  void send_straggler_updates(bool tells_activities, TreeOutputs& out);
  void tell_departure(const Departure& departure, int except, TreeOutputs& out);
  void check_silence(Neighbour& other, int64_t now_ns, TreeOutputs& out);
  void add_loss(const Status& loss, int except, int64_t now_ns, TreeOutputs& out);
  bool reaches_all_hosts() const;
  bool has_lost_its_parent() const;
  int64_t settled_at_ns() const;
  void settle(int64_t now_ns, TreeOutputs& out);
  void schedule_next_tick();
  Status death_error(int host, std::string_view reason) const;
  Status silence_error(int host, int64_t silence_ns) const;

  TreeConfig config_;
  std::vector<Neighbour> neighbours_;
  StragglerPoll straggler_poll_;  // indexed as neighbours_
  Losses losses_;
  Status error_;
  std::optional<Departure> departure_;  // the first that is known
  bool left_ = false;
  uint64_t rounds_ = 0;        // then
  int64_t last_tick_ns_ = -1;  // none; the first connection counts as one
  int64_t next_beat_ns_ = 0;
  int64_t next_tick_ns_ = 0;
};

}  // namespace ccom
