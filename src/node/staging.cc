// SPDX-License-Identifier: Apache-2.0
#include "node/staging.h"

#include <algorithm>

namespace ccom {

Staging::Staging(SharedSegment& segment, size_t offset, const NodeLayout& layout, Rank local_rank)
    : segment_(segment),
      region_(segment.bytes().data() + offset),
      block_(offset + layout.block_offset(local_rank)),
      layout_(layout) {}

Status Staging::take(size_t begin, size_t end) {
  CCOM_TRY(segment_.reserve(block_ + begin, end - begin));
  memory_bytes_ += end - begin;
  return {};
}

Status Staging::reserve(bool has_partial_sums) {
  if (!has_stage_) CCOM_TRY(take(layout_.stage_offset(0), layout_.partial_offset(0)));
  has_stage_ = true;
  if (has_partial_sums && !has_partial_) {
    CCOM_TRY(take(layout_.partial_offset(0), layout_.partial_offset(kNodeBanks)));
    has_partial_ = true;
  }
  return {};
}

Status Staging::reserve_long_mails(size_t size_bytes) {
  const size_t begin = layout_.long_mails_offset();
  if (!has_long_mails_) CCOM_TRY(take(begin, std::min(begin + size_bytes, layout_.block_bytes())));
  has_long_mails_ = true;
  return {};
}

}  // namespace ccom
