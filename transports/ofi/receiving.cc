// SPDX-License-Identifier: Apache-2.0
//
// Receiving: identify the sender, authenticate, verify the checksum, dispatch by kind. In this order; see wire.h.
#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/log.h"
#include "transports/ofi/checksum.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

Status OfiTransport::on_received(ReceiveOperation& operation, const Completion& completion) {
  // FI_ECANCELED is an error too: nothing is cancelled while completions are still read.
  // No rank of the job sends more than fits.
  if (completion.error == FI_ETRUNC || completion.error == FI_EMSGSIZE) return drop(operation);
  // The connection is not identified; it may belong to a stranger. If a peer has died, a send to it or liveness will
  // detect that.
  if (blames_peer(completion.error)) {
    log(LogLevel::Warn, "ofi: rank %d: connection lost: %s (%s)", config_.rank, fi_strerror(completion.error),
        completion.reason.c_str());
    return drop(operation);
  }
  if (completion.error != 0) return fabric_error(completion.error, "receive", completion.reason);
  operation.received_bytes = completion.received_bytes;
  const ConstBytes bytes = operation.bytes();
  if (bytes.size() < sizeof(Prefix) || bytes.size() > operation.size_bytes) return drop(operation);
  if (bytes.size() == sizeof(HandshakeMessage) && read_as<uint32_t>(bytes) == kHandshakeMagic) {
    const auto message = read_as<HandshakeMessage>(bytes);
    Link* const peer = find_link(message.from);
    if (peer == nullptr) return drop(operation);
    Status status = on_handshake(*peer, message);
    if (Status released = pool_.release(operation); status.is_ok()) status = std::move(released);
    return status;
  }
  const auto prefix = read_as<Prefix>(bytes);
  const bool is_ours = prefix.magic == kMagic && prefix.version == kWireVersion &&
                       prefix.communicator == config_.communicator && prefix.to == config_.rank;
  Link* link = is_ours ? find_link(prefix.from) : nullptr;
  return link == nullptr ? drop_or_blame(operation) : on_message(*link, operation);
}

Status OfiTransport::drop(ReceiveOperation& operation) {
  ++dropped_;
  return pool_.release(operation);
}

// A stranger's message is dropped. But a peer's one would be awaited for ever if damage made it look like a stranger's:
// at least one of its two session numbers, which are far apart, tells the peer.
Status OfiTransport::drop_or_blame(ReceiveOperation& operation) {
  if (operation.received_bytes < sizeof(Header)) return drop(operation);
  const auto header = read_as<Header>(operation.bytes());
  for (const auto& link : links_) {
    const uint64_t session = link->session_in;
    if (session != 0 && (header.session == session || header.session_again == session)) {
      return damaged(*link, "message");
    }
  }
  return drop(operation);
}

Status OfiTransport::damaged(const Link& link, const char* what) const {
  return error(ErrorKey::Damaged, "rank %d: a %s from rank %d was corrupted in transit (CRC32C)", config_.rank, what,
               link.rank)
      .with_peers({link.rank})
      .with_cure("data is corrupted on the network path; check cabling, offloads, drivers and firmware of both hosts");
}

Status OfiTransport::on_message(Link& link, ReceiveOperation& operation) {
  if (operation.received_bytes < sizeof(Header)) return drop(operation);
  const auto header = read_as<Header>(operation.bytes());
  if (link.session_in == 0 || header.session != link.session_in) return drop_or_blame(operation);
  if (config_.checksum && checksum_of(operation.data, operation.received_bytes) != header.checksum) {
    return damaged(link, "message");
  }
  const size_t follows = operation.received_bytes - sizeof(Header);
  const bool is_written = header.prefix.kind == Kind::Data && header.immediate != kInline;
  if (follows != (is_written ? 0 : header.payload_bytes) || header.arrived > link.sent ||
      header.prefix.channel >= link.channels.size()) {
    return error(Code::TransportError, "rank %d sent an invalid message", link.rank).with_peers({link.rank});
  }
  link.acknowledged = std::max(link.acknowledged, header.arrived);
  link.probe_pause = {};
  switch (header.prefix.kind) {
    case Kind::Data: return on_data(link, header, operation);
    case Kind::Grant: CCOM_TRY(link.channels[header.prefix.channel]->take_credit(header)); break;
    case Kind::Goodbye:
    case Kind::Stopped:
      link.is_cut |= header.prefix.kind == Kind::Stopped;
      CCOM_TRY(on_goodbye(link, header.message));
      break;
    case Kind::Acknowledge: break;
    case Kind::Ask:
      CCOM_TRY(link.channels[header.prefix.channel]->take_credit(header));
      link.question = header;
      asked_.push_back(&link);
      break;
    case Kind::Answer:
      CCOM_TRY(link.channels[header.prefix.channel]->take_credit(header));
      on_answer(link, header);
      break;
    case Kind::Target:
      operation.charged = link.channels[header.prefix.channel].get();
      CCOM_TRY(on_target(link, header, operation.bytes().subspan(sizeof(Header))));
      break;
    default: return drop(operation);
  }
  return pool_.release(operation);
}

Status OfiTransport::on_data(Link& link, const Header& header, ReceiveOperation& operation) {
  OfiChannel& channel = *link.channels[header.prefix.channel];
  CCOM_TRY(channel.take_credit(header));
  const bool is_over = board_.stopped || !board_.failed.is_ok();
  if (header.immediate == kInline || is_over) {
    ++link.arrived;
    CCOM_TRY(acknowledge_goodbye(link));
    if (is_over) return pool_.release(operation);
    return channel.accept({header, operation.bytes().subspan(sizeof(Header)), &operation, false}, pool_);
  }
  operation.charged = &channel;
  ++link.awaited;
  CCOM_TRY(acknowledge_goodbye(link));
  CCOM_TRY_ASSIGN(const WriteTickets::Match match, board_.tickets.on_header(channel, header));
  if (match.channel != nullptr) CCOM_TRY(on_payload(match));
  return pool_.release(operation);
}

Status OfiTransport::on_target(Link& link, const Header& header, ConstBytes bytes) {
  OfiChannel& channel = *link.channels[header.prefix.channel];
  CCOM_TRY(channel.take_credit(header));
  if (bytes.size() != sizeof(TargetPlace)) {
    return error(Code::TransportError, "rank %d sent an invalid message", link.rank).with_peers({link.rank});
  }
  return board_.stopped ? Status::ok() : channel.take_target(header, read_as<TargetPlace>(bytes));
}

Status OfiTransport::on_written(uint32_t immediate) {
  if (board_.stopped || !board_.failed.is_ok()) return Status::ok();
  const std::optional<WriteTickets::Match> match = board_.tickets.on_written(immediate);
  if (!match) {
    ++dropped_;
    return Status::ok();
  }
  return match->channel != nullptr ? on_payload(*match) : Status::ok();
}

// Header and payload have both arrived.
Status OfiTransport::on_payload(const WriteTickets::Match& match) {
  OfiChannel& channel = *match.channel;
  Link& link = channel.link();
  const Header& header = match.header;
  --link.awaited;
  ++link.arrived;
  CCOM_TRY(acknowledge_goodbye(link));
  const ConstBytes payload = channel.written(header, match.is_slot);
  if (payload.size() != header.payload_bytes) {
    return error(Code::TransportError, "rank %d sent an invalid write", link.rank).with_peers({link.rank});
  }
  if (config_.checksum && crc32c(payload, 0) != header.payload_checksum) return damaged(link, "write");
  return channel.accept({header, payload, nullptr, !match.is_slot}, pool_);
}

}  // namespace ccom::ofi
