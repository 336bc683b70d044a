// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/hello.h"

#include <cstddef>
#include <vector>

namespace ccom::tcp {
namespace {

Mac sign(const Hello& hello, const Secret& key, Transcript before) {
  const ConstBytes past = std::as_bytes(before);
  const ConstBytes now = std::as_bytes(std::span(&hello, 1)).first(offsetof(Hello, mac));
  std::vector<std::byte> text(past.begin(), past.end());
  text.insert(text.end(), now.begin(), now.end());
  return hmac_sha256(key, text);
}

Status differ(const char* what, int mine, const Hello& theirs, int others) {
  return error(Code::ConfigError, "%s: %d here, %d at rank %d", what, mine, others, theirs.from)
      .with_peers({theirs.from})
      .with_cure("set the same CCOM_* variables and arguments on every rank");
}

}  // namespace

Hello make_hello(const Identity& self, LineId id, int channels, HelloKind kind, Transcript before) {
  Hello hello{.kind = kind,
              .crc = self.crc,
              .communicator = self.communicator,
              .from = self.rank,
              .to = id.peer,
              .channel = static_cast<uint16_t>(id.channel),
              .stream = static_cast<uint16_t>(id.stream),
              .channels = static_cast<uint16_t>(channels),
              .streams = static_cast<uint16_t>(self.streams)};
  fill_random(std::as_writable_bytes(std::span(hello.nonce)));
  hello.mac = sign(hello, self.key, before);
  return hello;
}

bool is_genuine(const Hello& hello, HelloKind kind, const Identity& self, Transcript before) {
  const Hello model;
  if (hello.magic != model.magic || hello.version != model.version || hello.kind != kind) return false;
  if (hello.communicator != self.communicator || hello.to != self.rank) return false;
  const Mac expected = sign(hello, self.key, before);
  return equal_in_constant_time(std::as_bytes(std::span(expected)), std::as_bytes(std::span(hello.mac)));
}

Status compare_settings(const Hello& mine, const Hello& theirs) {
  if (mine.crc != theirs.crc) return differ("checksums of payload (CCOM_CRC)", mine.crc, theirs, theirs.crc);
  if (mine.streams != theirs.streams) {
    return differ("connections per channel (CCOM_TCP_STREAMS)", mine.streams, theirs, theirs.streams);
  }
  if (mine.channels != theirs.channels) return differ("channels of the pair", mine.channels, theirs, theirs.channels);
  return Status::ok();
}

}  // namespace ccom::tcp
