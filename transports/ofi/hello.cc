// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/hello.h"

#include <cstddef>

namespace ccom::ofi {
namespace {

ConstBytes sealed_part(const Greeting& greeting) {
  return std::as_bytes(std::span(&greeting, 1)).first(offsetof(Greeting, mac));
}

}  // namespace

Greeter::Greeter(const Secret& key, uint64_t communicator, Rank self)
    : greeting_key_(key.derive("ccom ofi greeting")),
      session_key_(key.derive("ccom ofi session")),
      communicator_(communicator),
      self_(self) {}

void Greeter::seal(Greeting& greeting) const { greeting.mac = hmac_sha256(greeting_key_, sealed_part(greeting)); }

Greeting Greeter::hello(Rank to, const Nonce& nonce) const {
  Greeting greeting;
  greeting.prefix = {.kind = Kind::Hello, .communicator = communicator_, .from = self_, .to = to};
  greeting.nonce = nonce;
  seal(greeting);
  return greeting;
}

Greeting Greeter::welcome(Rank to, const Nonce& nonce, const Nonce& echo, const Greeting& terms) const {
  Greeting greeting = terms;
  greeting.prefix = {.kind = Kind::Welcome, .communicator = communicator_, .from = self_, .to = to};
  greeting.nonce = nonce;
  greeting.echo = echo;
  seal(greeting);
  return greeting;
}

bool Greeter::is_genuine(const Greeting& greeting) const {
  const Prefix& prefix = greeting.prefix;
  if (prefix.magic != kMagic || prefix.version != kWireVersion) return false;
  if (prefix.communicator != communicator_ || prefix.to != self_ || prefix.from == self_) return false;
  const Mac mac = hmac_sha256(greeting_key_, sealed_part(greeting));
  return equal_in_constant_time(std::as_bytes(std::span(mac)), std::as_bytes(std::span(greeting.mac)));
}

uint64_t Greeter::session(Rank from, const Nonce& from_nonce, Rank to, const Nonce& to_nonce) const {
  struct {
    uint64_t communicator;
    Rank from, to;
    Nonce from_nonce, to_nonce;
  } const text{communicator_, from, to, from_nonce, to_nonce};
  static_assert(sizeof(text) == 48);
  const Mac mac = hmac_sha256(session_key_, std::as_bytes(std::span(&text, 1)));
  return read_as<uint64_t>(std::as_bytes(std::span(mac)));
}

Nonce draw_nonce() {
  Nonce nonce;
  fill_random(std::as_writable_bytes(std::span(nonce)));
  return nonce;
}

}  // namespace ccom::ofi
