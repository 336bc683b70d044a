// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells in /proc of a thread of any process.
#pragma once

#include <cstdint>
#include <string_view>

namespace ccom {

enum class ThreadState : uint8_t {
  Unknown,   // cannot be read, or there is no such thread
  Runnable,  // runs, or waits for a core
  Waiting,   // sleeps, is blocked, stopped or frozen
  Ending,    // is exiting or killed, whenever it gets a core to do so
};

ThreadState thread_state(int process, int thread);
// What /proc/PROCESS/task/THREAD/stat alone says.
ThreadState parse_thread_state(std::string_view stat);

// Ids of processes mean the same in two processes with equal numbers; 0: an id means nothing in this one's /proc.
uint64_t pid_namespace();

}  // namespace ccom
