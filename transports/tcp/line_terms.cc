// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/line_terms.h"

namespace ccom::tcp {
namespace {

Status differ(const char* what, uint32_t mine, uint32_t theirs, Rank peer) {
  return error(Code::ConfigError, "%s: %u here, %u at rank %d", what, mine, theirs, peer)
      .with_peers({peer})
      .with_cure("set the same CCOM_* variables and arguments on every rank");
}

}  // namespace

HandshakeIdentity handshake_identity(const Identity& self) {
  return {HandshakeProtocol::Tcp, self.key, self.communicator, self.rank};
}

LineTerms terms_of(const Identity& self, const LineId& id, int channels) {
  return {.channel = static_cast<uint16_t>(id.channel),
          .stream = static_cast<uint16_t>(id.stream),
          .channels = static_cast<uint16_t>(channels),
          .streams = static_cast<uint16_t>(self.streams),
          .crc = self.crc};
}

Status compare_settings(const LineTerms& mine, const LineTerms& theirs, Rank peer) {
  if (mine.crc != theirs.crc) return differ("checksums of payload (CCOM_CRC)", mine.crc, theirs.crc, peer);
  if (mine.streams != theirs.streams) {
    return differ("connections per channel (CCOM_TCP_STREAMS)", mine.streams, theirs.streams, peer);
  }
  if (mine.channels != theirs.channels) return differ("channels of the pair", mine.channels, theirs.channels, peer);
  return Status::ok();
}

}  // namespace ccom::tcp
