// SPDX-License-Identifier: Apache-2.0
//
// One rank of a job whose calls are recorded; one line per event on stdout.
//   recording_program endless      allreduces of 1 to 50 elements in turn on the communicator of all; meanwhile another
//                                  thread broadcasts on a part of it, and a stream works on another part: without end.
//                                  "ready" after some of each
//   recording_program late RANK    60 allreduces, before every sixth of which that rank sleeps 20 ms; then "done", and
//                                  another one, to which that rank does not come: without end
//   recording_program calls N      N allreduces of 1000 elements and a barrier; "done"
#include <ccom/ccom.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;

ccomComm_t part_of(ccomComm_t comm) {
  ccomComm_t part = nullptr;
  require(comm, ccomCommSplit(comm, rank % 2, rank, &part, nullptr));
  return part;
}

int call_without_end() {
  ccomComm_t comm = join(nullptr);
  const ccomComm_t row = part_of(comm), other_row = part_of(comm);
  std::atomic<size_t> rounds{0}, reduced{0};
  // Not so far ahead that they would take the places of all calls of the other thread.
  std::thread broadcasts([&] {
    for (char byte = 0;; ++rounds) {
      while (rounds > 20 * reduced + 1000) std::this_thread::yield();
      require(row, ccomBroadcast(&byte, &byte, 1, ccomInt8, 0, row, nullptr));
    }
  });
  ccomStream_t stream = nullptr;
  require(comm, ccomStreamCreate(&stream));
  std::vector<float> values(50), sums(50), long_values(100'000), long_sums(100'000);
  for (size_t i = 0;; reduced = ++i) {
    require(comm, ccomAllReduce(values.data(), sums.data(), i % 50 + 1, ccomFloat32, ccomSum, comm, nullptr));
    if (i % 16 == 0)
      require(other_row, ccomAllReduce(long_values.data(), long_sums.data(), long_values.size(), ccomFloat32, ccomSum,
                                       other_row, stream));
    if (i % 64 == 0) require(comm, ccomStreamSynchronize(stream, -1));
    if (i == 100) {
      while (rounds < 10) std::this_thread::yield();
      say("ready");
    }
  }
}

int call_with_a_late_rank(int late) {
  ccomComm_t comm = join(nullptr);
  std::vector<float> values(1000), sums(1000);
  for (int i = 0; i < 60; ++i) {
    if (rank == late && i % 6 == 5) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    require(comm, ccomAllReduce(values.data(), sums.data(), values.size(), ccomFloat32, ccomSum, comm, nullptr));
  }
  say("done");
  if (rank == late) ::pause();
  require(comm, ccomAllReduce(values.data(), sums.data(), values.size(), ccomFloat32, ccomSum, comm, nullptr));
  return 0;
}

int call(int calls) {
  ccomComm_t comm = join(nullptr);
  std::vector<float> values(1000), sums(1000);
  for (int i = 0; i < calls; ++i)
    require(comm, ccomAllReduce(values.data(), sums.data(), values.size(), ccomFloat32, ccomSum, comm, nullptr));
  require(comm, ccomBarrier(comm, nullptr));
  say("done");
  ccomCommDestroy(comm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (!begin_rank()) return 3;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "endless") return call_without_end();
  if (what == "late") return call_with_a_late_rank(std::atoi(argv[2]));
  return call(std::atoi(argv[2]));
}
