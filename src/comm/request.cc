// SPDX-License-Identifier: Apache-2.0
#include "comm/request.h"

#include "plan/fingerprint.h"

namespace ccom {

// words: communicator | history, number | count | kind | tile
Envelope describe(const Request& request, uint64_t communicator, uint64_t number, uint32_t tile) {
  const bool premultiplied = request.multiplier != nullptr;
  const uint16_t user_operator = request.user != nullptr ? request.user->number() : 0;
  const uint64_t kind = kind_of(request.collective, request.type, request.op, premultiplied, request.root,
                                user_operator, request.shares != nullptr, request.is_group);
  return {{communicator, number, request.count, kind, tile}};
}

uint64_t rounding_seed(int64_t communicator_seed, uint64_t sequence) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  return mix(mix(static_cast<uint64_t>(communicator_seed)) + (sequence - 1) * kGolden);
}

}  // namespace ccom
