// SPDX-License-Identifier: Apache-2.0
//
// Sending: ready channels are served, their fragments are sealed and queued per peer, and what the provider refuses is
// posted again without blocking other peers.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/checksum.h"
#include "base/log.h"
#include "transports/ofi/checksum.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

// A provider refuses temporarily while its queue is full, and permanently when it cannot reach the peer any more: that
// is all that tcp;ofi_rxm reports of a killed peer. Credits keep queues short, so a busy peer never looks like this.
// Time in which the caller made no progress hardly counts, because progress may end the refusal.
constexpr std::chrono::nanoseconds kRefusalLimit = std::chrono::seconds(3);
constexpr std::chrono::nanoseconds kRefusalStep = std::chrono::milliseconds(10);

}  // namespace

Status OfiTransport::serve_ready() {
  while (!board_.ready.empty()) {
    const std::vector<OfiChannel*> ready = std::exchange(board_.ready, {});
    for (OfiChannel* channel : ready) {
      channel->unschedule();
      if (!board_.stopped) CCOM_TRY(serve(*channel));
    }
  }
  return Status::ok();
}

Status OfiTransport::serve(OfiChannel& channel) {
  Link& link = channel.link();
  CCOM_TRY(channel.accept_kept(pool_));
  if (link.goodbye_count && (channel.has_sends() || (link.has_left() && !channel.end_receives()))) {
    return error(Code::RemoteError, "rank %d has closed its transport while rank %d was still communicating with it",
                 link.rank, config_.rank)
        .with_peers({link.rank});
  }
  while (!link.goodbye_count && channel.has_credit()) {
    const std::optional<OfiChannel::Target> target = channel.next_target();
    if (!target) break;
    CCOM_TRY(send_target(channel, *target));
  }
  for (TransferMode mode = channel.next_mode(); mode != TransferMode::None; mode = channel.next_mode()) {
    CCOM_TRY(send_fragment(channel, mode));
    if (mode == TransferMode::Inline) continue;
    // Received data is processed while still in the cache, and other channels get their turn.
    paused_.push_back(&channel);
    break;
  }
  if (channel.is_grant_due() && !channel.grant.is_busy && !link.goodbye_count) {
    return send_control(link, channel.grant, Kind::Grant, &channel);
  }
  return Status::ok();
}

Status OfiTransport::send_fragment(OfiChannel& channel, TransferMode mode) {
  Link& link = channel.link();
  if (mode != TransferMode::Inline && !find_source(channel)) mode = TransferMode::Inline;
  SendOperation& operation = *channel.free_slots.back();
  channel.free_slots.pop_back();
  Header header = make_header(link, Kind::Data, &channel);
  const Piece piece = channel.cut(header, mode);
  operation.message = header.message;
  ++link.sent;
  if (mode == TransferMode::Inline) return seal_and_post(operation, header, piece.payload);
  // The checksum brings the payload into the cache, from which the provider reads it.
  if (config_.checksum) header.payload_checksum = crc32c(piece.payload, 0);
  write_piece(channel, header, piece);
  return seal_and_post(operation, header, {});
}

// The source of a write is registered if the provider requires it. If that fails, its bytes are sent by messages.
bool OfiTransport::find_source(OfiChannel& channel) {
  if (!rails_->limits().registers_sources || !channel.needs_source()) return true;
  const ConstBytes payload = channel.front_payload();
  auto lease = registrations_.get({const_cast<std::byte*>(payload.data()), payload.size()}, Use::Source);
  if (!lease) {
    log(LogLevel::Debug, "ofi: rank %d sends through copies, because registration failed: %s", config_.rank,
        lease.error().message().c_str());
    return false;
  }
  channel.lend_source(*std::move(lease));
  return true;
}

void OfiTransport::write_piece(OfiChannel& channel, const Header& header, const Piece& piece) {
  WriteOperation& write = *channel.free_writes.back();
  channel.free_writes.pop_back();
  write.data =
      const_cast<std::byte*>(piece.payload.data());  // libfabric's operations have one type for both directions
  write.size_bytes = piece.payload.size();
  write.message = header.message;
  write.offset_bytes = header.offset_bytes;
  write.immediate = header.immediate;
  write.address = piece.address;
  write.keys = piece.keys;
  for (size_t rail = 0; piece.source != nullptr && rail < piece.source->size(); ++rail) {
    write.descriptors[rail] = (*piece.source)[rail]->descriptor();
  }
  ++channel.link().unfinished;
  rails_->post(write);
}

// Announces where the peer may write that message. If the memory cannot be registered, slots are used.
Status OfiTransport::send_target(OfiChannel& channel, const OfiChannel::Target& target) {
  auto lease = registrations_.get(target.bytes, Use::Target);
  const auto ticket =
      lease ? board_.tickets.open(channel, target.message, channel.spots_for(target.bytes.size())) : std::nullopt;
  if (!ticket) {
    if (!lease) log(LogLevel::Debug, "ofi: rank %d: %s", config_.rank, lease.error().message().c_str());
    channel.open_target(std::nullopt, {});
    return Status::ok();
  }
  TargetPlace place{.address = (*lease)->front()->place().address, .ticket = *ticket};
  for (size_t rail = 0; rail < (*lease)->size(); ++rail) place.keys[rail] = (**lease)[rail]->place().key;
  channel.open_target(ticket, *std::move(lease));
  SendOperation& operation = *channel.free_slots.back();
  channel.free_slots.pop_back();
  Header header = make_header(channel.link(), Kind::Target, &channel);
  header.message = target.message;
  header.message_bytes = target.bytes.size();
  header.envelope = target.expected;
  channel.count_control();
  return seal_and_post(operation, header, std::as_bytes(std::span(&place, 1)));
}

