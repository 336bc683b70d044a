// SPDX-License-Identifier: Apache-2.0
#include "comm/shares.h"

#include <algorithm>

#include "base/assert.h"
#include "plan/fingerprint.h"

namespace ccom {
namespace {

// Odd, so that one difference alone never vanishes.
uint64_t weight_of(Rank from, Rank to) {
  return mix(static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(to)) | 1;
}

std::string entry(const char* list, Rank index, Rank rank) {
  return "entry " + std::to_string(index) + " of " + list + " of rank " + std::to_string(rank);
}
std::string number(const char* name, Rank rank) { return std::string(name) + " of rank " + std::to_string(rank); }

// Where the two numbers stand in the arguments of the C API.
std::pair<std::string, std::string> arguments(Collective collective, const Difference& d) {
  switch (collective) {
    case Collective::AllGather:
    case Collective::Gather: return {number("sendcount", d.from), entry("recvcounts", d.from, d.to)};
    case Collective::ReduceScatter: return {entry("recvcounts", d.to, d.from), entry("recvcounts", d.to, d.to)};
    case Collective::Scatter: return {entry("sendcounts", d.to, d.from), number("recvcount", d.to)};
    default: return {entry("sendcounts", d.to, d.from), entry("recvcounts", d.from, d.to)};
  }
}

}  // namespace

std::vector<size_t> in_a_row(std::span<const size_t> counts) {
  std::vector<size_t> begins;
  begins.reserve(counts.size());
  size_t next = 0;
  for (const size_t count : counts) {
    begins.push_back(next);
    next += count;
  }
  return begins;
}

uint64_t hash_of_counts(std::span<const size_t> counts) {
  uint64_t hash = 0;
  for (const size_t count : counts) hash = mix(hash ^ count);
  return hash;
}

uint64_t hash_of_units(Collective collective, const Shares& shares) {
  return hash_of_counts(collective == Collective::AllGather ? shares.received : shares.sent);
}

uint64_t claim_of(const Shares& shares, Rank rank) {
  uint64_t claim = 0;
  for (size_t other = 0; other < shares.sent.size(); ++other) {
    claim += shares.sent[other] * weight_of(rank, static_cast<Rank>(other));
    claim -= shares.received[other] * weight_of(static_cast<Rank>(other), rank);
  }
  return claim;
}

std::optional<Difference> first_difference(std::span<const uint64_t> claims, int nranks) {
  const auto n = static_cast<size_t>(nranks);
  CCOM_ASSERT(claims.size() == 2 * n * n);
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const uint64_t sent = claims[from * 2 * n + to], received = claims[to * 2 * n + n + from];
      if (sent != received) return Difference{static_cast<Rank>(from), static_cast<Rank>(to), sent, received};
    }
  }
  return {};
}

Status different_counts(Collective collective, const std::string& call, const Difference& d) {
  const auto [sender, receiver] = arguments(collective, d);
  std::vector<int> peers{std::min(d.from, d.to)};
  if (d.from != d.to) peers.push_back(std::max(d.from, d.to));
  return error(Code::Mismatch, "ranks gave different counts to %s: %s is %llu, %s is %llu", call.c_str(),
               sender.c_str(), static_cast<unsigned long long>(d.sent), receiver.c_str(),
               static_cast<unsigned long long>(d.received))
      .with_peers(std::move(peers))
      .with_cure("give both ranks of every pair the same count");
}

Status different_counts(Collective collective, const std::string& call, std::span<const uint64_t> claims, int nranks) {
  const std::optional<Difference> found = first_difference(claims, nranks);
  if (!found) return error(Code::InternalError, "the counts of %s agree, but not what ranks say of them", call.c_str());
  return different_counts(collective, call, *found);
}

}  // namespace ccom
