// SPDX-License-Identifier: Apache-2.0
#include "messages/protocol.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace ccom {

std::string text_of(const Message& message) {
  const MessageRequest& asked = message.asked;
  const std::string whom = asked.peer == kAnyRank ? "any rank" : "rank " + std::to_string(asked.peer);
  return (asked.sends ? "to " : "from ") + whom + " (tag " + std::to_string(asked.tag) + ", " +
         std::to_string(asked.bytes) + " bytes)";
}

MessageProtocol::MessageProtocol(MessageRoutes routes)
    : routes_(std::move(routes)), matcher_(static_cast<int>(routes_.ways.size())), work_(routes_.transports.size()) {
  for (size_t peer = 0; peer < routes_.ways.size(); ++peer) {
    lines_.emplace_back(static_cast<Rank>(peer), routes_.ways[peer]);
  }
}

Status MessageProtocol::open() {
  for (PeerProtocol& line : lines_) {
    if (line.transport() >= 0) CCOM_TRY(line.open());
  }
  return {};
}

// ---- What is under way ----------------------------------------------------------------------------------------------

void MessageProtocol::track(const std::shared_ptr<Message>& message) {
  message->place = under_way_.size();
  under_way_.push_back(message);
  earliest_ = std::min(earliest_, message->deadline.when());
  const Rank peer = message->asked.peer;
  if (peer == kAnyRank) {
    ++any_source_;
  } else if (!is_self(peer)) {
    ++work_[static_cast<size_t>(lines_[static_cast<size_t>(peer)].transport())];
  }
}

void MessageProtocol::complete(const std::shared_ptr<Message>& message, Status status, Rank peer) {
  under_way_.back()->place = message->place;
  std::swap(under_way_[message->place], under_way_.back());
  under_way_.pop_back();
  const Rank asked = message->asked.peer;
  if (asked == kAnyRank) {
    --any_source_;
  } else if (!is_self(asked)) {
    --work_[static_cast<size_t>(lines_[static_cast<size_t>(asked)].transport())];
  }
  message->complete(std::move(status), peer);
  finished_.push_back(message);
}

void MessageProtocol::refuse(const std::shared_ptr<Message>& message, const Status& why) {
  message->complete(why, message->asked.peer);
  finished_.push_back(message);
}

// Most are never late: all are looked at only when the earliest deadline of them, or of those before, has passed.
Status MessageProtocol::check_deadlines(Clock::time_point now) {
  if (now < earliest_) return {};
  earliest_ = Clock::time_point::max();
  for (const auto& message : under_way_) {
    const MessageRequest& asked = message->asked;
    if (now >= message->deadline.when()) {
      Status late = error(Code::Timeout, "rank %d: the message %s was not %s within %" PRId64 " ms", routes_.rank,
                          text_of(*message).c_str(), asked.sends ? "taken" : "there", asked.timeout_ms)
                        .with_cure("look what this rank is doing; raise the timeout if it is only slow");
      return asked.peer == kAnyRank ? late : std::move(late).with_peers({asked.peer});
    }
    earliest_ = std::min(earliest_, message->deadline.when());
  }
  return {};
}

void MessageProtocol::fail(const Status& status) {
  for (Transport* transport : routes_.transports) transport->stop();
  matcher_.clear();
  while (!under_way_.empty()) {
    const std::shared_ptr<Message> message = under_way_.back();
    complete(message, status, message->asked.peer);
  }
}

// ---- Asked for ------------------------------------------------------------------------------------------------------

Status MessageProtocol::accept(std::shared_ptr<Message> message) {
  track(message);
  return message->asked.sends ? accept_send(std::move(message)) : accept_receive(std::move(message));
}

Status MessageProtocol::accept_send(std::shared_ptr<Message> message) {
  const Rank peer = message->asked.peer;
  if (!is_self(peer)) {
    CCOM_TRY(lines_[static_cast<size_t>(peer)].send(std::move(message)));
    return check_left(peer);
  }
  Arrival arrival;
  arrival.peer = peer;
  arrival.tag = message->asked.tag;
  arrival.bytes = message->asked.bytes;
  arrival.own = std::move(message);
  if (const auto receive = matcher_.take_receive(peer, arrival.tag)) return deliver(std::move(arrival), receive);
  matcher_.keep_arrival(std::move(arrival));
  return {};
}

Status MessageProtocol::accept_receive(std::shared_ptr<Message> message) {
  const Rank peer = message->asked.peer;
  if (std::optional<Arrival> arrival = matcher_.take_arrival(peer, message->asked.tag)) {
    return deliver(*std::move(arrival), message);
  }
  matcher_.keep_receive(std::move(message));
  return check_left(peer);
}

Status MessageProtocol::deliver(Arrival arrival, const std::shared_ptr<Message>& receive) {
  const MessageRequest& asked = receive->asked;
  if (arrival.bytes != asked.bytes) {
    return error(Code::Mismatch,
                 "the message with tag %" PRId64 " from rank %d to rank %d: rank %d sends %" PRIu64
                 " bytes, rank %d receives %zu",
                 arrival.tag, arrival.peer, routes_.rank, arrival.peer, arrival.bytes, routes_.rank, asked.bytes)
        .with_peers({std::min(arrival.peer, routes_.rank), std::max(arrival.peer, routes_.rank)})
        .with_cure("send and receive the same number of bytes; give messages of other sizes other tags");
  }
  PeerProtocol& line = lines_[static_cast<size_t>(arrival.peer)];
  const std::byte* payload = arrival.payload.get();
  if (arrival.own != nullptr) {
    payload = arrival.own->asked.data;
  } else if (!arrival.is_eager) {
    return line.receive(receive, arrival.id);
  } else {
    line.acknowledge();
  }
  if (arrival.bytes > 0) std::memmove(asked.data, payload, arrival.bytes);
  complete(receive, {}, arrival.peer);
  if (arrival.own != nullptr) complete(arrival.own, {}, arrival.peer);
  return {};
}

