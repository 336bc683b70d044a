// SPDX-License-Identifier: Apache-2.0
#include "liveness/handshake.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/assert.h"

namespace ccom {

namespace {

constexpr std::string_view kMagic = "ccomctl1";  // changes with the protocol
constexpr size_t kHelloBytes = 20;
constexpr size_t kChallengeBytes = 8 + 32;
constexpr size_t kProofBytes = 8 + kHelloBytes + 32 + 32;
constexpr size_t kWelcomeBytes = 32;
static_assert(kProofBytes == Handshake::kMaxBytes);

ConstBytes raw(std::string_view text) { return std::as_bytes(std::span(text)); }

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  std::array<std::byte, kHelloBytes> bytes{};
  const auto put = [&bytes](size_t at, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
  };
  put(0, hello.communicator, 8);
  put(8, static_cast<uint32_t>(hello.tree), 4);
  put(12, static_cast<uint32_t>(hello.from_host), 4);
  put(16, static_cast<uint32_t>(hello.to_host), 4);
  return bytes;
}

Hello decode(ConstBytes bytes) {
  const auto get = [bytes](size_t at, size_t size) {
    uint64_t value = 0;
    for (size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
    return value;
  };
  return {.communicator = get(0, 8),
          .tree = static_cast<int32_t>(get(8, 4)),
          .from_host = static_cast<int32_t>(get(12, 4)),
          .to_host = static_cast<int32_t>(get(16, 4))};
}

bool has_magic(ConstBytes bytes) { return std::ranges::equal(bytes.first(kMagic.size()), raw(kMagic)); }

}  // namespace

Handshake Handshake::connector(const Secret& key, const Hello& hello) {
  Handshake side(key, true);
  side.hello_ = hello;
  side.wants_ = kChallengeBytes;
  return side;
}

Handshake Handshake::acceptor(const Secret& key) {
  Handshake side(key, false);
  fill_random(side.acceptor_nonce_);
  side.set_output({raw(kMagic), side.acceptor_nonce_});
  side.wants_ = kProofBytes;
  return side;
}

void Handshake::feed(ConstBytes bytes) {
  CCOM_ASSERT(state_ == State::Running && bytes.size() == wants_);
  output_bytes_ = 0;
  if (!connects_) {
    check_proof(bytes);
  } else if (!proof_sent_) {
    answer_challenge(bytes);
  } else {
    check_welcome(bytes);
  }
}

void Handshake::answer_challenge(ConstBytes bytes) {
  if (!has_magic(bytes)) {
    state_ = State::Refused;
    return;
  }
  std::ranges::copy(bytes.subspan(kMagic.size(), 32), acceptor_nonce_.begin());
  fill_random(connector_nonce_);
  const Mac proof = mac("proof");
  set_output({raw(kMagic), encode(hello_), connector_nonce_, std::as_bytes(std::span(proof))});
  proof_sent_ = true;
  wants_ = kWelcomeBytes;
}

void Handshake::check_proof(ConstBytes bytes) {
  hello_ = decode(bytes.subspan(kMagic.size(), kHelloBytes));
  std::ranges::copy(bytes.subspan(kMagic.size() + kHelloBytes, 32), connector_nonce_.begin());
  const Mac expected = mac("proof");
  const bool proved = equal_in_constant_time(bytes.last(32), std::as_bytes(std::span(expected)));
  state_ = proved && has_magic(bytes) ? State::Done : State::Refused;
  if (state_ != State::Done) return;
  const Mac welcome = mac("welcome");
  set_output({std::as_bytes(std::span(welcome))});
}

void Handshake::check_welcome(ConstBytes bytes) {
  const Mac expected = mac("welcome");
  const bool proved = equal_in_constant_time(bytes, std::as_bytes(std::span(expected)));
  state_ = proved ? State::Done : State::Refused;
}

Mac Handshake::mac(std::string_view purpose) const {
  std::vector<std::byte> message;
  message.reserve(128);
  const auto hello = encode(hello_);
  for (ConstBytes part : {raw(purpose), ConstBytes(acceptor_nonce_), ConstBytes(hello), ConstBytes(connector_nonce_)})
    message.insert(message.end(), part.begin(), part.end());
  return hmac_sha256(key_, message);
}

LinkKeys Handshake::keys() const {
  const Mac session_mac = mac("session");
  const Secret session(session_mac);
  const Secret up = session.derive("connector to acceptor"), down = session.derive("acceptor to connector");
  return connects_ ? LinkKeys{.send = up, .receive = down} : LinkKeys{.send = down, .receive = up};
}

void Handshake::set_output(std::initializer_list<ConstBytes> parts) {
  output_bytes_ = 0;
  for (ConstBytes part : parts) {
    CCOM_ASSERT(output_bytes_ + part.size() <= output_.size());
    std::ranges::copy(part, output_.begin() + static_cast<std::ptrdiff_t>(output_bytes_));
    output_bytes_ += part.size();
  }
}

}  // namespace ccom
