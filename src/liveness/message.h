// SPDX-License-Identifier: Apache-2.0
//
// Messages over control connections. Little-endian; every length is checked against a limit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"
#include "liveness/agreement_message.h"
#include "liveness/departure.h"
#include "liveness/straggler_poll.h"

namespace ccom {

enum class MessageType : uint8_t {
  Heartbeat = 1,
  Error = 2,
  Goodbye = 3,
  StragglerReport = 4,
  Departure = 5,
  Loss = 6,
  Agreement = 7,
  End = 8  // of the stream, without a goodbye; never received as a message
};

struct ControlMessage {
  MessageType type = MessageType::Heartbeat;
  Status error{};                // for Error; for Loss, one that is not yet the communicator's
  StragglerReport stragglers{};  // for StragglerReport: the slowest ranks on the sender's side
  Departure departure{};         // for Departure: the first that the sender knows
  AgreementMessage agreement{};  // for Agreement
  uint64_t rounds = 0;           // for Goodbye: of agreement, that the sender has begun
};

// The payload of the message's frame.
std::vector<std::byte> encode_message(const ControlMessage& message);
// Empty unless the bytes are exactly one well-formed payload of that type.
std::optional<ControlMessage> decode_message(uint8_t type, ConstBytes payload);

}  // namespace ccom
