// SPDX-License-Identifier: Apache-2.0
//
// How two sides prove to each other that they hold a key: three messages of one fixed size, two, or four.
//
//   connector   Hello     who and to whom, terms, a fresh nonce
//   acceptor    Answer    likewise
//   connector   Confirm   likewise
//   acceptor    Welcome   only in protocols whose acceptor still chooses among those who have proved themselves
//
// Probes end with the Answer: their acceptor says what it would say again.
//
// Each ends in an HMAC-SHA256 over the protocol, what both sides know of the channel, the sender's role, and all
// messages so far, itself included. After the second message the connector knows that it does not talk to a recording,
// after the third the acceptor does. A message of another protocol, channel, role, position or conversation is refused,
// and a stranger gets no answer. Pure but for drawing nonces; nothing is allocated for somebody unknown.
#pragma once

#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <type_traits>

#include "base/secret.h"
#include "base/types.h"

namespace ccom {

enum class HandshakeProtocol : uint8_t { Control = 1, Tcp = 2, Ofi = 3, Segment = 4, Relay = 5, Probe = 6 };
enum class HandshakeStep : uint8_t { Hello = 1, Answer = 2, Confirm = 3, Welcome = 4 };

inline constexpr uint32_t kHandshakeMagic = 0x4b485343;  // "CSHK"
inline constexpr size_t kHandshakeTermsBytes = 168;

// In the byte order of the machines we run on (little endian), without padding.
struct HandshakeMessage {
  uint32_t magic = kHandshakeMagic;
  uint16_t version = 1;
  HandshakeProtocol protocol{};
  HandshakeStep step{};
  uint64_t communicator = 0;
  int32_t from = -1;  // ranks, or what else the protocol counts its sides by
  int32_t to = -1;
  std::array<std::byte, kHandshakeTermsBytes> terms{};  // what the protocol says beside
  std::array<uint8_t, 32> nonce{};
  Mac mac{};  // over everything before it, and the messages before this one

  template <typename Terms>
  Terms terms_as() const {
    static_assert(sizeof(Terms) <= kHandshakeTermsBytes && std::is_trivially_copyable_v<Terms>);
    Terms result;
    std::memcpy(&result, terms.data(), sizeof(Terms));
    return result;
  }
  ConstBytes bytes() const { return std::as_bytes(std::span(this, 1)); }
  Bytes writable_bytes() { return std::as_writable_bytes(std::span(this, 1)); }
};
static_assert(sizeof(HandshakeMessage) == 256 && std::has_unique_object_representations_v<HandshakeMessage>);

// What no two Hellos of a peer have in common: the nonce, or the random bytes of a ClientHello.
using HelloNumber = std::array<std::byte, 32>;
using HelloNumbers = std::set<HelloNumber>;

struct HandshakeIdentity {
  HandshakeProtocol protocol{};
  const Secret& key;  // read during construction only
  uint64_t communicator = 0;
  int32_t self = -1;
  std::string_view channel{};  // what both sides know of the channel, if anything; likewise
};

// One side of one conversation. A value.
class Handshake {
 public:
  static Handshake connector(const HandshakeIdentity& identity, int32_t peer);
  // Learns from the Hello who its peer is. Refuses those that are in `answered`, and adds the one it receives: who
  // repeats one has recorded it, and would take the place of a peer. It may be shared by acceptors, and must outlive
  // them.
  static Handshake acceptor(const HandshakeIdentity& identity, HelloNumbers* answered = nullptr);

  // Our next message; only if it is our turn.
  HandshakeMessage next() { return complete(HandshakeMessage{}); }
  template <typename Terms>
  HandshakeMessage next(const Terms& terms) {
    static_assert(sizeof(Terms) <= kHandshakeTermsBytes && std::has_unique_object_representations_v<Terms>);
    HandshakeMessage message;
    std::memcpy(message.terms.data(), &terms, sizeof(Terms));
    return complete(message);
  }
  // Whether this is the peer's next message. If not, nothing has happened.
  [[nodiscard]] bool receive(const HandshakeMessage& message);
  [[nodiscard]] bool receive(ConstBytes message);

  bool is_our_turn() const { return !is_complete() && (messages_ % 2 == 0) == is_connector_; }
  bool is_complete() const { return messages_ == last_step_; }
  // The message that is due, or the last one if all are exchanged.
  HandshakeStep step() const;
  int32_t peer() const { return peer_; }
  // A key that only the two sides of this conversation know. From the Answer on.
  Secret session() const;

 private:
  Handshake(const HandshakeIdentity& identity, bool is_connector, int32_t peer);
  HandshakeMessage complete(HandshakeMessage message);
  Mac mac_of(const HandshakeMessage& message) const;

  Secret key_;
  HandshakeProtocol protocol_;
  uint64_t communicator_;
  int32_t self_, peer_;
  bool is_connector_;
  HelloNumbers* answered_ = nullptr;
  int last_step_;
  int messages_ = 0;  // so far
  Mac before_;        // covers them
  Mac answer_{};      // covers the first two
};

}  // namespace ccom
