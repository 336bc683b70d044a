// SPDX-License-Identifier: Apache-2.0
//
// How the two ends of a fresh connection prove themselves: three messages of 96 bytes.
//
//   dialer    Hello    a nonce, and which connection of which pair this is
//   acceptor  Answer   a nonce of its own
//   dialer    Confirm
//
// Each carries an HMAC over all messages so far, itself included. So the acceptor knows after the third that it does
// not talk to a recording, and the dialer after the second. Pure; connection_setup.h does the talking.
#pragma once

#include <array>
#include <cstdint>

#include "base/secret.h"
#include "base/status.h"
#include "base/types.h"

namespace ccom::tcp {

enum class HelloKind : uint8_t { Hello = 1, Answer = 2, Confirm = 3 };

struct Hello {
  uint32_t magic = 0x4f4c4843;  // "CHLO"
  uint16_t version = 1;
  HelloKind kind = HelloKind::Hello;
  uint8_t crc = 0;
  uint64_t communicator = 0;
  int32_t from = -1;
  int32_t to = -1;
  uint16_t channel = 0;
  uint16_t stream = 0;
  uint16_t channels = 0;  // of this pair
  uint16_t streams = 0;   // per channel
  std::array<uint8_t, 32> nonce{};
  Mac mac{};
};
static_assert(sizeof(Hello) == 96);

// What this rank brings to every hello.
struct Identity {
  Rank rank = -1;
  uint64_t communicator = 0;
  Secret key;
  int streams = 1;
  bool crc = true;
};

// Which connection of a pair.
struct LineId {
  Rank peer = -1;
  int channel = 0;
  int stream = 0;
};

// Messages so far, in order.
using Transcript = std::span<const Hello>;

// Signed, with a fresh nonce. `channels` is this side's number for the pair.
Hello make_hello(const Identity& self, LineId id, int channels, HelloKind kind, Transcript before);
// Whether `hello` is of this kind and was made, right after `before`, by a holder of the key for this rank and
// communicator.
bool is_genuine(const Hello& hello, HelloKind kind, const Identity& self, Transcript before);
// A ConfigError if the two sides were set up differently. Both find it, each when it has the other's message.
Status compare_settings(const Hello& mine, const Hello& theirs);

}  // namespace ccom::tcp
