// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C while Python's main thread is blocked in code that looks at no signals, as torch's is in the backward pass of
// DistributedDataParallel, where it waits for futures.
#pragma once

namespace ccom_python {

// Asks Python to tell of signals (signal.set_wakeup_fd), once per process. Does nothing if the application has asked
// for that itself, or outside the main thread. With the GIL.
void watch_wakeups();

// True if SIGINT has come half a second ago, its handler is Python's own, which raises KeyboardInterrupt, and the main
// thread has not come to run it: what it waits for has to be ended. For other threads, every few milliseconds, without
// the GIL.
bool is_interrupt_stuck();

// Python handles signals in the thread that has started it: the process's first.
bool is_main_thread();

}  // namespace ccom_python
