// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_join.h"

#include <poll.h>

#include <algorithm>

#include "liveness/control_handshake.h"

namespace ccom {

namespace {

constexpr int kSliceMs = 10;  // interval between checks of the abort word

class ControlJoin {
 public:
  ControlJoin(const JoinPlan& plan, const ControlIdentity& identity, ControlAcceptor& acceptor, const JoinHooks& hooks)
      : identity_(identity), acceptor_(acceptor), hooks_(hooks) {
    for (const JoinEdge& edge : plan.edges) {
      if (edge.address.empty()) {
        children_.push_back({edge});
      } else {
        parents_.push_back({edge, false, {edge.host, edge.tree, edge.address}});
      }
    }
  }

  Status run(const WaitLimit& limit) {
    while (!complete()) {
      CCOM_TRY(hooks_.check());
      if (limit.is_reached()) return missing();
      for (Parent& parent : parents_) advance(parent);
      acceptor_.step([this](int host, int tree) { return waiting_child(host, tree) != nullptr; },
                     [this](int host, int tree, std::unique_ptr<ControlLink> link) {
                       Child* const child = waiting_child(host, tree);
                       child->up = true;
                       hooks_.attach(child->edge, std::move(link));
                     });
      if (!complete()) wait(limit.next_look());
    }
    return hooks_.check();
  }

 private:
  struct Child {
    JoinEdge edge;
    bool up = false;
  };
  struct Parent {
    JoinEdge edge;
    bool up = false;
    ControlConnector connector;
  };

  bool complete() const {
    return std::ranges::all_of(parents_, &Parent::up) && std::ranges::all_of(children_, &Child::up);
  }

  // The first authenticated connection of each expected child is kept; all others are dropped.
  Child* waiting_child(int host, int tree) {
    const auto found = std::ranges::find_if(
        children_, [&](const Child& child) { return child.edge.tree == tree && child.edge.host == host; });
    return found == children_.end() || found->up ? nullptr : &*found;
  }

  void advance(Parent& parent) {
    if (parent.up) return;
    std::unique_ptr<ControlLink> link = parent.connector.step(identity_);
    if (link == nullptr) return;
    parent.up = true;
    hooks_.attach(parent.edge, std::move(link));
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
      ranks.push_back(parent.edge.rank);
      reasons += "; rank " + std::to_string(parent.edge.rank) + " at " + parent.edge.address + ": " +
                 parent.connector.last_failure();
    }
    for (const Child& child : children_) {
      if (child.up) continue;
      ranks.push_back(child.edge.rank);
      reasons += "; rank " + std::to_string(child.edge.rank) + " did not connect";
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
  ControlAcceptor& acceptor_;
  const JoinHooks& hooks_;
  std::vector<Parent> parents_;
  std::vector<Child> children_;
  std::vector<pollfd> events_;
};

}  // namespace

Status join_control_trees(const JoinPlan& plan, const Descriptor& listener, const JoinHooks& hooks,
                          const WaitLimit& limit) {
  ControlIdentity identity{.key = plan.key, .communicator = plan.communicator, .self = plan.self_host};
  if (plan.tls && !plan.edges.empty()) {
    CCOM_TRY_ASSIGN(identity.tls, TlsContext::create(plan.key.derive("ccom liveness tls")));
  }
  CCOM_TRY_ASSIGN(const auto acceptor, ControlAcceptor::create(identity));
  if (listener.is_open()) CCOM_TRY(acceptor->listen_at(listener));
  return ControlJoin(plan, identity, *acceptor, hooks).run(limit);
}

}  // namespace ccom
