// SPDX-License-Identifier: Apache-2.0
//
// One host's part in the control tree, as a pure state machine: no clock, threads or sockets. Time (nanoseconds on any
// monotonic clock), messages and lost connections come in, messages and findings go out, so the simulator runs the same
// code.
//
// Hosts form a heap-ordered tree of degree 8: parent (i-1)/8, children 8i+1 ... 8i+8. Neighbours send heartbeats every
// dead/12; one that was silent for dead/6 is suspected, for `dead` it is dead with all its ranks. A connection that
// ends without a goodbye means that the process at its other end is dead, and only that one. The first error, found or
// received, goes to all other neighbours once; later ones are dropped. As every component of the tree without its dead
// hosts touches one of them, every connected survivor gets an error that names a dead rank.
//
// Not thread-safe. A resource of its driver: one per host and tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "liveness/message.h"

namespace ccom {

inline constexpr int kTreeDegree = 8;

constexpr int tree_parent(int host) { return host == 0 ? -1 : (host - 1) / kTreeDegree; }
// Parent first, then children.
std::vector<int> tree_neighbours(int host, int hosts);

struct TreeHost {
  std::string name;
  Rank member = -1;         // the rank that holds this host's connections
  std::vector<Rank> ranks;  // all of the host, ascending
};

struct TreeConfig {
  std::vector<TreeHost> hosts;
  int self = 0;
  int64_t dead_ns = 0;
};

struct TreeOutput {
  enum class Kind {
    Send,     // message -> host
    Report,   // message.error is this host's error, unless it has one
    Suspect,  // host has been silent; message.error tells the log
  };
  Kind kind = Kind::Send;
  int host = -1;
  ControlMessage message;
};
using TreeOutputs = std::vector<TreeOutput>;  // to be carried out in this order

class TreeState {
 public:
  explicit TreeState(TreeConfig config);

  // A connection to a neighbour is up.
  void attach(int host, int64_t now_ns, TreeOutputs& out);
  void receive(int host, const ControlMessage& message, int64_t now_ns, TreeOutputs& out);
  // The connection has ended; everything that came over it was received first.
  void lose(int host, std::string_view reason, TreeOutputs& out);
  // Time has passed. To be called at the latest at next_tick_ns(), after what had arrived was received.
  void tick(int64_t now_ns, TreeOutputs& out);
  // This host has an error of its own.
  void fail(const Status& error, TreeOutputs& out);
  // How far this host's ranks are, whenever it changes once a straggler poll is on; starts one.
  void poll_stragglers(StragglerReport own, TreeOutputs& out);
  const StragglerPoll& straggler_poll() const { return straggler_poll_; }
  // This host's member leaves in order; nothing more is sent.
  void leave(TreeOutputs& out);

  int64_t next_tick_ns() const { return next_tick_ns_; }
  bool failed() const { return !error_.is_ok(); }

 private:
  enum class Link : uint8_t { Absent, Up, Gone };
  struct Neighbour {
    int host = -1;
    Link link = Link::Absent;
    int64_t heard_ns = 0;
    bool suspected = false;
    bool pardoned = false;  // silence was forgiven once since it was last heard
  };

  Neighbour& neighbour(int host);
  void pass_news_on(TreeOutputs& out);
  void spread(const Status& error, int except, TreeOutputs& out);
  void judge(Neighbour& other, int64_t now_ns, TreeOutputs& out);
  void plan_next_tick();
  Status died(int host, std::string_view reason) const;
  Status fell_silent(int host, int64_t silence_ns) const;

  TreeConfig config_;
  std::vector<Neighbour> neighbours_;
  StragglerPoll straggler_poll_;  // by place in neighbours_
  Status error_;
  bool left_ = false;
  int64_t last_tick_ns_ = -1;
  int64_t next_beat_ns_ = 0;
  int64_t next_tick_ns_ = 0;
};

}  // namespace ccom
