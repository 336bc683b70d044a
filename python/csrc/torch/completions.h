// SPDX-License-Identifier: Apache-2.0
//
// Threads that complete futures. The callbacks are the user's: they may be slow, and may wait for operations and other
// futures; so they never run on a thread that operations need, and there is a further thread for each that blocks.
#pragma once

#include <functional>

namespace ccom_torch {

// Runs `task` soon, on a separate thread. Tasks start in the given order.
void complete_elsewhere(std::function<void()> task);
// Waits at most `seconds` until all tasks given so far have run.
void drain_completions(double seconds);

}  // namespace ccom_torch
