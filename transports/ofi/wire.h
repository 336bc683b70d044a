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
inline constexpr uint8_t kWireVersion = 2;

enum class Kind : uint8_t {
  Hello = 1,        // here is my nonce; answer with Welcome
  Welcome = 2,      // the proof of my secret over your nonce, and what I can take
  Data = 3,         // one fragment of a message
  Grant = 4,        // fragments of a channel were taken out of my buffers
  Goodbye = 5,      // I am leaving; tell me when all I have sent is with you
  Acknowledge = 6,  // so many fragments of yours have reached me
  Target = 7,       // write that message of yours here
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

inline constexpr size_t kMaxRails = 4;

// What a peer may write into: `slots` pieces of `slot_bytes` for each channel, one channel after the other.
struct SlotTerms {
  uint64_t address = 0;  // as the provider addresses memory; of the first channel's first slot
  std::array<uint64_t, kMaxRails> keys{};
  uint16_t rails = 0;   // 0: no writes
  uint16_t window = 0;  // writes per channel that may be under way
  uint32_t slots = 0;
  uint32_t slot_bytes = 0;    // a multiple of 128
  uint32_t first_ticket = 0;  // of the first channel, see landings.h; the next channel has the next
};

// Hello and Welcome. A Hello has no echo and no terms.
struct Greeting {
  Prefix prefix;
  Nonce nonce{};                // of the sender
  Nonce echo{};                 // the nonce that is answered
  uint32_t channels = 0;        // terms: between the two
  uint32_t credits = 0;         // terms: fragments per channel that the sender of this has room for
  uint32_t fragment_bytes = 0;  // terms: the largest payload of a fragment it takes; a multiple of 16
  uint32_t unused = 0;
  SlotTerms slots;  // terms
  Mac mac{};        // over everything before it
};
static_assert(sizeof(Greeting) == 160);

inline constexpr uint32_t kInline = ~uint32_t{0};

// In front of everything else. The payload follows without a gap, unless it is written elsewhere: see landing.
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
  uint32_t checksum = 0;          // CRC32C over this header (this field zero) and what follows it
  uint32_t payload_checksum = 0;  // CRC32C over a payload that is written elsewhere
  uint32_t landing = kInline;     // the immediate that comes with that write, or kInline
  uint32_t slots_freed = 0;       // slots of this channel that its receiver is done with, ever (mod 2^32)
  std::array<uint32_t, 3> unused{};
};
static_assert(sizeof(Header) == 144 && std::is_trivially_copyable_v<Header>);

// Follows the header of a Target: where that message of the receiver of this may be written, whole.
struct TargetPlace {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys{};
  uint32_t ticket = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(TargetPlace) == 48);

template <typename T>
T read_as(ConstBytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace ccom::ofi
