// SPDX-License-Identifier: Apache-2.0
#include "comm/request.h"

#include "plan/fingerprint.h"

namespace ccom {
namespace {

constexpr uint64_t kPreMultiplied = 0x80;  // in the operator's byte: the multiplier itself may differ between ranks

}  // namespace

// words: communicator | sequence | count | collective, type, operator, root | tile
Envelope describe(const Request& request, uint64_t communicator, uint64_t sequence, uint32_t tile) {
  const uint64_t op = reduces(request.collective)
                          ? static_cast<uint64_t>(request.op) | (request.multiplier != nullptr ? kPreMultiplied : 0)
                          : 0;
  const uint64_t call = static_cast<uint64_t>(request.collective) | static_cast<uint64_t>(request.type) << 8 |
                        op << 16 | static_cast<uint64_t>(static_cast<uint32_t>(request.root)) << 32;
  return {{communicator, sequence, request.count, call, tile}};
}

uint64_t rounding_seed(int64_t communicator_seed, uint64_t sequence) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  return mix(mix(static_cast<uint64_t>(communicator_seed)) + (sequence - 1) * kGolden);
}

std::string call_text(const Envelope& envelope) {
  const uint64_t call = envelope.words[3];
  const auto collective = static_cast<Collective>(call & 0xff);
  const auto root = static_cast<int32_t>(call >> 32);
  std::string text(name_of(collective));
  if (collective != Collective::Barrier) text.append(" ").append(name_of(static_cast<DataType>(call >> 8 & 0xff)));
  if (reduces(collective)) {
    text.append(" ").append(name_of(static_cast<ReduceOp>(call >> 16 & 0x7f)));
    if ((call >> 16 & kPreMultiplied) != 0) text += " (premultiplied)";
  }
  if (collective != Collective::Barrier) text.append(" count ").append(std::to_string(envelope.words[2]));
  if (root >= 0) text.append(" root ").append(std::to_string(root));
  return text.append(" (call ").append(std::to_string(envelope.words[1])).append(")");
}

}  // namespace ccom
