// SPDX-License-Identifier: Apache-2.0
#include "comm/prepared_calls.h"

namespace ccom {

PreparedCall* PreparedCalls::look_up(uint64_t kind, size_t count) {
  const auto found = all_.find({kind, count});
  if (found == all_.end()) return nullptr;
  recent_[slot_of(kind, count)] = {kind, count, &found->second};
  return &found->second;
}

void PreparedCalls::forget_all() {
  all_.clear();
  recent_.fill({});
}

PreparedCall& PreparedCalls::add(uint64_t kind, size_t count, const PreparedCall& call) {
  if (all_.size() == kMostCalls) forget_all();  // to make one ready again takes a microsecond
  return all_.insert_or_assign({kind, count}, call).first->second;
}

}  // namespace ccom
