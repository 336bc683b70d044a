// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_join.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/handshake.h"
#include "base/unproved.h"
#include "liveness/sockets.h"

namespace ccom {

namespace {

using std::chrono::milliseconds;
constexpr int64_t kHelloMs = 2000;
constexpr int64_t kRetryMs = 50;
constexpr int kSliceMs = 10;  // interval between checks of the abort word

// What a connection is for; its two sides are hosts.
struct ControlTerms {
  int32_t tree = 0;
};

// A connection whose handshake is in progress.
struct PendingHandshake {
  ControlSocket socket;
  Handshake handshake;
  ControlTerms terms{};  // an acceptor's: the peer's
  Deadline deadline = Deadline::after_ms(kHelloMs);
  bool connected = true;
  bool secured = false;
  HandshakeMessage input{};
  size_t input_bytes = 0;
  int event_index = -1;
};

// A new socket's buffer holds a whole handshake, so a short write means that the connection is broken.
bool send_next(PendingHandshake& pending) {
  const HandshakeMessage message = pending.handshake.next(pending.terms);
  return pending.socket.send(message.bytes()) == static_cast<ssize_t>(sizeof message);
}

// Continues the handshake, an acceptor's only to the Welcome. Returns an empty string, or why it has failed.
std::string advance(PendingHandshake& pending) {
  if (!pending.connected) {
    if (const int failure = connect_outcome(pending.socket.descriptor()); failure != 0) return std::strerror(failure);
    pending.connected = true;
  }
  if (!pending.secured) {
    const Tls::Step step = pending.socket.secure();
    if (step == Tls::Step::NeedsRead) return {};
    if (step != Tls::Step::Done) return "TLS handshake failed: it does not hold the communicator's key";
    pending.secured = true;
  }
  Handshake& handshake = pending.handshake;
  while (!handshake.is_complete()) {
    if (handshake.is_our_turn()) {
      if (handshake.step() == HandshakeStep::Welcome) return {};
      if (!send_next(pending)) return "connection stalled during the handshake";
      continue;
    }
    const Bytes missing = pending.input.writable_bytes().subspan(pending.input_bytes);
    const ssize_t size = pending.socket.receive(missing);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return std::strerror(errno);
    if (size == 0) return "connection closed during the handshake";
    pending.input_bytes += static_cast<size_t>(size);
    if (static_cast<size_t>(size) < missing.size()) continue;
    pending.input_bytes = 0;
    const bool is_hello = handshake.step() == HandshakeStep::Hello;
    if (!handshake.receive(pending.input)) return "authentication failed: it does not hold the communicator's key";
    if (is_hello) pending.terms = pending.input.terms_as<ControlTerms>();
  }
  return {};
}

LinkKeys keys_of(const Handshake& handshake, bool is_connector) {
  const Secret session = handshake.session();
  const Secret up = session.derive("connector to acceptor"), down = session.derive("acceptor to connector");
  return is_connector ? LinkKeys{.send = up, .receive = down} : LinkKeys{.send = down, .receive = up};
}

class ControlJoin {
 public:
  ControlJoin(const JoinPlan& plan, std::shared_ptr<const TlsContext> tls, UnprovedConnections arriving,
              const JoinHooks& hooks)
      : plan_(plan), tls_(std::move(tls)), arriving_(std::move(arriving)), hooks_(hooks) {
    for (const JoinEdge& edge : plan.edges) {
      if (edge.address.empty()) {
        children_.push_back({edge});
      } else {
        parents_.push_back({edge});
      }
    }
  }

