// SPDX-License-Identifier: Apache-2.0
#include "messages/protocol.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace ccom {

std::string text_of(const Message& message) {
  return (message.request.sends ? "to " : "from ") + peer_text_of(message.own_end());
}

namespace {

// Of a send or receive.
std::string data_text(uint64_t bytes, uint16_t call_type) {
  const auto type = static_cast<DataType>(call_type - 1);
  return std::to_string(bytes / size_of(type)) + " " + std::string(name_of(type));
}

}  // namespace

MessageProtocol::MessageProtocol(MessageRoutes routes)
    : routes_(std::move(routes)), matcher_(static_cast<int>(routes_.by_peer.size())), work_(routes_.transports.size()) {
  for (size_t peer = 0; peer < routes_.by_peer.size(); ++peer) {
    peers_.emplace_back(static_cast<Rank>(peer), routes_.by_peer[peer]);
  }
}

Status MessageProtocol::open() {
  for (PeerProtocol& endpoint : peers_) {
    if (endpoint.transport() >= 0) CCOM_TRY(endpoint.open());
  }
  return {};
}

// ---- Pending messages -----------------------------------------------------------------------------------------------

void MessageProtocol::track(MessageList& requests) noexcept {
  Message& message = *requests.front();
  message.place = requests.begin();
  pending_.splice(pending_.end(), requests, message.place);
  earliest_ = std::min(earliest_, message.deadline.when());
  const Rank peer = message.request.peer;
  if (peer == kAnyRank) {
    ++any_source_;
  } else if (!is_self(peer)) {
    ++work_[static_cast<size_t>(peers_[static_cast<size_t>(peer)].transport())];
  }
}

void MessageProtocol::complete(const std::shared_ptr<Message>& message, Status status, Rank peer) noexcept {
  finished_.splice(finished_.end(), pending_, message->place);
  const Rank source = message->request.peer;
  if (source == kAnyRank) {
    --any_source_;
  } else if (!is_self(source)) {
    --work_[static_cast<size_t>(peers_[static_cast<size_t>(source)].transport())];
  }
  message->complete(std::move(status), peer);
}

void MessageProtocol::refuse(MessageList& requests, const Status& why) {
  for (const auto& message : requests) message->complete(why, message->request.peer);
  finished_.splice(finished_.end(), requests);
}

// Deadlines rarely pass, so the list is scanned only after the earliest known one has.
Status MessageProtocol::check_deadlines(Clock::time_point now) {
  if (now < earliest_) return {};
  earliest_ = Clock::time_point::max();
  for (const auto& message : pending_) {
    const MessageRequest& request = message->request;
    if (now >= message->deadline.when()) {
      Status timeout =
          error(ErrorKey::MessageLate, "rank %d: the message %s timed out: not %s within %" PRId64 " ms", routes_.rank,
                text_of(*message).c_str(), request.sends ? "accepted by the receiver" : "received", request.timeout_ms)
              .with_cure("check what that rank is doing; raise the timeout if it is only slow");
      return request.peer == kAnyRank ? timeout : std::move(timeout).with_peers({request.peer});
    }
    earliest_ = std::min(earliest_, message->deadline.when());
  }
  return {};
}

void MessageProtocol::fail(const Status& status) {
  for (Transport* transport : routes_.transports) transport->stop();
  matcher_.clear();
  while (!pending_.empty()) {
    const std::shared_ptr<Message> message = pending_.back();
    complete(message, status, message->request.peer);
  }
}

// ---- Requests -------------------------------------------------------------------------------------------------------

Status MessageProtocol::accept_front(MessageList& requests) {
  std::shared_ptr<Message> message = requests.front();
  track(requests);
  return message->request.sends ? accept_send(std::move(message)) : accept_receive(std::move(message));
}

Status MessageProtocol::accept_send(std::shared_ptr<Message> message) {
  const Rank peer = message->request.peer;
  if (!is_self(peer)) {
    CCOM_TRY(peers_[static_cast<size_t>(peer)].send(std::move(message)));
    return check_departures(peer);
  }
  Arrival arrival;
  arrival.peer = peer;
  arrival.tag = message->request.tag;
  arrival.bytes = message->request.bytes;
  arrival.own = std::move(message);
  if (const auto receive = matcher_.take_receive(peer, arrival.tag)) return deliver(std::move(arrival), receive);
  matcher_.keep_arrival(std::move(arrival));
  return {};
}

Status MessageProtocol::accept_receive(std::shared_ptr<Message> message) {
  const Rank peer = message->request.peer;
  if (std::optional<Arrival> arrival =
          matcher_.take_arrival(peer, message->request.tag, message->request.call_type != 0)) {
    return deliver(*std::move(arrival), message);
  }
  matcher_.keep_receive(std::move(message));
  return check_departures(peer);
}

