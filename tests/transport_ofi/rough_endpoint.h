// SPDX-License-Identifier: Apache-2.0
//
// A fabric as unfriendly as EFA may be, put around a real one: completions of sends and receives come late and in any
// order, posts are refused at random, messages are short, queues small; on demand messages are damaged or sends fail.
// It also checks what a transport owes such a fabric: never more operations than the queues hold, and always a buffer
// for what arrives.
#pragma once

#include <atomic>
#include <memory>
#include <random>

#include "transports/ofi/endpoint.h"

namespace ccom::ofi {

struct Roughness {
  uint64_t seed = 1;
  unsigned refuse_one_in = 4;     // posts; 0: none
  unsigned hold_back_one_in = 2;  // completions, at each poll; 0: none
  Limits limits{.message_bytes = 2048, .sends = 512, .receives = 512};
  std::shared_ptr<std::atomic<bool>> damage{};     // while true, a bit of every received payload is flipped
  std::shared_ptr<std::atomic<int>> fail_sends{};  // while not 0, every send completes with this FI_E...
};

std::unique_ptr<Endpoint> make_rough(std::unique_ptr<Endpoint> inner, Roughness roughness);

}  // namespace ccom::ofi
