// SPDX-License-Identifier: Apache-2.0
#include "liveness/message.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/time.h"
#include "control/error_codec.h"

namespace ccom {

namespace {

// The board can keep them (note_lost).
bool names_ranks(const Status& loss) {
  return !loss.peers().empty() &&
         std::ranges::all_of(loss.peers(), [](Rank rank) { return rank >= 0 && rank < INT32_MAX; });
}

}  // namespace

std::vector<std::byte> encode_message(const ControlMessage& message) {
  switch (message.type) {
    case MessageType::Heartbeat:
    case MessageType::End: break;
    case MessageType::Error:
    case MessageType::Loss: return encode_error(message.error);
    case MessageType::StragglerReport: return encode_report(message.stragglers, monotonic_ns());
    case MessageType::Departure: return encode_departure(message.departure);
    case MessageType::Agreement: return encode_agreement(message.agreement);
    case MessageType::Goodbye: {
      const auto rounds = std::as_bytes(std::span(&message.rounds, 1));
      return {rounds.begin(), rounds.end()};
    }
  }
  return {};
}

std::optional<ControlMessage> decode_message(uint8_t type, ConstBytes payload) {
  switch (static_cast<MessageType>(type)) {
    case MessageType::Heartbeat:
    case MessageType::End:
      if (!payload.empty()) return std::nullopt;
      return ControlMessage{static_cast<MessageType>(type)};
    case MessageType::Goodbye: {
      ControlMessage goodbye{MessageType::Goodbye};
      if (payload.size() != sizeof goodbye.rounds) return std::nullopt;
      std::memcpy(&goodbye.rounds, payload.data(), sizeof goodbye.rounds);
      return goodbye;
    }
    case MessageType::Error:
    case MessageType::Loss: {
      auto error = decode_error(payload);
      if (!error || (static_cast<MessageType>(type) == MessageType::Loss && !names_ranks(*error))) return std::nullopt;
      return ControlMessage{static_cast<MessageType>(type), *std::move(error)};
    }
    case MessageType::StragglerReport: {
      auto report = decode_report(payload, monotonic_ns());
      if (!report) return std::nullopt;
      return ControlMessage{MessageType::StragglerReport, {}, *std::move(report)};
    }
    case MessageType::Agreement: {
      auto agreement = decode_agreement(payload);
      if (!agreement) return std::nullopt;
      return ControlMessage{MessageType::Agreement, {}, {}, {}, *std::move(agreement)};
    }
    case MessageType::Departure: {
      const auto departure = decode_departure(payload);
      if (!departure) return std::nullopt;
      return ControlMessage{MessageType::Departure, {}, {}, *departure};
    }
  }
  return std::nullopt;
}

}  // namespace ccom