// Whether a message waits for somebody who has left.
Status MessageProtocol::check_left(Rank peer) const {
  const auto is_gone = [](const PeerProtocol& line) { return line.transport() < 0 || line.has_left(); };
  if (any_source_ > 0 && lines_.size() > 1 && std::ranges::all_of(lines_, is_gone)) {
    if (const auto waiting = matcher_.awaiting(kAnyRank)) return gone(kAnyRank, "the message " + text_of(*waiting));
  }
  if (peer == kAnyRank || is_self(peer) || !lines_[static_cast<size_t>(peer)].has_left()) return {};
  if (const auto sending = lines_[static_cast<size_t>(peer)].sending()) {
    return gone(peer, "the message " + text_of(*sending));
  }
  if (const auto waiting = matcher_.awaiting(peer)) return gone(peer, "the message " + text_of(*waiting));
  return {};
}

Status MessageProtocol::gone(Rank peer, const std::string& what) const {
  Status status = error(Code::RemoteError, "rank %d: %s will never be complete: %s has left the communicator",
                        routes_.rank, what.c_str(), peer == kAnyRank ? "everybody else" : "the peer")
                      .with_cure("destroy a communicator only when its messages are complete on both sides");
  return peer == kAnyRank ? status : std::move(status).with_peers({peer});
}

// ---- Moving ---------------------------------------------------------------------------------------------------------

Status MessageProtocol::move(bool& has_moved) {
  for (size_t t = 0; t < routes_.transports.size(); ++t) {
    if (!is_busy(t)) continue;
    CCOM_TRY(routes_.transports[t]->progress(events_));
    if (events_.mismatch) {
      return error(Code::TransportError, "rank %d sends another payload than it announced: a bug in ccom",
                   events_.mismatch->peer)
          .with_peers({events_.mismatch->peer});
    }
    has_moved |= !events_.completed.empty() || !events_.ended.empty();
    for (const Token token : events_.completed) CCOM_TRY(on_completed(token));
    for (const Token token : events_.ended) CCOM_TRY(on_ended(token));
    events_.completed.clear();
    events_.ended.clear();
  }
  return {};
}

Status MessageProtocol::on_completed(Token token) {
  Posted& posted = *reinterpret_cast<Posted*>(token);
  const Rank peer = posted.peer;
  PeerProtocol& line = lines_[static_cast<size_t>(peer)];
  if (posted.kind == Posted::Kind::HeaderReceive) return take_header(line, peer);
  if (const std::shared_ptr<Message> message = line.finish(posted)) complete(message, {}, peer);
  return line.go_on();
}

Status MessageProtocol::on_ended(Token token) {
  const Posted& posted = *reinterpret_cast<const Posted*>(token);
  if (posted.kind == Posted::Kind::PayloadReceive) return gone(posted.peer, "the message " + text_of(*posted.message));
  lines_[static_cast<size_t>(posted.peer)].note_end();
  return check_left(posted.peer);
}

Status MessageProtocol::take_header(PeerProtocol& line, Rank peer) {
  CCOM_TRY(line.accept_header());
  const MessageHeader& header = line.header();
  if (header.kind == HeaderKind::Clear) return line.next_header();
  Arrival arrival;
  arrival.peer = peer;
  arrival.tag = header.tag;
  arrival.bytes = header.bytes;
  arrival.id = header.id;
  arrival.is_eager = header.kind == HeaderKind::Eager;
  if (const std::shared_ptr<Message> receive = matcher_.take_receive(peer, header.tag)) {
    if (arrival.is_eager && arrival.bytes == receive->asked.bytes) {  // spares a copy
      line.acknowledge();
      if (arrival.bytes > 0) std::memcpy(receive->asked.data, header.payload.data(), arrival.bytes);
      complete(receive, {}, peer);
    } else {
      CCOM_TRY(deliver(std::move(arrival), receive));
    }
  } else {
    if (arrival.is_eager && arrival.bytes > 0) {
      arrival.payload = std::make_unique<std::byte[]>(arrival.bytes);
      std::memcpy(arrival.payload.get(), header.payload.data(), arrival.bytes);
    }
    matcher_.keep_arrival(std::move(arrival));
  }
  return line.next_header();
}

bool MessageProtocol::wait(std::chrono::nanoseconds at_most) {
  size_t busy = 0;
  for (size_t t = 0; t < routes_.transports.size(); ++t) busy += is_busy(t) ? 1 : 0;
  if (busy == 0) return false;
  // With several transports each gets a share of a slice; short ones keep the others' latency small, as long as it
  // seems to matter.
  constexpr std::chrono::nanoseconds kShort{1000000}, kPatient{5000000};
  if (busy > 1) at_most = std::min(at_most, at_most > kPatient ? kPatient : kShort) / static_cast<long>(busy);
  for (size_t t = 0; t < routes_.transports.size(); ++t) {
    if (is_busy(t)) routes_.transports[t]->wait(at_most);
  }
  return true;
}

void MessageProtocol::wake() {
  for (Transport* transport : routes_.transports) transport->wake();
}

std::vector<uint64_t> MessageProtocol::bytes_sent_to() const {
  std::vector<uint64_t> bytes;
  for (const PeerProtocol& line : lines_) bytes.push_back(line.bytes_sent());
  return bytes;
}

uint64_t MessageProtocol::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Transport* transport : routes_.transports) bytes += transport->memory_bytes();
  return bytes;
}

}  // namespace ccom
