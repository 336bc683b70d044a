// SPDX-License-Identifier: Apache-2.0
//
// What ranks that forward send to each other, little-endian.
#pragma once

#include "messages/wire.h"

namespace ccom {

// In front of every piece. All have one size, because the receive is posted before it is known what comes.
struct RelayRecord {
  int32_t source = -1;
  int32_t destination = -1;
  uint32_t index = 0;         // of the channel
  uint32_t body_bytes = 0;    // that follow; 0: the whole message is here
  uint64_t offset_bytes = 0;  // of the body in the message
  uint64_t message_bytes = 0;
  Envelope envelope;
  std::array<std::byte, sizeof(MessageHeader)> content{};
  static constexpr size_t kContentBytes = sizeof(MessageHeader);
};
static_assert(sizeof(RelayRecord) == 72 + sizeof(MessageHeader) && std::is_trivially_copyable_v<RelayRecord>);

inline constexpr Envelope kRecordEnvelope{{3, 0, 0, 0, 0}};
inline constexpr Envelope kBodyEnvelope{{4, 0, 0, 0, 0}};

}  // namespace ccom