Status MessageProtocol::deliver(Arrival arrival, const std::shared_ptr<Message>& receive) {
  const MessageRequest& request = receive->request;
  if (arrival.call_type != request.call_type || (arrival.call_type != 0 && arrival.bytes != request.bytes)) {
    return error(Code::Mismatch, "rank %d sends %s to rank %d, which receives %s", arrival.peer,
                 data_text(arrival.bytes, arrival.call_type).c_str(), routes_.rank,
                 data_text(request.bytes, request.call_type).c_str())
        .with_peers({std::min(arrival.peer, routes_.rank), std::max(arrival.peer, routes_.rank)})
        .with_cure("send and receive the same count and type");
  }
  if (arrival.bytes != request.bytes) {
    return error(Code::Mismatch,
                 "the message with tag %" PRId64 " from rank %d to rank %d: rank %d sends %" PRIu64
                 " bytes, rank %d receives %zu",
                 arrival.tag, arrival.peer, routes_.rank, arrival.peer, arrival.bytes, routes_.rank, request.bytes)
        .with_peers({std::min(arrival.peer, routes_.rank), std::max(arrival.peer, routes_.rank)})
        .with_cure("send and receive the same number of bytes, or use another tag");
  }
  PeerProtocol& endpoint = peers_[static_cast<size_t>(arrival.peer)];
  const std::byte* payload = arrival.payload.get();
  if (arrival.own != nullptr) {
    payload = arrival.own->request.data;
  } else if (!arrival.is_eager) {
    return endpoint.receive(receive, arrival.id);
  } else {
    endpoint.acknowledge();
  }
  if (arrival.bytes > 0) std::memmove(request.data, payload, arrival.bytes);
  complete(receive, {}, arrival.peer);
  if (arrival.own != nullptr) complete(arrival.own, {}, arrival.peer);
  return {};
}

// Fails if a pending message waits for a peer that has left.
Status MessageProtocol::check_departures(Rank peer) const {
  const auto is_gone = [](const PeerProtocol& endpoint) { return endpoint.transport() < 0 || endpoint.has_left(); };
  if (any_source_ > 0 && peers_.size() > 1 && std::ranges::all_of(peers_, is_gone)) {
    if (const auto waiting = matcher_.awaiting(kAnyRank))
      return peer_left(kAnyRank, "the message " + text_of(*waiting));
  }
  if (peer == kAnyRank || is_self(peer) || !peers_[static_cast<size_t>(peer)].has_left()) return {};
  if (const auto sending = peers_[static_cast<size_t>(peer)].sending()) {
    return peer_left(peer, "the message " + text_of(*sending));
  }
  if (const auto waiting = matcher_.awaiting(peer)) return peer_left(peer, "the message " + text_of(*waiting));
  return {};
}

Status MessageProtocol::peer_left(Rank peer, const std::string& what) const {
  Status status =
      error(ErrorKey::MessageWithoutPeer, "rank %d: %s will never be complete: %s has left the communicator",
            routes_.rank, what.c_str(), peer == kAnyRank ? "every other rank" : "the peer")
          .with_cure("destroy a communicator only after its messages are complete on both sides");
  return peer == kAnyRank ? status : std::move(status).with_peers({peer});
}

// ---- Progress -------------------------------------------------------------------------------------------------------

Status MessageProtocol::progress(bool& has_progressed) {
  for (size_t t = 0; t < routes_.transports.size(); ++t) {
    if (!is_busy(t)) continue;
    CCOM_TRY(routes_.transports[t]->progress(events_));
    if (events_.mismatch) {
      return error(Code::TransportError, "rank %d sent a payload other than announced; this is a bug in ccom",
                   events_.mismatch->peer)
          .with_peers({events_.mismatch->peer});
    }
    has_progressed |= !events_.completed.empty() || !events_.ended.empty();
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
  PeerProtocol& endpoint = peers_[static_cast<size_t>(peer)];
  if (posted.kind == Posted::Kind::HeaderReceive) return on_header(endpoint, peer);
  if (const std::shared_ptr<Message> message = endpoint.finish(posted)) complete(message, {}, peer);
  return endpoint.send_queued();
}

Status MessageProtocol::on_ended(Token token) {
  const Posted& posted = *reinterpret_cast<const Posted*>(token);
  if (posted.kind == Posted::Kind::PayloadReceive)
    return peer_left(posted.peer, "the message " + text_of(*posted.message));
  peers_[static_cast<size_t>(posted.peer)].mark_closed();
  return check_departures(posted.peer);
}

Status MessageProtocol::on_header(PeerProtocol& endpoint, Rank peer) {
  CCOM_TRY(endpoint.accept_header());
  const MessageHeader& header = endpoint.header();
  if (header.kind == HeaderKind::ClearToSend) return endpoint.next_header();
  Arrival arrival;
  arrival.peer = peer;
  arrival.tag = header.tag;
  arrival.call_type = header.call_type;
  arrival.bytes = header.bytes;
  arrival.id = header.id;
  arrival.is_eager = header.kind == HeaderKind::Eager;
  if (const std::shared_ptr<Message> receive = matcher_.take_receive(peer, header.tag, header.call_type != 0)) {
    const bool fits = arrival.bytes == receive->request.bytes && arrival.call_type == receive->request.call_type;
    if (arrival.is_eager && fits) {  // avoids a copy
      endpoint.acknowledge();
      if (arrival.bytes > 0) std::memcpy(receive->request.data, header.payload.data(), arrival.bytes);
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
  return endpoint.next_header();
}

bool MessageProtocol::wait(std::chrono::nanoseconds at_most) {
  size_t busy = 0;
  for (size_t t = 0; t < routes_.transports.size(); ++t) busy += is_busy(t) ? 1 : 0;
  if (busy == 0) return false;
  // Several transports share the slice; it is kept short for low latency while the wait is recent.
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

void MessageProtocol::count_bytes_sent_to(std::span<uint64_t> bytes) const {
  for (size_t peer = 0; peer < peers_.size(); ++peer) bytes[peer] = peers_[peer].bytes_sent();
}

uint64_t MessageProtocol::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Transport* transport : routes_.transports) bytes += transport->memory_bytes();
  return bytes;
}

}  // namespace ccom
