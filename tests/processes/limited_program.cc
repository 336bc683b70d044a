// SPDX-License-Identifier: Apache-2.0
//
// One rank of a job whose resources are limited, or counted; one line per event on stdout, for the parent to read.
//   limited_program calls [N]
//     "met", then collectives of several sizes, one of them N times, so that ways are found, sends and another
//     communicator; "done", or "failed ..." or "init ..." (rank.h)
//   limited_program groups N
//     N times: a communicator, allreduce, destroy; "used DESCRIPTORS THREADS MAPPINGS KIB BYTES" after the first 20 and
//     after the last: KIB resident once the allocator has given back what is free, BYTES in use of all its arenas
//   limited_program memory N M
//     N times, with all ranks: takes M MiB at a time with ccomMemAlloc until there are no more, then gives all back;
//     "took MIB" and the error's text each time, "done"
// CCOM_TEST_LIMIT=KIND:VALUE is put on this process before it does anything: nofile, as (bytes), memory or pids (a
// folder of that control group). CCOM_TEST_STDERR=FILE: where stderr goes.
#include <ccom/ccom.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/resources.h"
#include "tests/processes/rank.h"

namespace {

using namespace ccom;

// The communicator is left to the end of the process.
void require(ccomResult_t result) { ccom::require(nullptr, result); }

// The hard one as well, unless `is_soft`.
void set_limit(int kind, const std::string& value, bool is_soft = false) {
  rlimit limit{};
  if (::getrlimit(kind, &limit) != 0) std::_Exit(8);
  limit.rlim_cur = std::stoull(value);
  if (!is_soft) limit.rlim_max = limit.rlim_cur;
  if (::setrlimit(kind, &limit) != 0) std::_Exit(8);
}

void enter_limits() {
  const char* const given = std::getenv("CCOM_TEST_LIMIT");
  if (given == nullptr) return;
  const std::string text = given;
  const std::string kind = text.substr(0, text.find(':'));
  const std::string value = text.substr(text.find(':') + 1);
  if (kind == "nofile") return set_limit(RLIMIT_NOFILE, value);
  if (kind == "soft_nofile") return set_limit(RLIMIT_NOFILE, value, true);
  if (kind == "as") return set_limit(RLIMIT_AS, value);
  std::ofstream processes(value + "/cgroup.procs");
  processes << ::getpid() << std::flush;
  if (!processes) std::_Exit(8);
}

void sum(ccomComm_t comm, size_t count) {
  const std::vector<float> in(count, static_cast<float>(rank + 1));
  std::vector<float> out(count);
  require(ccomAllReduce(in.data(), out.data(), count, ccomFloat32, ccomSum, comm, nullptr));
  const float expected = static_cast<float>(nranks * (nranks + 1)) / 2;
  if (std::ranges::all_of(out, [expected](float value) { return value == expected; })) return;
  say("wrong");
  std::exit(1);
}

void call(ccomComm_t comm, int times) {
  for (int i = 0; i < times; ++i) sum(comm, 1 << 16);
  for (const size_t count : {2, 1 << 14, 1 << 20}) sum(comm, count);
  std::vector<float> mine(1 << 16), all(mine.size() * static_cast<size_t>(nranks));
  require(ccomAllGather(mine.data(), all.data(), mine.size(), ccomFloat32, comm, nullptr));
  require(ccomAlltoAll(all.data(), all.data(), mine.size(), ccomFloat32, comm, nullptr));
  const int to = (rank + 1) % nranks;
  const int from = (rank + nranks - 1) % nranks;
  require(ccomGroupStart());
  require(ccomSend(mine.data(), mine.size(), ccomFloat32, to, comm, nullptr));
  require(ccomRecv(all.data(), mine.size(), ccomFloat32, from, comm, nullptr));
  require(ccomGroupEnd());
  ccomComm_t another = join(nullptr);
  sum(another, 1 << 14);
  require(ccomCommDestroy(another));
  require(ccomBarrier(comm, nullptr));
}

// The least of several looks: gRPC's threads may still be ending what the last group has left to them.
size_t bytes_in_use() {
  size_t least = SIZE_MAX;
  for (int look = 0; look < 25; ++look) {
    const struct mallinfo2 info = ::mallinfo2();
    least = std::min(least, info.uordblks + info.hblkhd);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return least;
}

void count_resources() {
  const size_t in_use = bytes_in_use();
  ::malloc_trim(0);
  size_t mappings = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++mappings;
  say("used " + std::to_string(open_descriptors()) + " " + std::to_string(running_threads()) + " " +
      std::to_string(mappings) + " " + std::to_string(resident_bytes() / 1024) + " " + std::to_string(in_use));
}

void make_groups(ccomComm_t comm, int times) {
  require(ccomBarrier(comm, nullptr));  // keeps its plan
  for (int i = 0; i < times; ++i) {
    ccomComm_t part = join(nullptr);
    sum(part, 64);
    require(ccomCommDestroy(part));
    if (i == 19) count_resources();
  }
  require(ccomBarrier(comm, nullptr));
  count_resources();
}

// All at once.
void make_parts(ccomComm_t comm, int times) {
  std::vector<ccomComm_t> parts(static_cast<size_t>(times));
  const int before = open_descriptors();
  for (ccomComm_t& part : parts) {
    const ccomResult_t made = ccomCommSplit(comm, 0, rank, &part, nullptr);
    if (made != ccomSuccess) {
      say_failure(nullptr, made);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));  // others hear of the error, not of this rank's end
      std::exit(0);
    }
    sum(part, 64);
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  say("parts " + std::to_string(open_descriptors() - before) + " " + std::to_string(limit.rlim_cur));
  for (ccomComm_t part : parts) sum(part, 64);
  for (ccomComm_t part : parts) require(ccomCommDestroy(part));
  require(ccomBarrier(comm, nullptr));
  say("left " + std::to_string(std::max(0, open_descriptors() - before)));
}

void take_memory(ccomComm_t comm, int times, size_t mib) {
  for (int i = 0; i < times; ++i) {
    std::vector<void*> taken;
    require(ccomBarrier(comm, nullptr));
    ccomResult_t result = ccomSuccess;
    while (result == ccomSuccess) {
      void* memory = nullptr;
      result = ccomMemAlloc(&memory, mib << 20);
      if (result == ccomSuccess) taken.push_back(memory);
    }
    say("took " + std::to_string(taken.size() * mib) + " " + ccomGetLastError(nullptr));
    require(ccomBarrier(comm, nullptr));
    for (void* memory : taken) require(ccomMemFree(memory));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* const log = std::getenv("CCOM_TEST_STDERR");
  if (log != nullptr && std::freopen(log, "a", stderr) == nullptr) return 8;
  enter_limits();
  require(ccomGetLaunch(&rank, &nranks, nullptr, nullptr));
  ccomComm_t comm = join(nullptr);
  say("met");
  const std::string what = argc > 1 ? argv[1] : "calls";
  if (what == "groups") make_groups(comm, std::atoi(argv[2]));
  if (what == "parts") make_parts(comm, std::atoi(argv[2]));
  if (what == "memory") take_memory(comm, std::atoi(argv[2]), std::stoul(argv[3]));
  try {
    if (what == "calls") call(comm, argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const std::bad_alloc&) {  // of its buffers: ccom throws nothing
    say("failed 0 [] this program has no memory for its buffers");
    return 1;
  }
  require(ccomCommDestroy(comm));
  say("done");
}
