// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/time.h"

namespace ccom {

namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kMacBytes = 16;

void put_u64(std::vector<std::byte>& bytes, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

uint32_t payload_size(ConstBytes header) {
  uint32_t value = 0;
  for (size_t i = 8; i-- > 4;) value = value << 8 | std::to_integer<uint32_t>(header[i]);
  return value;
}

// The board can keep them (note_lost).
bool names_ranks(const Status& loss) {
  return !loss.peers().empty() &&
         std::ranges::all_of(loss.peers(), [](Rank rank) { return rank >= 0 && rank < INT32_MAX; });
}

std::optional<ControlMessage> to_message(uint8_t type, ConstBytes payload) {
  switch (static_cast<MessageType>(type)) {
    case MessageType::Heartbeat:
      if (!payload.empty()) return std::nullopt;
      return ControlMessage{MessageType::Heartbeat};
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

}  // namespace

Mac ControlLink::frame_mac(const Secret& key, uint64_t counter, ConstBytes frame) const {
  std::vector<std::byte> message;
  message.reserve(8 + frame.size());
  put_u64(message, counter, 8);
  message.insert(message.end(), frame.begin(), frame.end());
  return hmac_sha256(key, message);
}

void ControlLink::end(std::string reason) {
  if (!ended_) ended_ = std::move(reason);
}

void ControlLink::send(const ControlMessage& message) {
  if (ended_ || (message.type == MessageType::Heartbeat && has_unsent())) return;
  std::vector<std::byte> payload;
  if (message.type == MessageType::Error || message.type == MessageType::Loss) payload = encode_error(message.error);
  if (message.type == MessageType::StragglerReport) payload = encode_report(message.stragglers, monotonic_ns());
  if (message.type == MessageType::Departure) payload = encode_departure(message.departure);
  if (message.type == MessageType::Agreement) payload = encode_agreement(message.agreement);
  if (message.type == MessageType::Goodbye) put_u64(payload, message.rounds, sizeof message.rounds);
  std::vector<std::byte> frame{static_cast<std::byte>(message.type), {}, {}, {}};
  put_u64(frame, payload.size(), 4);
  frame.insert(frame.end(), payload.begin(), payload.end());
  const Mac mac = frame_mac(keys_.send, sent_++, frame);
  const auto code = std::as_bytes(std::span(mac)).first(kMacBytes);
  frame.insert(frame.end(), code.begin(), code.end());
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
  flush();
}

// A failure here is reported by receive(), after everything the peer has sent.
void ControlLink::flush() {
  while (!unsent_.empty()) {
    const ssize_t size = socket_.send(unsent_);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) {
      unsent_.clear();
      readable.now = true;
      return;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + size);
  }
}

void ControlLink::receive(std::vector<ControlMessage>& messages) {
  readable.now = false;
  std::byte piece[4096];
  while (!ended_) {
    const ssize_t size = socket_.receive(piece);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) is_closed_by_peer_ = size == 0 || errno == ECONNRESET || errno == EPIPE;
    if (size < 0) return end(std::strerror(errno));
    if (size == 0) return end("closed by the peer");
    unparsed_.insert(unparsed_.end(), piece, piece + size);
    const size_t used = parse(messages);
    unparsed_.erase(unparsed_.begin(), unparsed_.begin() + static_cast<std::ptrdiff_t>(used));
  }
}

// Returns the size of the complete frames.
size_t ControlLink::parse(std::vector<ControlMessage>& messages) {
  size_t used = 0;
  while (!ended_ && unparsed_.size() - used >= kHeaderBytes) {
    const ConstBytes rest = ConstBytes(unparsed_).subspan(used);
    const size_t size = payload_size(rest);
    if (size > kMostFrameBytes) {
      end("received an oversized frame");
      break;
    }
    const size_t frame_bytes = kHeaderBytes + size;
    if (rest.size() < frame_bytes + kMacBytes) break;
    const Mac expected = frame_mac(keys_.receive, received_++, rest.first(frame_bytes));
    const auto code = std::as_bytes(std::span(expected)).first(kMacBytes);
    const bool genuine = equal_in_constant_time(rest.subspan(frame_bytes, kMacBytes), code);
    auto message =
        genuine ? to_message(std::to_integer<uint8_t>(rest[0]), rest.subspan(kHeaderBytes, size)) : std::nullopt;
    if (!message) {
      end("received a frame with a wrong authentication code");
      break;
    }
    messages.push_back(*std::move(message));
    used += frame_bytes + kMacBytes;
  }
  return used;
}

// Closing a socket with unread data sends a reset, which may destroy data in flight; so drain it first.
void ControlLink::finish() {
  flush();
  std::vector<ControlMessage> ignored;
  if (!ended_) receive(ignored);
  ::shutdown(fd(), SHUT_WR);
}

}  // namespace ccom
