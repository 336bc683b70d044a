// SPDX-License-Identifier: Apache-2.0
//
// The relays of other hosts that speak to this one: what they have said and have to be told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/tcp_socket.h"
#include "base/time.h"
#include "bootstrap/answers.h"
#include "bootstrap/relay_server.h"
#include "bootstrap/rendezvous.pb.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Belongs to the relay's thread, but for listen(), which comes before.
class RelayChildren {
 public:
  struct Joining {
    uint64_t relay = 0;
    PendingCall* call = nullptr;
    std::vector<wire::Member> members;
  };
  struct Parts {
    uint64_t round = 0;
    std::string phase;
    std::vector<wire::Member> members;
    size_t bytes = 0;
  };

  // self: what answers say of this process.
  explicit RelayChildren(ServerProcess self) : self_(std::move(self)) {}
  ~RelayChildren();
  RelayChildren(const RelayChildren&) = delete;
  RelayChildren& operator=(const RelayChildren&) = delete;

  // Where the host can be reached that the server speaks to. If that cannot be had, no relay will come.
  void listen(const UniqueId& id, const PortRange& ports);
  // "": it does not listen.
  std::string endpoint() const { return server_ == nullptr ? "" : server_->endpoint(); }

  // Takes what has come. Whether anything has.
  bool step();
  // What is to be passed on, once. Who joins is to be told by answer().
  std::vector<Joining> take_joins() { return std::exchange(joins_, {}); }
  std::vector<Parts> take_parts() { return std::exchange(parts_, {}); }
  std::vector<wire::Member> take_losses() { return std::exchange(losses_, {}); }
  std::vector<wire::Member> take_leaves() { return std::exchange(leaves_, {}); }
  // The rounds that they wait for, and until when.
  std::map<uint64_t, Deadline> awaited() const;

  void answer(const Joining& joining, const Status& status);
  void deliver(uint64_t round, wire::Answer& answer);
  // Those that ask later are told, too.
  void fail(const Status& status);
  // None needs this relay any longer.
  bool may_end() const;
  // The ranks of those that have heard as much, and have not left.
  std::vector<wire::Member> present(uint64_t answered) const;

 private:
  struct Held {
    uint64_t number = 0;
    PendingCall* call = nullptr;  // null: none
  };
  struct Child {
    wire::Member self;
    Held presence, await;
    uint64_t round = 0;     // that it waits for
    uint64_t answered = 0;  // rounds
    Deadline limit = Deadline::after_ms(0);
    std::vector<wire::Member> members;  // ranks that speak through it, and have not left
    bool has_left = false;              // its own rank
  };
  void hear(RelayRequest& arrived, FinishedCalls& finished);
  void hear_parts(wire::Request& request);
  void hear_await(Child& child, const RelayRequest& arrived, FinishedCalls& finished);
  void hear_leave(Child& child, wire::Request& request, FinishedCalls& finished);
  void cancel(uint64_t number, FinishedCalls& finished);
  static void let_go(Held& held, const AnswerText& answer, FinishedCalls& finished);

  const ServerProcess self_;
  const AnswerText nothing_ = encode(Status::ok(), self_);
  std::map<uint64_t, Child> children_;  // by the token of their relay
  std::vector<Joining> joins_;
  std::vector<Parts> parts_;
  std::vector<wire::Member> losses_, leaves_;
  Status failure_;
  uint64_t last_round_ = 0;  // plus one; 0: none
  AnswerText last_answer_;
  std::unique_ptr<RelayServer> server_;  // null: it does not listen
};

}  // namespace ccom
