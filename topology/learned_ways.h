// SPDX-License-Identifier: Apache-2.0
//
// What calls through a host's memory have found out about the ways that they may take, kept from job to job: the
// section "ways" of the file that CCOM_TUNING_SAVE writes and CCOM_TUNING names (calibration.cc), and what the cache of
// a user holds. Ways, calls and buffers are texts here: whoever asks compares them with its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/measured_costs.h"
#include "base/status.h"

namespace ccom {

struct LearnedKind {
  // Which calls.
  std::string stage;        // what the ranks of the host do: "reduce_scatter"
  std::string call;         // what the program called: "allreduce float32 sum"
  std::string buffers;      // "ordinary", or which are mapped
  int ranks = 2;            // of the host
  int cores = 2;            // that they have, at most one for each
  uint64_t unit_bytes = 0;  // of the stage
  uint64_t units = 1;       // that a rank gives
  // What is known.
  std::string in_use;                                       // the way
  uint64_t calls = 0;                                       // that found it out
  std::vector<std::pair<std::string, double>> median_us{};  // of ways that were tried

  bool has_same_calls(const LearnedKind& other) const {
    return stage == other.stage && call == other.call && buffers == other.buffers && ranks == other.ranks &&
           cores == other.cores && unit_bytes == other.unit_bytes && units == other.units;
  }
  friend bool operator==(const LearnedKind&, const LearnedKind&) = default;
};

struct LearnedWays {
  std::string processor{}, version{};  // of the host and the library that the last ones were found with
  std::vector<LearnedKind> kinds{};
  OwnCosts own{};  // the least that this many starts have measured
  int starts = 0;
  friend bool operator==(const LearnedWays&, const LearnedWays&) = default;
};

// After so many starts the processor's figures are not measured anew.
inline constexpr int kEnoughStarts = 5;

uint64_t hash_of(const LearnedWays& ways);

// What is known of calls as `asked` says, or of the most similar ones: the same stage, ranks, cores, units and buffers
// (empty: of any), rather of the same call, then of the size nearest below, down to a quarter; null if of none.
const LearnedKind* nearest(const LearnedWays& known, const LearnedKind& asked);

// Writes a file with them, or puts them into the one that is there: kinds of the same calls are replaced, others stay
// if processor and version are the same; calibrations stay. Readers see the old file or the new one. ConfigError,
// or SystemError if it cannot be written; a file that cannot be read is left as it is.
Status save_ways(const std::string& path, const LearnedWays& found);

// What jobs have kept in this folder of the user's cache that found it out with the same processor, running kernel and
// version of the library. Nothing where there is no such file, where another user could have written it, or where it
// cannot be read.
LearnedWays cached_ways(const std::string& folder, const std::string& processor, const std::string& version);
// Adds to that, if it says anything new: kinds of the same calls are replaced, the first of too many are forgotten,
// and medians are left out. Makes the folder, for this user alone. SystemError if it cannot be written.
Status cache_ways(const std::string& folder, LearnedWays found);

}  // namespace ccom
