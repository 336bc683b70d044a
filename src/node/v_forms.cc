// SPDX-License-Identifier: Apache-2.0
//
// V-forms through the memory of a host: who said which counts, and an alltoall of short parts.
#include <algorithm>
#include <cstring>
#include <span>

#include "base/call.h"
#include "node/lines.h"
#include "node/shm_collectives.h"

namespace ccom {
namespace {

// Of the parts that a rank sends to others.
struct PartsSaid {
  uint64_t claim = 0, longest = 0;
  uint64_t are_unmapped = 0;  // 1: some are long and cannot be read where they lie, or are overwritten there

  void add(const PartsSaid& other) {
    claim += other.claim;
    longest = std::max(longest, other.longest);
    are_unmapped |= other.are_unmapped;
  }
};

// most: the elements of a part that is not long.
PartsSaid say_parts(const PartExchange& exchange, Rank self, size_t most, const ReachMap& map) {
  const std::span<const size_t> sent = exchange.parts.sent, sent_at = exchange.parts.sent_at;
  PartsSaid said{.claim = exchange.claim};
  size_t begin = SIZE_MAX, end = 0;
  for (size_t to = 0; to < sent.size(); ++to) {
    if (to == static_cast<size_t>(self) || sent[to] == 0) continue;
    said.longest = std::max(said.longest, sent[to]);
    begin = std::min(begin, sent_at[to]);
    end = std::max(end, sent_at[to] + sent[to]);
  }
  const bool is_overwritten = exchange.input == exchange.output;
  const size_t element = exchange.element_bytes;
  if (is_overwritten ||
      (said.longest > most && !map.describe(exchange.input + begin * element, (end - begin) * element).is_mapped()))
    said.are_unmapped = 1;
  return said;
}

void put_parts(const PartExchange& exchange, Rank self, size_t slot, std::byte* mail) {
  const std::span<const size_t> sent = exchange.parts.sent;
  for (size_t to = 0; to < sent.size(); ++to) {
    if (to == static_cast<size_t>(self) || sent[to] == 0) continue;
    std::memcpy(mail + to * slot, exchange.input + exchange.parts.sent_at[to] * exchange.element_bytes,
                sent[to] * exchange.element_bytes);
  }
}

// Before others' parts are written, which may lie where it was.
void take_own_part(const PartExchange& exchange, Rank self) {
  const auto own = static_cast<size_t>(self);
  if (exchange.parts.sent[own] == 0) return;
  std::memmove(exchange.output + exchange.received_at[own] * exchange.element_bytes,
               exchange.input + exchange.parts.sent_at[own] * exchange.element_bytes,
               exchange.parts.sent[own] * exchange.element_bytes);
}

}  // namespace

// Of ranks whose words differ in the counts alone the error that tells where; of an alltoallv, whose words tell equal
// parts from others, that they are unlike. Another error stays what it is.
Status ShmCollectives::find_counts(Status mismatch, const CallWords& words) {
  are_parts_unlike_ = false;
  if (mismatch.code() != Code::Mismatch || !parts_of(words[3]).is_v || !config_.differ) return mismatch;
  if (Status all = barrier_.await_everybody(); !all.is_ok()) return all.code() == Code::Timeout ? all : mismatch;
  bool are_words_alike = true;
  for (Rank local_rank = 0; local_rank < size(); ++local_rank) {
    const CallWords& theirs = barrier_.words_of(local_rank);
    if (theirs[0] != words[0] || theirs[1] != words[1] || theirs[3] != words[3]) return mismatch;
    are_words_alike &= theirs[2] == words[2];
  }
  if (are_words_alike) return mismatch;
  if (parts_of(words[3]).collective == Collective::AllToAll) {
    are_parts_unlike_ = true;
    return mismatch;
  }
  const std::vector<uint64_t> claims = counts_.claims(barrier_.number());
  return claims.empty() ? mismatch : config_.differ(words, claims);
}

Result<ShmCollectives::Exchanged> ShmCollectives::exchange_small(const PartExchange& exchange, CallWords words,
                                                                 std::chrono::milliseconds timeout, bool has_met) {
  if (monitor_.failed()) [[unlikely]]
    return give_up(monitor_.status());
  was_small_ = true;
  for (words[2] = has_met ? kSaysPartsAfterAll : kSaysParts;; words[2] = kSaysPartsAfterAll) {
    barrier_.begin(words, timeout);
    Result<Exchanged> exchanged = exchange_mail(exchange, words);
    if (exchanged) [[likely]]
      return exchanged;
    const Status status = find_counts(exchanged.error(), words);
    if (!are_parts_unlike_) return give_up(status);
  }
}

// A rank's mail has a slot for each rank.
Result<ShmCollectives::Exchanged> ShmCollectives::exchange_mail(const PartExchange& exchange, const CallWords& words) {
  const Rank self = barrier_.local_rank();
  const size_t slot = kMailBytes / exchange.parts.sent.size() / kLineBytes * kLineBytes;
  const size_t most = slot / exchange.element_bytes;
  PartsSaid all = say_parts(exchange, self, most, reach_map_);
  if (all.longest <= most) put_parts(exchange, self, slot, barrier_.mail(kMailBytes));
  std::memcpy(barrier_.payload(), &all, sizeof all);
  counts_.show(barrier_.number() + 1, exchange.parts);
  barrier_.arrive();
  CCOM_TRY(barrier_.await_all());
  for (Rank rank = 0; rank < size(); ++rank) {
    if (rank == self) continue;
    PartsSaid said;
    std::memcpy(&said, barrier_.payload_of(rank), sizeof said);
    all.add(said);
  }
  if (all.claim != 0) return config_.differ(words, counts_.claims(barrier_.number()));
  if (all.longest > most) return Exchanged{all.longest, all.are_unmapped == 0};
  take_own_part(exchange, self);
  for (Rank rank = 0; rank < size(); ++rank) {
    const auto from = static_cast<size_t>(rank);
    if (rank == self || exchange.parts.received[from] == 0) continue;
    std::memcpy(exchange.output + exchange.received_at[from] * exchange.element_bytes,
                barrier_.mail_of(rank, kMailBytes) + static_cast<size_t>(self) * slot,
                exchange.parts.received[from] * exchange.element_bytes);
  }
  return Exchanged{};
}

}  // namespace ccom
