// SPDX-License-Identifier: Apache-2.0
//
// The counts of a v-form, in which ranks have parts of different lengths: what each sends to whom, and whether all say
// the same.
//
// Every rank knows what it sends to each rank and what it expects of each. Both ends of a pair must name one number.
// Whether all pairs do follows from one word of each rank: a sum of random weights, one for each pair, that the sender
// adds as often as it sends elements and the receiver takes away as often as it expects some. The words of all ranks
// add up to 0 if they agree; never if one pair differs, and by a chance of about 2^-64 if several do.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/collective.h"
#include "base/status.h"

namespace ccom {

// A rank's parts, by the other rank. In elements.
struct Shares {
  std::vector<size_t> sent, sent_at;          // how many, and where they begin in the input
  std::vector<size_t> received, received_at;  // the same in the output; of sums: of what each contributes
  // Allgatherv, reduce_scatterv, alltoallv: how long all parts are; 0 if they are unlike, empty or not in a row.
  size_t equal = 0;
  friend bool operator==(const Shares&, const Shares&) = default;
};

// Of v-forms: runs a program whose units differ in length. The others are messages straight from rank to rank.
constexpr bool moves_units(Collective collective) {
  return collective == Collective::AllGather || collective == Collective::ReduceScatter;
}

// Units of ranks in the order of ranks, one behind the other: where each begins.
std::vector<size_t> in_a_row(std::span<const size_t> counts);

// Stands for a list.
uint64_t hash_of_counts(std::span<const size_t> counts);
// Of a v-form that moves units: stands for their lengths, which all ranks give.
uint64_t hash_of_units(Collective collective, const Shares& shares);

// Rank `rank`'s word.
uint64_t claim_of(const Shares& shares, Rank rank);

// A pair whose ends differ.
struct Difference {
  Rank from = -1, to = -1;
  uint64_t sent = 0, received = 0;
  friend bool operator==(const Difference&, const Difference&) = default;
};
// The first one, by sender, then receiver. claims: of each rank what it sends to each, then what it expects of each.
std::optional<Difference> first_difference(std::span<const uint64_t> claims, int nranks);
// A Mismatch that names both ranks, the arguments of the C API, their entries and values. call: "allgatherv float32
// (call 3)".
Status different_counts(Collective collective, const std::string& call, const Difference& difference);
// The same for the first one of those claims; an InternalError if there is none.
Status different_counts(Collective collective, const std::string& call, std::span<const uint64_t> claims, int nranks);

}  // namespace ccom
