// SPDX-License-Identifier: Apache-2.0
//
// Headers on the wire, little-endian. All have one size, because the receive is posted before it is known which one
// arrives.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transports/transport.h"

namespace ccom {

static_assert(std::endian::native == std::endian::little);

enum class HeaderKind : uint16_t {
  Eager = 1,          // the whole message, payload included
  RequestToSend = 2,  // announces message `id`
  ClearToSend = 3,    // a receive is posted for announced message `id`: send its payload
};

// Messages up to this size are eager: their payload is inside the header.
inline constexpr size_t kInlineBytes = 992;

struct MessageHeader {
  HeaderKind kind{};
  uint16_t call_type = 0;     // MessageRequest::call_type
  uint32_t acknowledged = 0;  // eager messages from the peer received so far, modulo 2^32
  int64_t tag = 0;
  uint64_t bytes = 0;
  uint64_t id = 0;
  std::array<std::byte, kInlineBytes> payload{};
};
static_assert(sizeof(MessageHeader) == 1024 && std::is_trivially_copyable_v<MessageHeader>);

// Flow control: eager messages to one peer that it has not acknowledged, at most. Bounds the peer's memory.
inline constexpr uint32_t kEagerCredits = 64;

inline constexpr Envelope kHeaderEnvelope{{1, 0, 0, 0, 0}};
inline Envelope payload_envelope(uint64_t id, int64_t tag) { return {{2, id, static_cast<uint64_t>(tag), 0, 0}}; }

}  // namespace ccom