  Status run(const WaitLimit& limit) {
    while (!complete()) {
      CCOM_TRY(hooks_.check());
      if (limit.is_reached()) return missing();
      for (Parent& parent : parents_) start(parent);
      poll_all(limit.next_look());
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

  HandshakeIdentity identity() const {
    return {HandshakeProtocol::Control, plan_.key, plan_.communicator, plan_.self_host};
  }

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
    auto connection = ControlSocket::make(*std::move(socket), tls_, Tls::Side::Connects);
    if (!connection) {
      parent.last_failure = connection.error().message();
      return;
    }
    parent.pending = std::make_unique<PendingHandshake>(PendingHandshake{
        *std::move(connection), Handshake::connector(identity(), parent.edge.host), {.tree = parent.edge.tree}});
    parent.pending->connected = false;
  }

  void poll_all(Deadline deadline) {
    events_.clear();
    const auto watch = [this](PendingHandshake& pending) {
      pending.event_index = static_cast<int>(events_.size());
      events_.push_back({.fd = pending.socket.fd(),
                         .events = static_cast<short>(pending.connected ? POLLIN : POLLOUT),
                         .revents = 0});
    };
    for (Parent& parent : parents_)
      if (parent.pending) watch(*parent.pending);
    for (auto& accepted : accepted_) watch(*accepted);
    events_.push_back({.fd = arriving_.fd(), .events = POLLIN, .revents = 0});
    const int64_t left_ms = std::min<int64_t>(kSliceMs, deadline.left_ms() + 1);
    ::poll(events_.data(), events_.size(), static_cast<int>(left_ms));
  }

  bool is_ready(const PendingHandshake& pending) const {
    return pending.event_index >= 0 && events_[static_cast<size_t>(pending.event_index)].revents != 0;
  }

  void advance_parent(Parent& parent) {
    if (!parent.pending) return;
    std::string failure = is_ready(*parent.pending) ? advance(*parent.pending) : std::string();
    if (failure.empty() && parent.pending->handshake.is_complete()) {
      parent.up = true;
      hooks_.attach(parent.edge, make_link(*parent.pending, true));
      parent.pending.reset();
      return;
    }
    // Once it has the Confirm, the peer may have admitted this connection, and admits no other: TCP delivers its
    // Welcome.
    const bool has_confirmed = parent.pending->handshake.step() == HandshakeStep::Welcome;
    if (failure.empty() && !has_confirmed && parent.pending->deadline.passed())
      failure = "no answer within two seconds";
    if (failure.empty()) return;
    parent.last_failure = std::move(failure);
    parent.pending.reset();
    parent.next_try = Deadline::after_ms(kRetryMs);
  }

  void advance_accepted() {
    std::erase_if(accepted_, [this](const std::unique_ptr<PendingHandshake>& accepted) {
      return is_ready(*accepted) ? is_settled(*accepted) : accepted->deadline.passed();
    });
  }

  // Continues its handshake; whether it is admitted, or to be dropped.
  bool is_settled(PendingHandshake& accepted) {
    if (!advance(accepted).empty()) return true;
    if (!accepted.handshake.is_our_turn()) return accepted.deadline.passed();
    admit(accepted);
    return true;
  }

  // The first authenticated connection of each expected child is kept; all others are dropped.
  void admit(PendingHandshake& accepted) {
    for (Child& child : children_) {
      const bool is_this = child.edge.tree == accepted.terms.tree && child.edge.host == accepted.handshake.peer();
      if (child.up || !is_this) continue;
      if (!send_next(accepted)) return;
      child.up = true;
      hooks_.attach(child.edge, make_link(accepted, false));
      return;
    }
  }

  static std::unique_ptr<ControlLink> make_link(PendingHandshake& pending, bool is_connector) {
    return std::make_unique<ControlLink>(std::move(pending.socket), keys_of(pending.handshake, is_connector));
  }

  void accept_all() {
    while (true) {
      Descriptor socket = arriving_.next();
      if (!socket.is_open()) return;
      disable_nagle(socket.get());
      std::optional<HelloNumber> hello;
      if (tls_ != nullptr) hello = peek_hello(socket.get());
      if (hello && answered_.contains(*hello)) continue;  // a recording
      auto connection = ControlSocket::make(std::move(socket), tls_, Tls::Side::Accepts);
      if (!connection) continue;
      accepted_.push_back(std::make_unique<PendingHandshake>(
          PendingHandshake{*std::move(connection), Handshake::acceptor(identity(), &answered_)}));
      if (is_settled(*accepted_.back())) {
        accepted_.pop_back();
      } else if (hello) {
        answered_.insert(*hello);  // its maker holds the key
      }
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
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    return error(ErrorKey::NoControlConnection, "connect the control tree: timed out waiting for %s%s",
                 name_ranks(ranks).c_str(), reasons.c_str())
        .with_peers(std::move(ranks))
        .with_cure(
            "check that these ranks run and that the hosts can reach each other over the interface of "
            "CCOM_SOCKET_IFNAME");
  }

  const JoinPlan& plan_;
  const std::shared_ptr<const TlsContext> tls_;  // null: connections are not encrypted
  UnprovedConnections arriving_;
  const JoinHooks& hooks_;
  std::vector<Parent> parents_;
  std::vector<Child> children_;
  HelloNumbers answered_;  // of those who hold the key
  std::vector<std::unique_ptr<PendingHandshake>> accepted_;
  std::vector<pollfd> events_;
};

}  // namespace

Status join_control_trees(const JoinPlan& plan, const Descriptor& listener, const JoinHooks& hooks,
                          const WaitLimit& limit) {
  auto arriving = UnprovedConnections::create(plan.tls ? kClientHelloGreeting : kHandshakeGreeting);
  if (!arriving) return std::move(arriving).error().in("control connections");
  if (listener.is_open()) CCOM_TRY(arriving->add_listener(listener.get()));
  std::shared_ptr<const TlsContext> tls;
  if (plan.tls && !plan.edges.empty()) {
    CCOM_TRY_ASSIGN(tls, TlsContext::create(plan.key.derive("ccom liveness tls")));
  }
  return ControlJoin(plan, std::move(tls), *std::move(arriving), hooks).run(limit);
}

}  // namespace ccom
