// SPDX-License-Identifier: Apache-2.0
//
// Where futures are fulfilled. Their callbacks are the user's: they may take long, and may wait for operations and for
// other futures; so they never run on a thread that operations need, and each that waits gets company.
#pragma once

#include <functional>

namespace ccom_torch {

// Runs `task` soon, on a thread that waits for nothing else. Tasks begin in the order given.
void complete_elsewhere(std::function<void()> task);
// Waits, at most `seconds`, until all tasks given so far have run.
void drain_completions(double seconds);

}  // namespace ccom_torch
