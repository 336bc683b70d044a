// SPDX-License-Identifier: Apache-2.0
//
// The first message on a connection, as far as a listener can tell it from others before anything is proved.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace ccom {

struct Greeting {
  // Its length, as far as its first bytes tell: more than `begin` has while it is not known; 0: this is none. Never
  // more than a few KiB: the message waits in the kernel.
  size_t (*measure)(ConstBytes begin);
  // What each begins with, as a big-endian number of two bytes or four.
  struct Prefix {
    uint32_t number = 0;
    uint32_t bytes = 0;  // 0: there is none
  };
  std::array<Prefix, 2> prefixes;
};
size_t measure_handshake(ConstBytes begin);
size_t measure_client_hello(ConstBytes begin);
size_t measure_either(ConstBytes begin);
inline constexpr Greeting::Prefix kHandshakePrefix{0x4353484b, 4};  // of base/handshake.h: "CSHK"
inline constexpr Greeting::Prefix kClientHelloPrefix{0x1603, 2};    // of TLS: one record
inline constexpr Greeting kHandshakeGreeting{&measure_handshake, {kHandshakePrefix}};
inline constexpr Greeting kClientHelloGreeting{&measure_client_hello, {kClientHelloPrefix}};
inline constexpr Greeting kEitherGreeting{&measure_either, {kHandshakePrefix, kClientHelloPrefix}};

// Makes the kernel keep from a listening TCP socket, where it can: connections on which nothing has arrived, for about
// a minute, and data that begins otherwise. A peer must speak first, and whole prefixes at once or with pauses. The
// sockets that accept() returns filter data as well until unfilter() is called.
void filter_greetings(int listener, const Greeting& greeting);
void unfilter(int socket);
// Only the first of the two, for that long.
void keep_silent_ones(int listener, std::chrono::seconds most);

}  // namespace ccom
