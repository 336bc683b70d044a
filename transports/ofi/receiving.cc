// SPDX-License-Identifier: Apache-2.0
//
// The way in: who sent it, is it genuine, is it whole, what is it. In this order; see wire.h.
#include <rdma/fi_errno.h>

#include <algorithm>

#include "base/log.h"
#include "transports/ofi/checksum.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

Status OfiTransport::on_received(ReceiveOperation& operation, const Completion& completion) {
  // FI_ECANCELED is an error too: nothing is cancelled while anybody still reads completions.
  // Nobody of ours sends more than fits.
  if (completion.error == FI_ETRUNC || completion.error == FI_EMSGSIZE) return drop(operation);
  // Whose connection it was is not said; it may be a stranger's. If a peer has died, a send to it or liveness will
  // tell.
  if (blames_peer(completion.error)) {
    log(LogLevel::Warn, "ofi: rank %d: a connection broke: %s (%s)", config_.rank, fi_strerror(completion.error),
        completion.reason.c_str());
    return drop(operation);
  }
  if (completion.error != 0) return fabric_error(completion.error, "receive", completion.reason);
  operation.received_bytes = completion.received_bytes;
  const ConstBytes bytes = operation.bytes();
  if (bytes.size() < sizeof(Prefix) || bytes.size() > operation.size_bytes) return drop(operation);
  const auto prefix = read_as<Prefix>(bytes);
  const bool is_ours = prefix.magic == kMagic && prefix.version == kWireVersion &&
                       prefix.communicator == config_.communicator && prefix.to == config_.rank;
  Link* link = is_ours ? find_link(prefix.from) : nullptr;
  if (link == nullptr) return drop(operation);
  if (prefix.kind != Kind::Hello && prefix.kind != Kind::Welcome) return on_message(*link, operation);
  Status status = on_greeting(*link, bytes);
  if (Status released = pool_.release(operation); status.is_ok()) status = std::move(released);
  return status;
}

Status OfiTransport::drop(ReceiveOperation& operation) {
  ++dropped_;
  return pool_.release(operation);
}

Status OfiTransport::on_message(Link& link, ReceiveOperation& operation) {
  if (operation.received_bytes < sizeof(Header)) return drop(operation);
  const auto header = read_as<Header>(operation.bytes());
  if (link.session_in == 0 || header.session != link.session_in) return drop(operation);
  if (header.prefix.checksummed != 0 && checksum_of(operation.data, operation.received_bytes) != header.checksum) {
    return error(Code::TransportError, "a message from rank %d was damaged on its way (CRC32C)", link.rank)
        .with_peers({link.rank});
  }
  if (header.payload_bytes != operation.received_bytes - sizeof(Header) || header.arrived > link.sent ||
      header.prefix.channel >= link.channels.size()) {
    return error(Code::TransportError, "rank %d sent a message that makes no sense", link.rank).with_peers({link.rank});
  }
  link.acknowledged = std::max(link.acknowledged, header.arrived);
  switch (header.prefix.kind) {
    case Kind::Data: return on_data(link, header, operation);
    case Kind::Grant: CCOM_TRY(link.channels[header.prefix.channel]->take_credit(header.consumed)); break;
    case Kind::Goodbye: CCOM_TRY(on_goodbye(link, header.message)); break;
    case Kind::Acknowledge: break;
    default: return drop(operation);
  }
  return pool_.release(operation);
}

Status OfiTransport::on_data(Link& link, const Header& header, ReceiveOperation& operation) {
  OfiChannel& channel = *link.channels[header.prefix.channel];
  ++link.arrived;
  CCOM_TRY(acknowledge_farewell(link));
  CCOM_TRY(channel.take_credit(header.consumed));
  if (board_.stopped || !board_.failed.is_ok()) return pool_.release(operation);
  return channel.accept(operation, pool_);
}

}  // namespace ccom::ofi
