// SPDX-License-Identifier: Apache-2.0
//
// What leaders tell each other, and the one encoding of an error: the same bytes lie on the Board and travel between
// hosts, so every survivor reads the same text. Little-endian, every length checked against a limit of ours.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "base/types.h"
#include "liveness/straggler_poll.h"

namespace ccom {

enum class MessageType : uint8_t { Heartbeat = 1, Error = 2, Goodbye = 3, StragglerReport = 4 };

struct ControlMessage {
  MessageType type = MessageType::Heartbeat;
  Status error{};   // of an Error
  StragglerReport behind{};  // of a StragglerReport: who is, on the sender's side
};

// Longer texts and lists are cut to these.
inline constexpr size_t kMaxErrorPeers = 256;
inline constexpr size_t kMaxErrorHost = 64;
inline constexpr size_t kMaxErrorText = 1024;
inline constexpr size_t kMaxErrorCure = 256;
inline constexpr size_t kMaxErrorBytes = 6 * 4 + 4 * kMaxErrorPeers + kMaxErrorHost + kMaxErrorText + kMaxErrorCure;

// At most kMaxErrorBytes. `error` is not Ok.
std::vector<std::byte> encode_error(const Status& error);
// Nothing unless the bytes are exactly one well-formed error.
std::optional<Status> decode_error(ConstBytes bytes);

}  // namespace ccom
