// SPDX-License-Identifier: Apache-2.0
//
// How two ranks prove to each other that they hold the secret, and agree on the words that mark their later messages.
//
//   a -> b  Hello{nonce_a}                       b -> a  Hello{nonce_b}
//   b -> a  Welcome{nonce_b, echo nonce_a}       a -> b  Welcome{nonce_a, echo nonce_b}
//
// Both directions at once; each Welcome is an HMAC-SHA256 over a nonce that its receiver has just drawn, so nothing can
// be replayed. session(a -> b) = HMAC(key, a, b, nonce_a, nonce_b): 64 bits that nobody else can guess, one per
// direction. Pure but for drawing nonces.
#pragma once

#include "transports/ofi/wire.h"

namespace ccom::ofi {

class Greeter {
 public:
  Greeter(const Secret& key, uint64_t communicator, Rank self);

  Greeting hello(Rank to, const Nonce& nonce) const;
  // `terms` lends channels, credits and fragment_bytes.
  Greeting welcome(Rank to, const Nonce& nonce, const Nonce& echo, const Greeting& terms) const;
  // Made by the holder of the secret, for this communicator and this rank.
  bool is_genuine(const Greeting& greeting) const;
  uint64_t session(Rank from, const Nonce& from_nonce, Rank to, const Nonce& to_nonce) const;

 private:
  void seal(Greeting& greeting) const;

  const Secret greeting_key_, session_key_;
  const uint64_t communicator_;
  const Rank self_;
};

Nonce draw_nonce();

}  // namespace ccom::ofi