Status OfiTransport::send_control(Link& link, SendOperation& operation, Kind kind, OfiChannel* channel) {
  Header header = make_header(link, kind, channel);
  if (kind == Kind::Goodbye || kind == Kind::Stopped) header.message = link.sent;
  link.announced = link.arrived;
  return seal_and_post(operation, header, {});
}

Header OfiTransport::make_header(Link& link, Kind kind, OfiChannel* channel) const {
  Header header;
  header.prefix = {.kind = kind, .communicator = config_.communicator, .from = config_.rank, .to = link.rank};
  header.session = header.session_again = link.session_out;
  header.arrived = link.arrived;
  if (channel != nullptr) {
    header.prefix.channel = channel->index();
    channel->announce(header);
  }
  return header;
}

Status OfiTransport::seal_and_post(SendOperation& operation, const Header& header, ConstBytes payload) {
  Header sealed = header;
  if (header.immediate == kInline) sealed.payload_bytes = static_cast<uint32_t>(payload.size());
  std::memcpy(operation.data, &sealed, sizeof(sealed));
  if (!payload.empty()) std::memcpy(operation.data + sizeof(header), payload.data(), payload.size());
  operation.size_bytes = sizeof(header) + payload.size();
  operation.kind = header.prefix.kind;
  if (config_.checksum) {
    const uint32_t checksum = checksum_of(operation.data, operation.size_bytes);
    std::memcpy(operation.data + offsetof(Header, checksum), &checksum, sizeof(checksum));
  }
  return post(operation);
}

Status OfiTransport::post(SendOperation& operation) {
  Link& link = *operation.link;
  link.outbox.push_back(&operation);  // may throw; nothing else has changed then
  operation.is_busy = true;
  ++link.unfinished;
  return link.is_waiting ? Status::ok() : flush(link);
}

Status OfiTransport::flush(Link& link) {
  while (!link.outbox.empty()) {
    SendOperation& operation = *link.outbox.front();
    const int rc = endpoint_->post_send(link.address, operation);
    if (rc == -FI_EAGAIN) return refused(link);
    link.refused_for = {};
    link.outbox.pop_front();
    if (rc != 0) CCOM_TRY(on_sent(operation, {.operation = &operation, .error = -rc}));
  }
  return Status::ok();
}

Status OfiTransport::refused(Link& link) {
  if (!std::exchange(link.is_waiting, true)) waiting_.push_back(&link);
  const auto now = Clock::now();
  link.refused_for += std::min<std::chrono::nanoseconds>(now - std::exchange(link.refused_at, now), kRefusalStep);
  if (!is_connected_ || link.refused_for < kRefusalLimit) return Status::ok();
  mark_dead(link);
  if (link.goodbye_count) return Status::ok();
  return error(Code::RemoteError, "send, rank %d -> %d: libfabric provider %s accepts no more data; the peer is gone",
               config_.rank, link.rank, config_.provider.c_str())
      .with_peers({link.rank});
}

Status OfiTransport::flush_waiting() {
  const std::vector<Link*> waiting = std::exchange(waiting_, {});
  for (Link* link : waiting) link->is_waiting = false;
  Status first;
  for (Link* link : waiting) {
    if (Status status = flush(*link); first.is_ok()) first = std::move(status);
  }
  return first;
}

Status OfiTransport::on_sent(SendOperation& operation, const Completion& completion) {
  Link& link = *operation.link;
  operation.is_busy = false;
  --link.unfinished;
  if (operation.kind == Kind::Data || operation.kind == Kind::Target) {
    operation.channel->free_slots.push_back(&operation);
    if (completion.error == 0 && operation.kind == Kind::Data) operation.channel->part_is_out(operation.message);
  }
  if (operation.channel != nullptr) operation.channel->schedule();
  if (completion.error != 0) return send_failed(operation, completion);
  return operation.kind == Kind::Handshake ? on_handshake_sent(operation) : Status::ok();
}

Status OfiTransport::on_wrote(WriteOperation& operation, const Completion& completion) {
  if (completion.error != 0 && strand(operation, completion)) return Status::ok();
  Link& link = *operation.link;
  operation.is_busy = false;
  --link.unfinished;
  operation.channel->free_writes.push_back(&operation);
  operation.channel->schedule();
  if (completion.error == 0) {
    operation.channel->part_is_out(operation.message);
    return Status::ok();
  }
  if (link.is_dead) return Status::ok();
  mark_dead(link);
  if (link.goodbye_count) return Status::ok();
  return peer_error(completion, config_.rank, link.rank, "write");
}

Status OfiTransport::send_failed(SendOperation& operation, const Completion& completion) {
  Link& link = *operation.link;
  if (operation.kind == Kind::Handshake) {
    // The peer may not be up yet; connect() retries.
    (&operation == &link.greeting ? link.greeting_due : link.confirm_due) = true;
    link.greet_at = Clock::now() + std::chrono::milliseconds(20);
    link.last_error = completion.error;
    return Status::ok();
  }
  mark_dead(link);
  if (link.goodbye_count || &operation == &link.goodbye || operation.kind == Kind::Acknowledge) return Status::ok();
  return peer_error(completion, config_.rank, link.rank, "send");
}

}  // namespace ccom::ofi
