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
constexpr int kSliceMs = 10;          // between looks at the abort word
constexpr size_t kMaxVisitors = 128;  // who have not proved themselves; the oldest makes room

// A socket in its handshake.
struct Conversation {
  OwnedFd socket;
  Handshake handshake;
  Deadline deadline = Deadline::after_ms(kHelloMs);
  bool connected = true;
  std::array<std::byte, Handshake::kMaxBytes> input{};
  size_t input_bytes = 0;
  int event_index = -1;
};

// A fresh socket's buffer holds a whole handshake; a short write means that something is wrong with it.
bool send_all(const OwnedFd& socket, ConstBytes bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

// Moves a conversation on. Empty if all is well so far, else why it is over.
std::string advance(Conversation& talk, bool sends_last_output) {
  if (!talk.connected) {
    if (const int failure = connect_outcome(talk.socket); failure != 0) return std::strerror(failure);
    talk.connected = true;
  }
  Handshake& handshake = talk.handshake;
  while (handshake.state() == Handshake::State::Running) {
    const size_t missing = handshake.wants() - talk.input_bytes;
    const ssize_t size = ::recv(talk.socket.get(), talk.input.data() + talk.input_bytes, missing, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return std::strerror(errno);
    if (size == 0) return "it closed the connection during the handshake";
    talk.input_bytes += static_cast<size_t>(size);
    if (talk.input_bytes < handshake.wants()) continue;
    handshake.feed(ConstBytes(talk.input).first(talk.input_bytes));
    talk.input_bytes = 0;
    if (handshake.state() == Handshake::State::Refused) return "it does not hold the communicator's key";
    const bool send_now = handshake.state() == Handshake::State::Running || sends_last_output;
    if (send_now && !send_all(talk.socket, handshake.output())) return "it stopped reading during the handshake";
  }
  return {};
}

class Joining {
 public:
  Joining(const JoinPlan& plan, const OwnedFd& listener, const JoinHooks& hooks)
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
      for (Parent& parent : parents_) begin(parent);
      poll_all(deadline);
      for (Parent& parent : parents_) move(parent);
      move_visitors();
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
    std::unique_ptr<Conversation> talk{};
    Deadline next_try = Deadline::after_ms(0);
    std::string last_failure{"no answer"};
  };

  bool complete() const {
    return std::ranges::all_of(parents_, &Parent::up) && std::ranges::all_of(children_, &Child::up);
  }

  void begin(Parent& parent) {
    if (parent.up || parent.talk || !parent.next_try.passed()) return;
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
    parent.talk =
        std::make_unique<Conversation>(Conversation{*std::move(socket), Handshake::connector(plan_.key, hello)});
    parent.talk->connected = false;
  }

  void poll_all(Deadline deadline) {
    events_.clear();
    const auto watch = [this](Conversation& talk) {
      talk.event_index = static_cast<int>(events_.size());
      events_.push_back(
          {.fd = talk.socket.get(), .events = static_cast<short>(talk.connected ? POLLIN : POLLOUT), .revents = 0});
    };
    for (Parent& parent : parents_)
      if (parent.talk) watch(*parent.talk);
    for (auto& visitor : visitors_) watch(*visitor);
    if (listener_) events_.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    const int64_t left_ms = std::min<int64_t>(kSliceMs, deadline.left_ms() + 1);
    ::poll(events_.data(), events_.size(), static_cast<int>(left_ms));
  }

  bool is_ready(const Conversation& talk) const {
    return talk.event_index >= 0 && events_[static_cast<size_t>(talk.event_index)].revents != 0;
  }

  void move(Parent& parent) {
    if (!parent.talk) return;
    std::string failure = is_ready(*parent.talk) ? advance(*parent.talk, true) : std::string();
    if (failure.empty() && parent.talk->handshake.state() == Handshake::State::Done) {
      parent.up = true;
      hooks_.attach(parent.edge, make_link(*parent.talk));
      parent.talk.reset();
      return;
    }
    if (failure.empty() && parent.talk->deadline.passed()) failure = "no answer within two seconds";
    if (failure.empty()) return;
    parent.last_failure = std::move(failure);
    parent.talk.reset();
    parent.next_try = Deadline::after_ms(kRetryMs);
  }

  void move_visitors() {
    std::erase_if(visitors_, [this](const std::unique_ptr<Conversation>& visitor) {
      if (!is_ready(*visitor)) return visitor->deadline.passed();
      if (!advance(*visitor, false).empty()) return true;
      if (visitor->handshake.state() != Handshake::State::Done) return visitor->deadline.passed();
      admit(*visitor);
      return true;
    });
  }

  // The first valid connection of an expected child wins; any other is dropped.
  void admit(Conversation& visitor) {
    const Hello& hello = visitor.handshake.hello();
    if (hello.communicator != plan_.communicator || hello.to_host != plan_.self_host) return;
    for (Child& child : children_) {
      if (child.up || child.edge.tree != hello.tree || child.edge.host != hello.from_host) continue;
      if (!send_all(visitor.socket, visitor.handshake.output())) return;
      child.up = true;
      hooks_.attach(child.edge, make_link(visitor));
      return;
    }
  }

  static std::unique_ptr<ControlLink> make_link(Conversation& talk) {
    return std::make_unique<ControlLink>(std::move(talk.socket), talk.handshake.keys());
  }

  void accept_all() {
    if (!listener_ || events_.empty() || events_.back().fd != listener_.get() || events_.back().revents == 0) return;
    for (size_t i = 0; i < kMaxVisitors; ++i) {
      OwnedFd socket = accept_from(listener_);
      if (!socket) return;
      if (visitors_.size() >= kMaxVisitors) visitors_.erase(visitors_.begin());
      auto visitor = std::make_unique<Conversation>(Conversation{std::move(socket), Handshake::acceptor(plan_.key)});
      if (send_all(visitor->socket, visitor->handshake.output())) visitors_.push_back(std::move(visitor));
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
      reasons += "; rank " + std::to_string(child.edge.rank) + " did not come";
    }
    std::ranges::sort(ranks);
    ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
    return error(Code::Timeout, "build the control connections between hosts: %s missing%s", name_ranks(ranks).c_str(),
                 reasons.c_str())
        .with_peers(std::move(ranks))
        .with_cure(
            "see whether these ranks run, and whether the hosts reach each other on the interface of "
            "CCOM_SOCKET_IFNAME");
  }

  const JoinPlan& plan_;
  const OwnedFd& listener_;
  const JoinHooks& hooks_;
  std::vector<Parent> parents_;
  std::vector<Child> children_;
  std::vector<std::unique_ptr<Conversation>> visitors_;  // oldest first
  std::vector<pollfd> events_;
};

}  // namespace

Status join_control_trees(const JoinPlan& plan, const OwnedFd& listener, const JoinHooks& hooks, Deadline deadline) {
  return Joining(plan, listener, hooks).run(deadline);
}

}  // namespace ccom
