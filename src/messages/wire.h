// SPDX-License-Identifier: Apache-2.0
//
// What travels on the channel of headers, in the byte order of the machines we run on. All headers have one size,
// because a receive is posted before it is known what comes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transports/transport.h"

namespace ccom {

static_assert(std::endian::native == std::endian::little);

enum class HeaderKind : uint32_t {
  Eager = 1,     // the message, payload and all
  Announce = 2,  // there is a message; tell me when you have room for it
  Clear = 3,     // a receive is posted for the message that you announced as `id`: send its payload
};

// Payload of messages up to this size travels inside the header.
inline constexpr size_t kInlineBytes = 992;

struct MessageHeader {
  HeaderKind kind{};
  uint32_t acknowledged = 0;  // eager messages of the other side that were received here, ever, modulo 2^32
  int64_t tag = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;
  std::array<std::byte, kInlineBytes> payload{};
};
static_assert(sizeof(MessageHeader) == 1024 && std::is_trivially_copyable_v<MessageHeader>);

// Eager messages to one peer that it has not received yet, at most: bounds what it must keep.
inline constexpr uint32_t kEagerCredits = 64;

inline constexpr Envelope kHeaderEnvelope{{1, 0, 0, 0, 0}};
inline Envelope payload_envelope(uint64_t id, int64_t tag) { return {{2, id, static_cast<uint64_t>(tag), 0, 0}}; }

}  // namespace ccom
