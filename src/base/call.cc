// SPDX-License-Identifier: Apache-2.0
#include "base/call.h"

#include "base/collective.h"

namespace ccom {
namespace {

uint64_t index_of(uint64_t kind) { return kind & 0xff & ~kIsV; }

// Kinds come from other processes.
std::string collective_name(uint64_t kind) {
  const uint64_t index = index_of(kind);
  if (index >= kCollectiveTraits.size()) return "an unknown call";
  return call_name(kCollectiveTraits[index].collective, (kind & kIsV) != 0);
}

bool is(uint64_t kind, Collective collective) { return index_of(kind) == static_cast<uint64_t>(collective); }

bool is_reduction(uint64_t kind) {
  const uint64_t index = index_of(kind);
  return index < kCollectiveTraits.size() && kCollectiveTraits[index].reduces;
}

std::string operation_text(uint64_t kind) {
  const CallKind parts = parts_of(kind);
  std::string text = collective_name(kind);
  if (!is(kind, Collective::Barrier)) text.append(" ").append(name_of(parts.type));
  if (is_reduction(kind))
    text.append(" ").append(name_of(parts.op)).append(parts.premultiplied ? " (premultiplied)" : "");
  if (is_reduction(kind) && is_user(parts.op)) text.append(" ").append(std::to_string(parts.user_operator));
  if (parts.is_group) text.append(" of a group");
  return text;
}

std::string root_text(uint64_t kind) {
  const Rank root = parts_of(kind).root;
  return root < 0 ? "" : " root " + std::to_string(root);
}

}  // namespace

CallKind parts_of(uint64_t kind) {
  return {static_cast<Collective>(index_of(kind)),
          static_cast<DataType>(kind >> 8 & 0xff),
          static_cast<ReduceOp>(kind >> 16 & 0x3f),
          (kind >> 16 & kPreMultiplied) != 0,
          static_cast<Rank>(static_cast<int64_t>(kind) >> 40),
          static_cast<uint16_t>(kind >> 24),
          (kind & kIsV) != 0,
          (kind >> 16 & kIsGroup) != 0};
}

bool is_kind(uint64_t kind) {
  const CallKind parts = parts_of(kind);
  const bool has_type = size_of(parts.type) != 0 || is(kind, Collective::Barrier);
  return index_of(kind) < kCollectiveTraits.size() && has_type &&
         (!is_reduction(kind) || name_of(parts.op) != "unknown");
}

std::string call_name(Collective collective, bool is_v) {
  return std::string(name_of(collective)).append(is_v ? "v" : "");
}

std::string text_of(const CallDescriptor& call) {
  std::string text = operation_text(call.kind);
  if (!is(call.kind, Collective::Barrier) && !parts_of(call.kind).is_v)
    text.append(" count ").append(std::to_string(call.count));
  return text.append(root_text(call.kind)).append(" (call ").append(std::to_string(call.number)).append(")");
}

std::string kind_text(uint64_t kind) { return operation_text(kind) + root_text(kind); }

std::string short_text_of(const CallDescriptor& call) {
  return "call " + std::to_string(call.number) + " (" + collective_name(call.kind) + ")";
}

}  // namespace ccom
