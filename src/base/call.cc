// SPDX-License-Identifier: Apache-2.0
#include "base/call.h"

#include "base/collective.h"

namespace ccom {
namespace {

constexpr uint64_t kPreMultiplied = 0x80;  // in the operator's byte

// Descriptors come from other processes.
std::string_view collective_name(const CallDescriptor& call) {
  const uint64_t index = call.kind & 0xff;
  return index < kCollectiveTraits.size() ? kCollectiveTraits[index].name : "an unknown call";
}

bool is(const CallDescriptor& call, Collective collective) {
  return (call.kind & 0xff) == static_cast<uint64_t>(collective);
}

bool is_reduction(const CallDescriptor& call) {
  const uint64_t index = call.kind & 0xff;
  return index < kCollectiveTraits.size() && kCollectiveTraits[index].reduces;
}

}  // namespace

// Bytes: collective, type, operator, 0; then the root.
uint64_t kind_of(Collective collective, DataType type, ReduceOp op, bool premultiplied, Rank root) {
  const uint64_t operation = reduces(collective) ? static_cast<uint64_t>(op) | (premultiplied ? kPreMultiplied : 0) : 0;
  return static_cast<uint64_t>(collective) | static_cast<uint64_t>(type) << 8 | operation << 16 |
         static_cast<uint64_t>(static_cast<uint32_t>(root)) << 32;
}

CallKind parts_of(uint64_t kind) {
  return {static_cast<Collective>(kind & 0xff), static_cast<DataType>(kind >> 8 & 0xff),
          static_cast<ReduceOp>(kind >> 16 & 0x7f), (kind >> 16 & kPreMultiplied) != 0, static_cast<Rank>(kind >> 32)};
}

std::string text_of(const CallDescriptor& call) {
  const auto root = static_cast<int32_t>(call.kind >> 32);
  std::string text(collective_name(call));
  if (!is(call, Collective::Barrier)) text.append(" ").append(name_of(static_cast<DataType>(call.kind >> 8 & 0xff)));
  if (is_reduction(call)) {
    text.append(" ").append(name_of(static_cast<ReduceOp>(call.kind >> 16 & 0x7f)));
    if ((call.kind >> 16 & kPreMultiplied) != 0) text += " (premultiplied)";
  }
  if (!is(call, Collective::Barrier)) text.append(" count ").append(std::to_string(call.count));
  if (root >= 0) text.append(" root ").append(std::to_string(root));
  return text.append(" (call ").append(std::to_string(call.number)).append(")");
}

std::string kind_text(uint64_t kind) {
  const CallKind parts = parts_of(kind);
  std::string text(name_of(parts.collective));
  text.append(" ").append(name_of(parts.type));
  if (reduces(parts.collective)) text.append(" ").append(name_of(parts.op));
  if (parts.premultiplied) text += " (premultiplied)";
  if (parts.root >= 0) text.append(" root ").append(std::to_string(parts.root));
  return text;
}

std::string short_text_of(const CallDescriptor& call) {
  return "call " + std::to_string(call.number) + " (" + std::string(collective_name(call)) + ")";
}

}  // namespace ccom
