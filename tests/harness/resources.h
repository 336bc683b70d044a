// SPDX-License-Identifier: Apache-2.0
//
// What this process uses of the machine, and whether that has grown.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

#include "tests/harness/folder.h"

namespace ccom {

// Of this process.
inline int open_descriptors() { return entries_of("/proc/self/fd"); }
#ifdef __SANITIZE_THREAD__
// ThreadSanitizer starts a thread of its own with the first of the program, here before any test counts threads.
inline const bool kSanitizersThreadRuns = (std::thread([] {}).join(), true);
#endif
inline int running_threads() { return entries_of("/proc/self/task"); }
inline size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}
inline size_t allocated_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

struct Resources {
  int descriptors = open_descriptors(), threads = running_threads();
  size_t resident = resident_bytes();
};

inline std::string text_of(const Resources& used) {
  return std::to_string(used.descriptors) + " descriptors, " + std::to_string(used.threads) + " threads, " +
         std::to_string(used.resident >> 10) + " KiB";
}

// Who comes to serve an id has gRPC's threads from then on, and allocators keep some of what is freed.
inline bool has_grown(const Resources& before, const Resources& after, size_t most_bytes = size_t{24} << 20) {
  constexpr int kMostDescriptors = 40, kMostThreads = 16;
#if defined(__SANITIZE_ADDRESS__)
  most_bytes += size_t{256} << 20;  // so much of what is freed the sanitizer keeps
#endif
  return after.resident > before.resident + most_bytes || after.descriptors > before.descriptors + kMostDescriptors ||
         after.threads > before.threads + kMostThreads;
}

}  // namespace ccom
