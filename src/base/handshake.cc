// SPDX-License-Identifier: Apache-2.0
#include "base/handshake.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "base/assert.h"

namespace ccom {
namespace {

constexpr int32_t kAnybody = -1;

int last_step_of(HandshakeProtocol protocol) {
  switch (protocol) {
    case HandshakeProtocol::Control:
    case HandshakeProtocol::Segment: return static_cast<int>(HandshakeStep::Welcome);
    case HandshakeProtocol::Probe: return static_cast<int>(HandshakeStep::Answer);
    default: return static_cast<int>(HandshakeStep::Confirm);
  }
}

// What the first message's HMAC stands on: the protocol's number, and the channel.
Mac beginning_of(const HandshakeIdentity& identity) {
  std::vector<std::byte> text{static_cast<std::byte>(identity.protocol)};
  const ConstBytes channel = std::as_bytes(std::span(identity.channel));
  text.insert(text.end(), channel.begin(), channel.end());
  return hmac_sha256(identity.key, text);
}

}  // namespace

Handshake::Handshake(const HandshakeIdentity& identity, bool is_connector, int32_t peer)
    : key_(identity.key.derive("ccom handshake")),
      protocol_(identity.protocol),
      communicator_(identity.communicator),
      self_(identity.self),
      peer_(peer),
      is_connector_(is_connector),
      last_step_(last_step_of(identity.protocol)),
      before_(beginning_of(identity)) {}

Handshake Handshake::connector(const HandshakeIdentity& identity, int32_t peer) { return {identity, true, peer}; }

Handshake Handshake::acceptor(const HandshakeIdentity& identity, HelloNumbers* answered) {
  Handshake made(identity, false, kAnybody);
  made.answered_ = answered;
  return made;
}

HandshakeStep Handshake::step() const { return static_cast<HandshakeStep>(std::min(messages_ + 1, last_step_)); }

// Each HMAC covers the one before it, and so all messages.
Mac Handshake::mac_of(const HandshakeMessage& message) const {
  constexpr size_t kSigned = offsetof(HandshakeMessage, mac);
  std::array<std::byte, sizeof(Mac) + 1 + kSigned> text;
  const bool by_connector = messages_ % 2 == 0;
  auto end = std::ranges::copy(std::as_bytes(std::span(before_)), text.begin()).out;
  *end++ = static_cast<std::byte>(by_connector ? 'c' : 'a');
  std::ranges::copy(message.bytes().first(kSigned), end);
  return hmac_sha256(key_, text);
}

HandshakeMessage Handshake::complete(HandshakeMessage message) {
  CCOM_ASSERT(is_our_turn());
  message.protocol = protocol_;
  message.step = step();
  message.communicator = communicator_;
  message.from = self_;
  message.to = peer_;
  fill_random(std::as_writable_bytes(std::span(message.nonce)));
  message.mac = mac_of(message);
  before_ = message.mac;
  if (++messages_ == static_cast<int>(HandshakeStep::Answer)) answer_ = before_;
  return message;
}

bool Handshake::receive(const HandshakeMessage& message) {
  const HandshakeMessage model;
  if (is_complete() || is_our_turn()) return false;
  if (message.magic != model.magic || message.version != model.version || message.protocol != protocol_) return false;
  if (message.step != step() || message.communicator != communicator_ || message.to != self_) return false;
  const bool learns_peer = !is_connector_ && messages_ == 0;
  if (learns_peer ? message.from < 0 || message.from == self_ : message.from != peer_) return false;
  const Mac expected = mac_of(message);
  if (!equal_in_constant_time(std::as_bytes(std::span(expected)), std::as_bytes(std::span(message.mac)))) return false;
  if (learns_peer && answered_ != nullptr && !answered_->insert(std::bit_cast<HelloNumber>(message.nonce)).second)
    return false;
  peer_ = message.from;
  before_ = message.mac;
  if (++messages_ == static_cast<int>(HandshakeStep::Answer)) answer_ = before_;
  return true;
}

bool Handshake::receive(ConstBytes bytes) {
  if (bytes.size() != sizeof(HandshakeMessage)) return false;
  HandshakeMessage message;
  std::ranges::copy(bytes, message.writable_bytes().begin());
  return receive(message);
}

Secret Handshake::session() const {
  CCOM_ASSERT(messages_ >= static_cast<int>(HandshakeStep::Answer));
  std::array<std::byte, sizeof(Mac) + 1> text;
  auto end = std::ranges::copy(std::as_bytes(std::span(answer_)), text.begin()).out;
  *end = std::byte{'s'};
  return Secret(hmac_sha256(key_, text));
}

}  // namespace ccom
