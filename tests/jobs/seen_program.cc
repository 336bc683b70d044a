// SPDX-License-Identifier: Apache-2.0
//
// A rank that tools look at from outside.
//   seen_program calls     calls of 8 bytes and 64 KiB without end
//   seen_program late      the same, but the last rank sleeps in user code before its 1000th
//   seen_program deadlock  two communicators of all ranks; ranks 0 and 1 call them in opposite order
//   seen_program parts     splits into halves; calls on both without end
//   seen_program short     ten calls
// Each says "ready" before it goes on for long. Compiled with debug information.
#include <ccom/ccom.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;

[[gnu::noinline]] ccomResult_t train_step(ccomComm_t comm, size_t count) {
  static std::vector<float> values(1 << 14);
  return ccomAllReduce(values.data(), values.data(), count, ccomFloat32, ccomSum, comm, nullptr);  // train_step's line
}

ccomComm_t join_as(const char* name) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.commName = name;
  return join(&config);
}

int call_on(bool is_late) {
  ccomComm_t comm = join_as("training");
  for (int call = 1;; ++call) {
    if (is_late && call == 1000 && rank == nranks - 1) {
      say("evaluates");
      ::sleep(60);
    }
    const ccomResult_t result = train_step(comm, call % 2 == 0 ? 2 : 1 << 14);
    if (result != ccomSuccess) return report_failure(comm, result);
    if (call == 100) say("ready");
  }
}

int split_and_call(bool crosses) {
  ccomComm_t whole = join_as("whole"), part = nullptr;
  if (ccomCommSplit(whole, crosses ? 0 : rank % 2, rank, &part, nullptr) != ccomSuccess) return 4;
  say("ready");
  if (crosses) {  // whoever is rank 0 begins with the other one
    (void)train_step(rank == 0 ? part : whole, 2);
    return 4;
  }
  for (;;) {
    if (train_step(whole, 2) != ccomSuccess || train_step(part, 2) != ccomSuccess) return 4;
  }
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 2 || ccomGetLaunch(&rank, &nranks, nullptr, nullptr) != ccomSuccess) return 3;
  const std::string what = argv[1];
  if (what == "calls" || what == "late") return call_on(what == "late");
  if (what == "deadlock" || what == "parts") return split_and_call(what == "deadlock");
  if (what != "short") return 3;
  ccomComm_t comm = join_as("short");
  for (int call = 0; call < 10; ++call)
    if (train_step(comm, 2) != ccomSuccess) return 4;
  return ccomCommDestroy(comm) == ccomSuccess ? 0 : 4;
}
