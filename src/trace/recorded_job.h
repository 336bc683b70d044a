// SPDX-License-Identifier: Apache-2.0
//
// The recordings of the processes of one job, put together: whose calls belong to which call of all ranks, and when
// each was on one clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trace/clock_offsets.h"
#include "trace/recording.h"

namespace ccom {

// Part of a communicator in one file.
struct RecordedRank {
  size_t file = 0;
  std::vector<const RecordedCall*> calls;  // collectives, by number; the last may not be over
  std::vector<const RecordedCall*> transfers;
};

struct RecordedGroup {
  uint64_t number = 0, parent = 0;
  std::string name;
  int nranks = 0;
  std::string topology, costs;  // costs: of the first rank that says them
  std::vector<Rank> origins;
  std::map<Rank, RecordedRank> ranks;  // that left a file
  int64_t opened_ns = 0;               // on the job's clock

  // What that rank made as the collective call of that number; null: it is not recorded.
  const RecordedCall* find(Rank rank, uint64_t wanted) const;
  uint64_t last_number() const;  // that any rank has begun
  // Of recorded calls, ascending, from where on all ranks that have made calls have records.
  std::vector<uint64_t> numbers() const;
};

struct RecordedJob {
  std::vector<Recording> files;
  std::vector<ClockOffset> clocks;    // by file
  std::vector<RecordedGroup> groups;  // the widest first, then by their beginning
  int64_t last_ns = 0;

  // On the clock of the first file's machine.
  int64_t time(size_t file, int64_t ns) const { return clocks[file].to_common(ns); }
  // "rank 3", and of which communicator's: the widest one that the file has.
  Rank rank_of_file(size_t file) const;
  RecordedJob() = default;
  RecordedJob(RecordedJob&&) = default;
  RecordedJob& operator=(RecordedJob&&) = default;
};

// By which files belong together: those that share a communicator, of which one shares another, and so on. The job that
// began last, first.
std::vector<RecordedJob> jobs_of(std::vector<Recording> recordings);

// Files, and all *.ccomrec of folders. What cannot be read is left out, and why stands in `refused`. An error if
// nothing is left.
Result<std::vector<RecordedJob>> read_jobs(const std::vector<std::string>& paths, std::vector<std::string>& refused);

}  // namespace ccom
