// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads of the test.
#pragma once

#include <chrono>
#include <functional>

namespace ccom {

// Five sixths of CCOM_TEST_TIMEOUT, which is ctest's limit of the test in seconds; without it, five minutes.
std::chrono::milliseconds deadline_of_ranks();

// Calls body(rank) in a thread for each rank; returns when all have ended. What fails in a rank names it, exceptions
// too. At the deadline it prints where each rank is that has not ended, and ends the program.
void run_ranks(int ranks, const std::function<void(int)>& body,
               std::chrono::milliseconds deadline = deadline_of_ranks());
// The same for threads that are no ranks.
void run_threads(int threads, const std::function<void(int)>& body);

// Whether `body` has ended without an exception and without an ASSERT that failed in this thread.
bool passes(const std::function<void()>& body);

}  // namespace ccom
