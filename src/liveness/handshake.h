// SPDX-License-Identifier: Apache-2.0
//
// How two leaders prove to each other that they hold the communicator's key, bytes in and bytes out:
//
//   acceptor  -> connector   challenge  magic, fresh nonce A
//   connector -> acceptor    proof      magic, hello, fresh nonce C, HMAC(key, "proof" A hello C)
//   acceptor  -> connector   welcome    HMAC(key, "welcome" A hello C)
//
// A stranger gets 40 random bytes and no answer to anything. Fresh nonces on both sides keep recordings from being of
// use, the two words keep one side's proof from serving as the other's, and both directions get keys of their own from
// HMAC(key, "session" A hello C). Sizes are fixed, so nothing is allocated for somebody unknown.
#pragma once

#include <array>
#include <cstddef>

#include "base/secret.h"
#include "base/types.h"

namespace ccom {

// What a connection is for.
struct Hello {
  uint64_t communicator = 0;
  int32_t tree = 0;
  int32_t from_host = 0;
  int32_t to_host = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};

struct LinkKeys {
  Secret send, receive;
};

// One side. A value of a few hundred bytes. Usage: send output(), then as long as it is Running collect wants() bytes,
// feed() them and send output() again. The acceptor looks at hello() before it sends its last output.
class Handshake {
 public:
  enum class State { Running, Done, Refused };

  static Handshake connector(const Secret& key, const Hello& hello);
  static Handshake acceptor(const Secret& key);

  State state() const { return state_; }
  size_t wants() const { return wants_; }
  void feed(ConstBytes bytes);
  ConstBytes output() const { return ConstBytes(output_).first(output_bytes_); }

  // Once Done.
  const Hello& hello() const { return hello_; }
  LinkKeys keys() const;

  static constexpr size_t kMaxBytes = 92;  // bound on wants() and output()

 private:
  using Nonce = std::array<std::byte, 32>;
  Handshake(const Secret& key, bool connects) : key_(key), connects_(connects) {}
  void answer_challenge(ConstBytes bytes);
  void check_proof(ConstBytes bytes);
  void check_welcome(ConstBytes bytes);
  Mac mac(std::string_view purpose) const;
  void set_output(std::initializer_list<ConstBytes> parts);

  Secret key_;
  bool connects_;
  State state_ = State::Running;
  size_t wants_ = 0;
  bool proof_sent_ = false;
  Hello hello_;
  Nonce acceptor_nonce_{}, connector_nonce_{};
  std::array<std::byte, kMaxBytes> output_{};
  size_t output_bytes_ = 0;
};

}  // namespace ccom
