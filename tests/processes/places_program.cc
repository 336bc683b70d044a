// SPDX-License-Identifier: Apache-2.0
//
// A rank whose place in the program others are to name.
//   places_program late HOW     rank 3 does not come to call 6: sleeps in evaluate() (HOW: place, with a locator that
//                               says so; plain; stuck, with one that does not return), the others' timeout is said:
//                               "failed ..."
//   places_program stop         calls without end; "ready", "failed ..."
//   places_program counts       1,000 calls of 8 bytes and 10 of 1 MiB, then "ready"; stays for 20 s
// Compiled with debug information.
#include <ccom/ccom.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;

[[gnu::noinline]] ccomResult_t train_step(ccomComm_t comm, float* values) {
  return ccomAllReduce(values, values, 2, ccomFloat32, ccomSum, comm, nullptr);  // train_step's line
}

[[gnu::noinline]] void evaluate() { std::this_thread::sleep_for(std::chrono::seconds(20)); }

void say_evaluate(char* text, size_t size, void* user) {
  std::snprintf(text, size, "%s", static_cast<const char*>(user));
}
void say_nothing(char*, size_t, void*) { std::this_thread::sleep_for(std::chrono::seconds(30)); }

int be_late(const std::string& how) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 2000;
  static char place[] = "places_program.cc:33 (evaluate)";
  if (how == "place") ccomSetLocator(&say_evaluate, place);
  if (how == "stuck") ccomSetLocator(&say_nothing, nullptr);
  ccomComm_t comm = join(&config);
  float values[2] = {1, 1};
  for (int call = 1;; ++call) {
    if (call == 6 && rank == 3) {
      say("evaluates");
      evaluate();
    }
    require(comm, train_step(comm, values));
  }
}

int call_on() {
  ccomComm_t comm = join(nullptr);
  float values[2] = {1, 1};
  for (int call = 1;; ++call) {
    require(comm, train_step(comm, values));
    if (call == 10) say("ready");
  }
}

int counts() {
  ccomComm_t comm = join(nullptr);
  std::vector<float> values(262144);
  for (int call = 0; call < 1000; ++call)
    if (train_step(comm, values.data()) != ccomSuccess) return 4;
  for (int call = 0; call < 10; ++call) {
    if (ccomAllReduce(values.data(), values.data(), values.size(), ccomFloat32, ccomSum, comm, nullptr) != ccomSuccess)
      return 4;
  }
  say("ready");
  ::usleep(20'000'000);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !begin_rank()) return 3;
  const std::string what = argv[1];
  if (what == "late" && argc > 2) return be_late(argv[2]);
  if (what == "stop") return call_on();
  return what == "counts" ? counts() : 3;
}
