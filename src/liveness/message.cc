// SPDX-License-Identifier: Apache-2.0
#include "liveness/message.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string_view>

#include "base/time.h"

namespace ccom {

namespace {

void put_u32(std::vector<std::byte>& bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift));
}

// Never splits a UTF-8 character.
std::string_view cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

void put_text(std::vector<std::byte>& bytes, std::string_view text, size_t limit) {
  text = cut(text, limit);
  put_u32(bytes, static_cast<uint32_t>(text.size()));
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// Consumes values from the front; after the first short or oversized one all further reads fail.
class Reader {
 public:
  explicit Reader(ConstBytes bytes) : rest_(bytes) {}

  uint32_t u32() {
    if (rest_.size() < 4) return fail();
    uint32_t value = 0;
    for (int i = 3; i >= 0; --i) value = value << 8 | std::to_integer<uint32_t>(rest_[static_cast<size_t>(i)]);
    rest_ = rest_.subspan(4);
    return value;
  }
  // A length that is at most `limit` and, in units of unit_bytes, at most the remaining input.
  size_t length(size_t limit, size_t unit_bytes) {
    const size_t value = u32();
    return value <= limit && value * unit_bytes <= rest_.size() ? value : fail();
  }
  std::string text(size_t limit) {
    const size_t size = length(limit, 1);
    std::string value(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  bool complete() const { return good_ && rest_.empty(); }

 private:
  uint32_t fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }
  ConstBytes rest_;
  bool good_ = true;
};

bool is_error_code(uint32_t code) {
  const auto last = static_cast<uint32_t>(Code::OperatorError), first_own = static_cast<uint32_t>(Code::Mismatch);
  return (code >= static_cast<uint32_t>(Code::SystemError) && code <= static_cast<uint32_t>(Code::Timeout)) ||
         (code >= first_own && code <= last);
}

// The board can keep them (note_lost).
bool names_ranks(const Status& loss) {
  return !loss.peers().empty() &&
         std::ranges::all_of(loss.peers(), [](Rank rank) { return rank >= 0 && rank < INT32_MAX; });
}

}  // namespace

std::vector<std::byte> encode_error(const Status& error) {
  CCOM_ASSERT(!error.is_ok());
  std::vector<std::byte> bytes;
  bytes.reserve(kMaxErrorBytes);
  put_u32(bytes, static_cast<uint32_t>(error.code()));
  put_u32(bytes, static_cast<uint32_t>(error.key()));
  put_u32(bytes, static_cast<uint32_t>(error.sys_errno()));
  const size_t peers = std::min(error.peers().size(), kMaxErrorPeers);
  put_u32(bytes, static_cast<uint32_t>(peers));
  for (size_t i = 0; i < peers; ++i) put_u32(bytes, static_cast<uint32_t>(error.peers()[i]));
  put_text(bytes, error.host(), kMaxErrorHost);
  put_text(bytes, error.message(), kMaxErrorText);
  put_text(bytes, error.cure(), kMaxErrorCure);
  return bytes;
}

std::optional<Status> decode_error(ConstBytes bytes) {
  Reader reader(bytes);
  const uint32_t code = reader.u32();
  const uint32_t key = reader.u32();
  const auto sys_errno = static_cast<int>(reader.u32());
  std::vector<int> peers(reader.length(kMaxErrorPeers, 4));
  for (int& peer : peers) peer = static_cast<int>(reader.u32());
  std::string host = reader.text(kMaxErrorHost);
  std::string text = reader.text(kMaxErrorText);
  std::string cure = reader.text(kMaxErrorCure);
  if (!reader.complete() || !is_error_code(code)) return std::nullopt;
  Status status = Status(key_of(key, static_cast<Code>(code)), std::move(text)).with_peers(std::move(peers));
  return std::move(status).with_host(std::move(host)).with_cure(std::move(cure)).with_errno(sys_errno);
}

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
