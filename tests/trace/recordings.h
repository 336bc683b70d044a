// SPDX-License-Identifier: Apache-2.0
//
// Recordings for tests, as if read from files.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/harness/folder.h"
#include "trace/recorded_job.h"

namespace ccom {

inline Result<Recording> read_text(const std::string& bytes) { return read_recording(std::as_bytes(std::span(bytes))); }

inline constexpr uint64_t kAllReduceKind = kind_of(Collective::AllReduce, DataType::Float32, ReduceOp::Sum, false, -1);

// Of a rank of a communicator of all, on one machine.
inline Recording recording_of(Rank rank, int nranks, const std::string& machine = "m") {
  Recording recording;
  recording.host = "host-" + machine;
  recording.machine = machine;
  recording.pid = 100 + rank;
  RecordedCommunicator& world = recording.communicators.emplace_back();
  world.number = 7;
  world.rank = rank;
  world.nranks = nranks;
  world.name = "world";
  recording.texts.push_back("train.py:88 (step)");
  return recording;
}

// Of ranks 0 to `ranks` - 1 of so many.
inline std::vector<Recording> recordings_of(int ranks, int nranks) {
  std::vector<Recording> files;
  for (Rank rank = 0; rank < ranks; ++rank) files.push_back(recording_of(rank, nranks));
  return files;
}

inline void add_call(Recording& recording, uint64_t number, int64_t begun_ns, std::optional<int64_t> ended_ns,
                     uint64_t count = 1000, uint64_t kind = kAllReduceKind) {
  RecordedCall call;
  call.call = {number, count, kind};
  call.begun_ns = begun_ns;
  call.ended_ns = ended_ns;
  call.site = 1;
  recording.calls.push_back(call);
  recording.last_ns = std::max(recording.last_ns, ended_ns.value_or(begun_ns));
}

inline RecordedJob job_of(std::vector<Recording> recordings) {
  std::vector<RecordedJob> jobs = jobs_of(std::move(recordings));
  EXPECT_EQ(jobs.size(), 1u);
  return std::move(jobs.at(0));
}

}  // namespace ccom
