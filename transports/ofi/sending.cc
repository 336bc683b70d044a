// SPDX-License-Identifier: Apache-2.0
//
// The way out: channels that are ready are served, what is cut is sealed and queued per peer, and what the provider
// refuses is posted again, without holding back other peers.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "transports/ofi/checksum.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {
namespace {

// A provider refuses for a moment while its queue is full, and for ever when it cannot reach the peer any more: that is
// all that tcp;ofi_rxm says of a peer that was killed. Credits keep queues short, so this is never a busy peer. Time in
// which the caller made no progress counts little, because it is progress that may end the refusal.
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
  if (link.farewell && (channel.has_sends() || (link.has_left() && !channel.end_receives()))) {
    return error(Code::RemoteError, "rank %d has closed its transport, and rank %d still had business with it",
                 link.rank, config_.rank)
        .with_peers({link.rank});
  }
  while (channel.has_fragment() && !channel.free_slots.empty()) CCOM_TRY(send_fragment(channel));
  if (channel.is_grant_due() && !channel.grant.is_busy && !link.farewell) {
    return send_control(link, channel.grant, Kind::Grant, &channel);
  }
  return Status::ok();
}

Status OfiTransport::send_fragment(OfiChannel& channel) {
  Link& link = channel.link();
  SendOperation& operation = *channel.free_slots.back();
  channel.free_slots.pop_back();
  Header header = make_header(link, Kind::Data, &channel);
  const ConstBytes payload = channel.cut(header);
  operation.message = header.message;
  ++link.sent;
  return seal_and_post(operation, header, payload);
}

Status OfiTransport::send_control(Link& link, SendOperation& operation, Kind kind, OfiChannel* channel) {
  Header header = make_header(link, kind, channel);
  if (kind == Kind::Goodbye) header.message = link.sent;
  link.announced = link.arrived;
  return seal_and_post(operation, header, {});
}

Header OfiTransport::make_header(Link& link, Kind kind, OfiChannel* channel) const {
  Header header;
  header.prefix = {.kind = kind, .communicator = config_.communicator, .from = config_.rank, .to = link.rank};
  header.prefix.checksummed = config_.checksum ? 1 : 0;
  header.session = link.session_out;
  header.arrived = link.arrived;
  if (channel != nullptr) {
    header.prefix.channel = channel->index();
    header.consumed = channel->announce_consumed();
  }
  return header;
}

Status OfiTransport::seal_and_post(SendOperation& operation, const Header& header, ConstBytes payload) {
  std::memcpy(operation.data, &header, sizeof(header));
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
  operation.is_busy = true;
  ++link.unfinished;
  link.outbox.push_back(&operation);
  return link.is_waiting ? Status::ok() : flush(link);
}

Status OfiTransport::flush(Link& link) {
  while (!link.outbox.empty()) {
    SendOperation& operation = *link.outbox.front();
    const int rc = endpoint_->post_send(link.address, operation);
    if (rc == -FI_EAGAIN) return refused(link);
    link.refused_for = {};
    link.outbox.pop_front();
    if (rc != 0) CCOM_TRY(on_sent(operation, {&operation, 0, -rc, {}}));
  }
  return Status::ok();
}

Status OfiTransport::refused(Link& link) {
  if (!std::exchange(link.is_waiting, true)) waiting_.push_back(&link);
  const auto now = Clock::now();
  link.refused_for += std::min<std::chrono::nanoseconds>(now - std::exchange(link.refused_at, now), kRefusalStep);
  if (!is_connected_ || link.refused_for < kRefusalLimit) return Status::ok();
  bury(link);
  if (link.farewell) return Status::ok();
  return error(Code::RemoteError, "send, rank %d -> %d: libfabric provider %s takes nothing any more; the peer is gone",
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
  if (operation.kind == Kind::Data) {
    operation.channel->free_slots.push_back(&operation);
    if (completion.error == 0) operation.channel->fragment_is_out(operation.message);
  }
  if (operation.channel != nullptr) operation.channel->schedule();
  if (completion.error != 0) return send_failed(operation, completion.error, completion.reason);
  if (operation.kind == Kind::Welcome) link.is_welcomed = true;
  return Status::ok();
}

Status OfiTransport::send_failed(SendOperation& operation, int error, std::string_view reason) {
  Link& link = *operation.link;
  if (operation.kind == Kind::Hello || operation.kind == Kind::Welcome) {
    // The peer may not be up yet; connect() tries again.
    (operation.kind == Kind::Hello ? link.hello_due : link.welcome_due) = true;
    link.greet_at = Clock::now() + std::chrono::milliseconds(20);
    link.last_error = error;
    return Status::ok();
  }
  bury(link);
  if (link.farewell || operation.kind == Kind::Goodbye || operation.kind == Kind::Acknowledge) return Status::ok();
  return peer_error(error, config_.rank, link.rank, "send", reason);
}

}  // namespace ccom::ofi
