// SPDX-License-Identifier: Apache-2.0
//
// The wire format: every message has one of these forms, in little-endian byte order.
//
// Nothing is trusted before it is authenticated: a link begins with a handshake (base/handshake.h), and everything
// after it carries the session number that both sides derive from that. Then the checksum and the fields are validated.
#pragma once

#include <bit>
#include <cstring>

#include "base/handshake.h"
#include "transports/ofi/factory.h"
#include "transports/transport.h"

namespace ccom::ofi {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kMagic = 0x4d4f4343;  // "CCOM"
inline constexpr uint8_t kWireVersion = 6;

enum class Kind : uint8_t {
  Handshake = 1,    // a HandshakeMessage, which has no Prefix
  Data = 3,         // a fragment of a message
  Grant = 4,        // fragments of a channel have left the sender's receive buffers
  Goodbye = 5,      // the sender is leaving; to be acknowledged when all its fragments have arrived
  Acknowledge = 6,  // that many fragments have arrived
  Target = 7,       // write that message of yours here
  Stopped = 8,      // as Goodbye, but payloads that are still being written need not arrive any more
  Ask = 9,          // has this write, of which the provider says that it has failed, arrived all the same?
  Answer = 10,      // to that: message_bytes is 1 or 0
};

struct Prefix {
  uint32_t magic = kMagic;
  uint8_t version = kWireVersion;
  Kind kind{};
  uint8_t channel = 0;
  uint8_t unused = 0;
  uint64_t communicator = 0;
  Rank from = -1;
  Rank to = -1;
};
static_assert(sizeof(Prefix) == 24);

// Targets of one channel that are announced and not complete: prepares the next messages without registering all.
inline constexpr size_t kOpenTargets = 4;

// Memory that a peer may write into: `slots` pieces of `slot_bytes` for each channel, channel by channel.
struct SlotTerms {
  uint64_t address = 0;  // in the provider's addressing; of the first channel's first slot
  std::array<uint64_t, kMaxRails> keys{};
  uint16_t rails = 0;   // 0: no writes
  uint16_t window = 0;  // outstanding writes per channel
  uint32_t slots = 0;
  uint32_t slot_bytes = 0;    // a multiple of 128
  uint32_t first_ticket = 0;  // of the first channel, see write_tickets.h; the next channel has the next one
};

// What either side of a link tells the other in their handshake.
struct LinkTerms {
  uint32_t channels = 0;        // between the two ranks
  uint32_t credits = 0;         // fragments per channel that the sender can buffer
  uint32_t fragment_bytes = 0;  // largest payload of a fragment; a multiple of 16
  uint32_t checksummed = 0;     // 1: messages and payloads carry checksums
  SlotTerms slots;
};
static_assert(sizeof(LinkTerms) == 168);

inline constexpr uint32_t kInline = ~uint32_t{0};

// Precedes everything else. The payload follows directly, unless it is written elsewhere: see `immediate`.
struct Header {
  Prefix prefix;
  uint64_t session = 0;
  uint64_t consumed = 0;  // fragments of this channel that have left the sender's receive buffers, in total
  uint64_t arrived = 0;   // fragments of all channels that have reached the sender, in total
  uint64_t message =
      0;  // Data: position in the channel, from 0. Goodbye, Stopped: fragments sent to this peer, in total
  uint64_t message_bytes = 0;
  uint64_t offset_bytes = 0;
  Envelope envelope;
  uint32_t payload_bytes = 0;
  uint32_t checksum = 0;          // CRC32C over this header (this field zero) and what follows it
  uint32_t payload_checksum = 0;  // CRC32C over a payload written elsewhere
  uint32_t immediate = kInline;   // the immediate of that write, or kInline
  uint32_t slots_freed = 0;       // slots of this channel freed by its receiver, in total (mod 2^32)
  uint32_t unused = 0;
  uint64_t session_again = 0;  // tells a damaged message of a peer, which is an error, from a stranger's
};
static_assert(sizeof(Header) == 144 && std::is_trivially_copyable_v<Header>);

// Follows the header of a Target: where that whole message may be written.
struct TargetPlace {
  uint64_t address = 0;
  std::array<uint64_t, kMaxRails> keys{};
  uint32_t ticket = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(TargetPlace) == 144);

template <typename T>
T read_as(ConstBytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

}  // namespace ccom::ofi
