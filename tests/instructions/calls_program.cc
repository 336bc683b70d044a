// SPDX-License-Identifier: Apache-2.0
//
//   calls_program allreduce|broadcast|allgather|persistent BYTES CALLS
// Two ranks in threads make so many calls. instructions_test.py counts what they execute.
#include <ccom/ccom.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 2;

[[noreturn]] void give_up() {
  std::fprintf(stderr, "%s\n", ccomGetLastError(nullptr));
  std::exit(1);
}

void check(ccomResult_t result) {
  if (result != ccomSuccess) give_up();
}

void make_calls(const std::string& which, size_t count, int calls, ccomComm_t comm) {
  std::vector<float> in(count, 1), out(count * kRanks);
  ccomPersistent_t persistent = nullptr;
  check(ccomPersistentInit(&persistent, "allreduce", in.data(), out.data(), count, ccomFloat32, ccomSum, 0, comm));
  for (int i = 0; i < calls; ++i) {
    if (which == "allreduce") {
      check(ccomAllReduce(in.data(), out.data(), count, ccomFloat32, ccomSum, comm, nullptr));
    } else if (which == "broadcast") {
      check(ccomBroadcast(in.data(), out.data(), count, ccomFloat32, 0, comm, nullptr));
    } else if (which == "allgather") {
      check(ccomAllGather(in.data(), out.data(), count, ccomFloat32, comm, nullptr));
    } else {
      check(ccomPersistentStart(persistent, nullptr));
    }
  }
  check(ccomPersistentFree(persistent));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const size_t count = std::strtoull(argv[2], nullptr, 10) / sizeof(float);
  const int calls = std::atoi(argv[3]);
  std::array<ccomComm_t, kRanks> comms{};
  check(ccomCommInitAll(comms.data(), kRanks, nullptr));
  std::vector<std::thread> ranks;
  ranks.reserve(comms.size());
  for (const ccomComm_t comm : comms) ranks.emplace_back(make_calls, argv[1], count, calls, comm);
  for (std::thread& rank : ranks) rank.join();
  for (const ccomComm_t comm : comms) check(ccomCommDestroy(comm));
}
