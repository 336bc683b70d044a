// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/progress.h"

#include <atomic>

#include "doors/mpi/handles.h"
#include "doors/mpi/mpi_below.h"

namespace ccom::mpi {
namespace {

thread_local int calls = 0;  // that this thread is in

// One thread at a time: it makes progress for all.
std::atomic_flag is_testing;
Handle request = 0;
bool is_begun = false;
char never;

int continue_waiting(void*) {
  make_progress();
  return 0;
}

}  // namespace

InCall::InCall() { ++calls; }
InCall::~InCall() { --calls; }

void make_progress() {
  if (calls == 0 || is_testing.test_and_set(std::memory_order_acquire)) return;
  int is_complete = 0;
  if (is_begun) mpi().Test(&request, &is_complete, mpi().numbers.status_ignore);
  is_testing.clear(std::memory_order_release);
}

void begin_progress(Handle alone) {
  is_begun = mpi().Irecv(&never, 1, handles().byte, 0, 0, alone, &request) == kSuccess;
}

void end_progress() {
  if (!is_begun) return;
  while (is_testing.test_and_set(std::memory_order_acquire)) {
  }
  is_begun = false;
  mpi().Cancel(&request);
  mpi().Wait(&request, mpi().numbers.status_ignore);
  is_testing.clear(std::memory_order_release);
}

void add_progress(ccomConfig_t& config) {
  config.interrupted = continue_waiting;
  config.interruptedOften = 1;
}

}  // namespace ccom::mpi
