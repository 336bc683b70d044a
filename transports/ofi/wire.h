// SPDX-License-Identifier: Apache-2.0
//
// What travels: every message is one of these, written in the byte order of the machines we run on (little endian).
//
// Nothing in it is believed until it has proved itself: a Hello or Welcome by its HMAC, everything else by the session
// word that both sides derived from the secret and the nonces of their handshake. Then the checksum, then the fields,
// each compared with what is expected here.
#pragma once

#include <bit>
#include <cstring>

#include "base/secret.h"
#include "transports/transport.h"

namespace ccom::ofi {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kMagic = 0x4d4f4343;  // "CCOM"
inline constexpr uint8_t kWireVersion = 1;

enum class Kind : uint8_t {
  Hello = 1,        // here is my nonce; answer with Welcome
  Welcome = 2,      // the proof of my secret over your nonce, and what I can take
  Data = 3,         // one fragment of a message
  Grant = 4,        // fragments of a channel were taken out of my buffers
  Goodbye = 5,      // I am leaving; tell me when all I have sent is with you
  Acknowledge = 6,  // so many fragments of yours have reached me
};

struct Prefix {
  uint32_t magic = kMagic;
  uint8_t version = kWireVersion;
  Kind kind{};
  uint8_t channel = 0;
  uint8_t checksummed = 0;
  uint64_t communicator = 0;
  Rank from = -1;
  Rank to = -1;
};
static_assert(sizeof(Prefix) == 24);

using Nonce = std::array<uint8_t, 16>;

// Hello and Welcome. A Hello has no echo and no terms.
struct Greeting {
  Prefix prefix;
  Nonce nonce{};                // of the sender
  Nonce echo{};                 // the nonce that is answered
  uint32_t channels = 0;        // terms: between the two
  uint32_t credits = 0;         // terms: fragments per channel that the sender of this has room for
  uint32_t fragment_bytes = 0;  // terms: the largest payload of a fragment it takes; a multiple of 16
  uint32_t unused = 0;
  Mac mac{};  // over everything before it
};
static_assert(sizeof(Greeting) == 104);

// In front of everything else. Payload follows without a gap.
struct Header {
  Prefix prefix;
  uint64_t session = 0;
  uint64_t consumed = 0;  // fragments of this channel that have left the sender's receive buffers, ever
  uint64_t arrived = 0;   // fragments of all channels that have reached the sender of this header, ever
  uint64_t message = 0;   // Data: position in the channel, from 0. Goodbye: fragments sent to this peer, ever
  uint64_t message_bytes = 0;
  uint64_t offset_bytes = 0;
  Envelope envelope;
  uint32_t payload_bytes = 0;
  uint32_t checksum = 0;  // CRC32C over header (this field zero) and payload
  uint64_t unused = 0;
};
static_assert(sizeof(Header) == 128 && std::is_trivially_copyable_v<Header>);

template <typename T>
T read_as(ConstBytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Fragments of a message: the payload is cut every `fragment_bytes`; an empty message is one empty fragment.
constexpr uint64_t count_fragments(uint64_t message_bytes, uint64_t fragment_bytes) {
  return message_bytes == 0 ? 1 : (message_bytes - 1) / fragment_bytes + 1;
}

}  // namespace ccom::ofi
