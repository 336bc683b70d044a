// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_join.h"

#include <poll.h>

#include <algorithm>

namespace ccom {

namespace {

constexpr int kSliceMs = 10;  // interval between checks of the abort word

class ControlJoin {
 public:
  ControlJoin(const ControlIdentity& identity, uint64_t use, const std::vector<JoinPeer>& peers,
              ControlAcceptor& acceptor, const JoinHooks& hooks)
      : identity_(identity), use_(use), acceptor_(acceptor), hooks_(hooks) {
    for (const JoinPeer& peer : peers) {
      if (peer.address.empty()) {
        children_.push_back({peer});
      } else {
        parents_.push_back({peer, false, {peer.member, use, peer.address}});
      }
    }
  }

  Status run(const WaitLimit& limit) {
    while (!complete()) {
      CCOM_TRY(hooks_.check());
      if (limit.is_reached()) return missing();
      for (Parent& parent : parents_) advance(parent);
      acceptor_.step([this](Rank member, uint64_t use) { return use == use_ && waiting_child(member) != nullptr; },
                     [this](Rank member, uint64_t, std::shared_ptr<ControlConnection> connection) {
                       Child* const child = waiting_child(member);
                       child->up = true;
                       hooks_.attach(child->peer, std::move(connection));
                     });
      if (!complete()) wait(limit.next_look());
    }
    return hooks_.check();
  }

 private:
  struct Child {
    JoinPeer peer;
    bool up = false;
  };
  struct Parent {
    JoinPeer peer;
    bool up = false;
    ControlConnector connector;
  };

  bool complete() const {
    return std::ranges::all_of(parents_, &Parent::up) && std::ranges::all_of(children_, &Child::up);
  }

  // The first authenticated connection of each expected child is kept; all others are dropped.
  Child* waiting_child(Rank member) {
    const auto found =
        std::ranges::find_if(children_, [member](const Child& child) { return child.peer.member == member; });
    return found == children_.end() || found->up ? nullptr : &*found;
  }

  void advance(Parent& parent) {
    if (parent.up) return;
    std::shared_ptr<ControlConnection> connection = parent.connector.step(identity_);
    if (connection == nullptr) return;
    parent.up = true;
    hooks_.attach(parent.peer, std::move(connection));
  }

  void wait(Deadline deadline) {
    events_.clear();
    for (const Parent& parent : parents_)
      if (!parent.up) parent.connector.add_awaited(events_);
    acceptor_.add_awaited(events_);
    const int64_t left_ms = std::min<int64_t>(kSliceMs, deadline.left_ms() + 1);
    ::poll(events_.data(), events_.size(), static_cast<int>(left_ms));
  }

  Status missing() const {
    std::vector<int> ranks;
    std::string reasons;
    for (const Parent& parent : parents_) {
      if (parent.up) continue;
      ranks.push_back(parent.peer.rank);
      reasons += "; rank " + std::to_string(parent.peer.rank) + " at " + parent.peer.address + ": " +
                 parent.connector.last_failure();
    }
    for (const Child& child : children_) {
      if (child.up) continue;
      ranks.push_back(child.peer.rank);
      reasons += "; rank " + std::to_string(child.peer.rank) + " did not connect";
    }
    std::ranges::sort(ranks);
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return error(ErrorKey::NoControlConnection, "connect the control tree: timed out waiting for %s%s",
                 name_ranks(ranks).c_str(), reasons.c_str())
        .with_peers(std::move(ranks))
        .with_cure(
            "check that these ranks run and that the hosts can reach each other over the interface of "
            "CCOM_SOCKET_IFNAME");
  }

  const ControlIdentity& identity_;
  const uint64_t use_;
  ControlAcceptor& acceptor_;
  const JoinHooks& hooks_;
  std::vector<Parent> parents_;
  std::vector<Child> children_;
  std::vector<pollfd> events_;
};

}  // namespace

Status join_control_trees(const ControlIdentity& identity, uint64_t use, const std::vector<JoinPeer>& peers,
                          const Descriptor& listener, const JoinHooks& hooks, const WaitLimit& limit) {
  CCOM_TRY_ASSIGN(const auto acceptor, ControlAcceptor::create(identity));
  if (listener.is_open()) CCOM_TRY(acceptor->listen_at(listener));
  return ControlJoin(identity, use, peers, *acceptor, hooks).run(limit);
}

}  // namespace ccom
