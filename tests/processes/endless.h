// SPDX-License-Identifier: Apache-2.0
//
// Calls without end, for tests that end them: by a kill, an abort, a lost network.
#pragma once

#include <cstddef>
#include <string>

namespace ccom {

// Calls `collective`, or "cycle": allreduce, allgather, reduce_scatter, broadcast, alltoall, barrier and a ring of
// sends and receives by turns, with `bytes` in the larger buffer, or "parts": splits the communicator in two, an
// allreduce on this rank's part, and its end; checks results. Says "ready" after the third call,
// "calls N" once a second, "wrong ..." for a wrong result, "failed ..." for the first error.
int call_without_end(const std::string& collective, size_t bytes);

// The same cycle, ended on SIGUSR1 by another thread or, where it has to be the same, by this one:
//   abort     ccomCommAbort by a thread of its own
//   finalize  ccomCommFinalize by a thread of its own, beside the calls
//   destroy   ccomCommDestroy between two calls
//   queued_abort, queued_finalize, queued_destroy   while calls are queued on a stream without being waited for
// Says "returned MICROSECONDS" of that call; "stopped CODE TEXT" after the last call and when the output is filled with
// canaries, then what watch_canary() says of it; "failed ...".
// BUFFERS: as for allocate().
int end_by_signal(const std::string& how, const std::string& buffers, size_t bytes);

// Calls `collective` on BUFFERS as allocate() makes them, until the first error; checks results. In call `number`, from
// 1, rank `victim` kills itself: when so many percent of the time of its last call have passed, at the latest when the
// call is over. "wrong ...", "failed ..." as above.
struct Death {
  int victim = 0, number = 1, percent = 0;
};
int call_until_a_death(const std::string& collective, const std::string& buffers, size_t bytes, const Death& death);

// Allreduces and splits by turns ("parts") with `bytes`, and at every error ccomCommShrink and on with the ranks that
// are left: "ready" after the third call, "left [0,2]" with their first ranks after the first call of each smaller
// communicator, "goes_on [0,2]" after 100 more that are right, "failed ..." if it cannot be shrunk, "wrong ...".
int go_on_after_deaths(size_t bytes);

}  // namespace ccom
