// SPDX-License-Identifier: Apache-2.0
#include "base/call.h"

#include "base/collective.h"

namespace ccom {
namespace {

constexpr uint64_t kPreMultiplied = 0x80;  // in the operator's byte

// Kinds come from other processes.
std::string_view collective_name(uint64_t kind) {
  const uint64_t index = kind & 0xff;
  return index < kCollectiveTraits.size() ? kCollectiveTraits[index].name : "an unknown call";
}

bool is(uint64_t kind, Collective collective) { return (kind & 0xff) == static_cast<uint64_t>(collective); }

bool is_reduction(uint64_t kind) {
  const uint64_t index = kind & 0xff;
  return index < kCollectiveTraits.size() && kCollectiveTraits[index].reduces;
}

std::string operation_text(uint64_t kind) {
  const CallKind parts = parts_of(kind);
  std::string text(collective_name(kind));
  if (!is(kind, Collective::Barrier)) text.append(" ").append(name_of(parts.type));
  if (is_reduction(kind))
    text.append(" ").append(name_of(parts.op)).append(parts.premultiplied ? " (premultiplied)" : "");
  if (is_reduction(kind) && is_user(parts.op)) text.append(" ").append(std::to_string(parts.user_operator));
  return text;
}

std::string root_text(uint64_t kind) {
  const Rank root = parts_of(kind).root;
  return root < 0 ? "" : " root " + std::to_string(root);
}

}  // namespace

// Bytes: collective, type, operator, two of the user's operator, three of the root.
uint64_t kind_of(Collective collective, DataType type, ReduceOp op, bool premultiplied, Rank root,
                 uint16_t user_operator) {
  const uint64_t operation = reduces(collective) ? static_cast<uint64_t>(op) | (premultiplied ? kPreMultiplied : 0) : 0;
  return static_cast<uint64_t>(collective) | static_cast<uint64_t>(type) << 8 | operation << 16 |
         static_cast<uint64_t>(user_operator) << 24 | static_cast<uint64_t>(static_cast<int64_t>(root)) << 40;
}

CallKind parts_of(uint64_t kind) {
  return {static_cast<Collective>(kind & 0xff),
          static_cast<DataType>(kind >> 8 & 0xff),
          static_cast<ReduceOp>(kind >> 16 & 0x7f),
          (kind >> 16 & kPreMultiplied) != 0,
          static_cast<Rank>(static_cast<int64_t>(kind) >> 40),
          static_cast<uint16_t>(kind >> 24)};
}

std::string text_of(const CallDescriptor& call) {
  std::string text = operation_text(call.kind);
  if (!is(call.kind, Collective::Barrier)) text.append(" count ").append(std::to_string(call.count));
  return text.append(root_text(call.kind)).append(" (call ").append(std::to_string(call.number)).append(")");
}

std::string kind_text(uint64_t kind) { return operation_text(kind) + root_text(kind); }

std::string short_text_of(const CallDescriptor& call) {
  return "call " + std::to_string(call.number) + " (" + std::string(collective_name(call.kind)) + ")";
}

}  // namespace ccom
