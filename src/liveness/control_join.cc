// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_join.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace ccom {

namespace {

using std::chrono::milliseconds;
constexpr int64_t kHelloMs = 2000;
constexpr int64_t kRetryMs = 50;
constexpr int kSliceMs = 10;                // interval between checks of the abort word
constexpr size_t kMaxPendingAccepts = 128;  // unauthenticated; the oldest is dropped for a new one

// A connection whose handshake is in progress.
struct PendingHandshake {
  OwnedFd socket;
  Handshake handshake;
  Deadline deadline = Deadline::after_ms(kHelloMs);
  bool connected = true;
  std::array<std::byte, Handshake::kMaxBytes> input{};
  size_t input_bytes = 0;
  int event_index = -1;
};

// A new socket's buffer holds a whole handshake, so a short write means that the connection is broken.
bool send_all(const OwnedFd& socket, ConstBytes bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

// Continues the handshake. Returns an empty string, or why it has failed.
std::string advance(PendingHandshake& pending, bool sends_last_output) {
  if (!pending.connected) {
    if (const int failure = connect_outcome(pending.socket); failure != 0) return std::strerror(failure);
    pending.connected = true;
  }
  Handshake& handshake = pending.handshake;
  while (handshake.state() == Handshake::State::Running) {
    const size_t missing = handshake.wants() - pending.input_bytes;
    const ssize_t size =
        ::recv(pending.socket.get(), pending.input.data() + pending.input_bytes, missing, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return std::strerror(errno);
    if (size == 0) return "connection closed during the handshake";
    pending.input_bytes += static_cast<size_t>(size);
    if (pending.input_bytes < handshake.wants()) continue;
    handshake.feed(ConstBytes(pending.input).first(pending.input_bytes));
    pending.input_bytes = 0;
    if (handshake.state() == Handshake::State::Refused)
      return "authentication failed: it does not hold the communicator's key";
    const bool send_now = handshake.state() == Handshake::State::Running || sends_last_output;
    if (send_now && !send_all(pending.socket, handshake.output())) return "connection stalled during the handshake";
  }
  return {};
}

class ControlJoin {
 public:
  ControlJoin(const JoinPlan& plan, const OwnedFd& listener, const JoinHooks& hooks)
      : plan_(plan), listener_(listener), hooks_(hooks) {
    for (const JoinEdge& edge : plan.edges) {
      if (edge.address.empty()) {
        children_.push_back({edge});
      } else {
        parents_.push_back({edge});
      }
    }
  }

  Status run(Deadline deadline) {
    while (!complete()) {
      CCOM_TRY(hooks_.check());
      if (deadline.passed()) return missing();
      for (Parent& parent : parents_) start(parent);
      poll_all(deadline);
      for (Parent& parent : parents_) advance_parent(parent);
      advance_accepted();
      accept_all();
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
    std::unique_ptr<PendingHandshake> pending{};
    Deadline next_try = Deadline::after_ms(0);
    std::string last_failure{"no answer"};
  };

  bool complete() const {
    return std::ranges::all_of(parents_, &Parent::up) && std::ranges::all_of(children_, &Child::up);
  }

  void start(Parent& parent) {
    if (parent.up || parent.pending || !parent.next_try.passed()) return;
    parent.next_try = Deadline::after_ms(kRetryMs);
    auto socket = start_connect(parent.edge.address);
    if (!socket) {
      parent.last_failure = socket.error().message();
      return;
    }
    const Hello hello{.communicator = plan_.communicator,
                      .tree = parent.edge.tree,
                      .from_host = plan_.self_host,
                      .to_host = parent.edge.host};
    parent.pending = std::make_unique<PendingHandshake>(
        PendingHandshake{*std::move(socket), Handshake::connector(plan_.key, hello)});
    parent.pending->connected = false;
  }

  void poll_all(Deadline deadline) {
    events_.clear();
    const auto watch = [this](PendingHandshake& pending) {
      pending.event_index = static_cast<int>(events_.size());
      events_.push_back({.fd = pending.socket.get(),
                         .events = static_cast<short>(pending.connected ? POLLIN : POLLOUT),
                         .revents = 0});
    };
    for (Parent& parent : parents_)
      if (parent.pending) watch(*parent.pending);
    for (auto& accepted : accepted_) watch(*accepted);
    if (listener_) events_.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    const int64_t left_ms = std::min<int64_t>(kSliceMs, deadline.left_ms() + 1);
    ::poll(events_.data(), events_.size(), static_cast<int>(left_ms));
  }

  bool is_ready(const PendingHandshake& pending) const {
    return pending.event_index >= 0 && events_[static_cast<size_t>(pending.event_index)].revents != 0;
  }

  void advance_parent(Parent& parent) {
    if (!parent.pending) return;
    std::string failure = is_ready(*parent.pending) ? advance(*parent.pending, true) : std::string();
    if (failure.empty() && parent.pending->handshake.state() == Handshake::State::Done) {
      parent.up = true;
      hooks_.attach(parent.edge, make_link(*parent.pending));
      parent.pending.reset();
      return;
    }
    if (failure.empty() && parent.pending->deadline.passed()) failure = "no answer within two seconds";
    if (failure.empty()) return;
    parent.last_failure = std::move(failure);
    parent.pending.reset();
    parent.next_try = Deadline::after_ms(kRetryMs);
  }

  void advance_accepted() {
    std::erase_if(accepted_, [this](const std::unique_ptr<PendingHandshake>& accepted) {
      if (!is_ready(*accepted)) return accepted->deadline.passed();
      if (!advance(*accepted, false).empty()) return true;
      if (accepted->handshake.state() != Handshake::State::Done) return accepted->deadline.passed();
      admit(*accepted);
      return true;
    });
  }

  // The first authenticated connection of each expected child is kept; all others are dropped.
  void admit(PendingHandshake& accepted) {
    const Hello& hello = accepted.handshake.hello();
    if (hello.communicator != plan_.communicator || hello.to_host != plan_.self_host) return;
    for (Child& child : children_) {
      if (child.up || child.edge.tree != hello.tree || child.edge.host != hello.from_host) continue;
      if (!send_all(accepted.socket, accepted.handshake.output())) return;
      child.up = true;
      hooks_.attach(child.edge, make_link(accepted));
      return;
    }
  }

  static std::unique_ptr<ControlLink> make_link(PendingHandshake& pending) {
    return std::make_unique<ControlLink>(std::move(pending.socket), pending.handshake.keys());
  }

  void accept_all() {
    if (!listener_ || events_.empty() || events_.back().fd != listener_.get() || events_.back().revents == 0) return;
    for (size_t i = 0; i < kMaxPendingAccepts; ++i) {
      OwnedFd socket = accept_from(listener_);
      if (!socket) return;
      if (accepted_.size() >= kMaxPendingAccepts) accepted_.erase(accepted_.begin());
      auto accepted =
          std::make_unique<PendingHandshake>(PendingHandshake{std::move(socket), Handshake::acceptor(plan_.key)});
      if (send_all(accepted->socket, accepted->handshake.output())) accepted_.push_back(std::move(accepted));
    }
  }

  Status missing() const {
    std::vector<int> ranks;
    std::string reasons;
    for (const Parent& parent : parents_) {
      if (parent.up) continue;
      ranks.push_back(parent.edge.rank);
      reasons +=
          "; rank " + std::to_string(parent.edge.rank) + " at " + parent.edge.address + ": " + parent.last_failure;
    }
    for (const Child& child : children_) {
      if (child.up) continue;
      ranks.push_back(child.edge.rank);
      reasons += "; rank " + std::to_string(child.edge.rank) + " did not connect";
    }
    std::ranges::sort(ranks);
    ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
    return error(Code::Timeout, "connect the control tree: timed out waiting for %s%s", name_ranks(ranks).c_str(),
                 reasons.c_str())
        .with_peers(std::move(ranks))
        .with_cure(
            "check that these ranks run and that the hosts can reach each other over the interface of "
            "CCOM_SOCKET_IFNAME");
  }

  const JoinPlan& plan_;
  const OwnedFd& listener_;
  const JoinHooks& hooks_;
  std::vector<Parent> parents_;
  std::vector<Child> children_;
  std::vector<std::unique_ptr<PendingHandshake>> accepted_;  // oldest first
  std::vector<pollfd> events_;
};

}  // namespace

Status join_control_trees(const JoinPlan& plan, const OwnedFd& listener, const JoinHooks& hooks, Deadline deadline) {
  return ControlJoin(plan, listener, hooks).run(deadline);
}

}  // namespace ccom
