// SPDX-License-Identifier: Apache-2.0
//
// A rank that tools look at from outside.
//   seen_program calls     calls of 8 bytes and 64 KiB without end
//   seen_program late      the same, but the last rank sleeps in evaluate() before its 1000th; a locator says so
//   seen_program large     calls of 64 MiB without end
//   seen_program deadlock  two communicators of all ranks; ranks 0 and 1 call them in opposite order;
//                          "failed ..."
//   seen_program receive   the first rank waits for a message of the last one, which sleeps in evaluate(); "failed ..."
//   seen_program parts     splits into halves; calls on both without end
//   seen_program short     ten calls
// Each says "ready" before it goes on for long. Compiled with debug information.
#include <ccom/ccom.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;

[[gnu::noinline]] ccomResult_t train_step(ccomComm_t comm, size_t count) {
  static std::vector<float> values(1 << 14);
  if (values.size() < count) values.resize(count);
  return ccomAllReduce(values.data(), values.data(), count, ccomFloat32, ccomSum, comm, nullptr);  // train_step's line
}

[[gnu::noinline]] void evaluate() { ::sleep(60); }  // evaluate's line
constexpr int kEvaluateLine = __LINE__ - 1;

void say_evaluate(char* text, size_t size, void*) {
  std::snprintf(text, size, "seen_program.cc:%d (evaluate)", kEvaluateLine);
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
      ccomSetLocator(&say_evaluate, nullptr);
      evaluate();
    }
    const ccomResult_t result = train_step(comm, call % 2 == 0 ? 2 : 1 << 14);
    if (result != ccomSuccess) return report_failure(comm, result);
    if (call == 100) say("ready");
  }
}

[[gnu::noinline]] ccomResult_t pull(ccomMessage_t message) {
  const ccomResult_t result = ccomMessageWait(message, -1, nullptr);  // pull's line
  ccomMessageFree(message);
  return result;
}

int wait_for_message() {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.commName = "training";
  config.messages = 1;
  ccomComm_t comm = join(&config);
  if (train_step(comm, 2) != ccomSuccess) return 4;
  if (rank != 0) {
    ccomSetLocator(&say_evaluate, nullptr);
    say("ready");
    evaluate();
    return 4;
  }
  char data[1024];
  ccomMessage_t message = nullptr;
  if (ccomMessageRecv(data, sizeof data, nranks - 1, 7, comm, nullptr, nullptr, &message) != ccomSuccess) return 4;
  say("ready");
  return report_failure(comm, pull(message));
}

int call_large() {
  ccomComm_t comm = join_as("training");
  say("ready");
  for (;;) {
    const ccomResult_t result = train_step(comm, 1 << 24);
    if (result != ccomSuccess) return report_failure(comm, result);
  }
}

int split_and_call(bool crosses) {
  ccomComm_t whole = join_as("whole"), part = nullptr;
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.commName = "part";
  if (ccomCommSplit(whole, crosses ? 0 : rank % 2, rank, &part, &config) != ccomSuccess) return 4;
  say("ready");
  if (crosses) {  // whoever is rank 0 begins with the other one
    ccomComm_t first = rank == 0 ? part : whole;
    if (rank != 0) ::usleep(500'000);  // so that rank 0 times out while this one is still in its call
    say_failure(first, train_step(first, 2));
    return static_cast<int>(::sleep(60));  // an end would be a death to the other one
  }
  for (;;) {
    if (train_step(whole, 2) != ccomSuccess || train_step(part, 2) != ccomSuccess) return 4;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !begin_rank()) return 3;
  const std::string what = argv[1];
  if (what == "calls" || what == "late") return call_on(what == "late");
  if (what == "deadlock" || what == "parts") return split_and_call(what == "deadlock");
  if (what == "receive") return wait_for_message();
  if (what == "large") return call_large();
  if (what != "short") return 3;
  ccomComm_t comm = join_as("short");
  for (int call = 0; call < 10; ++call)
    if (train_step(comm, 2) != ccomSuccess) return 4;
  return ccomCommDestroy(comm) == ccomSuccess ? 0 : 4;
}
