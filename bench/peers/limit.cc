// SPDX-License-Identifier: Apache-2.0
//
// What this machine allows, as bench/compare measures it: collectives of float32 between the ranks of a host with flags
// and staging memory alone, without anything else that a library needs, or an allreduce with sockets alone; the headers
// say what each has to do at least. Every output is verified as that of a library is. Before the figures of a size are
// taken, every setting is tried on it; the fastest one is measured. COMPARE_BUFFERS: ordinary (private pages) or mapped
// (all ranks reach the buffers of all). COMPARE_TRANSPORT: shm, or tcp, over the loopback interface.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "limit_allreduce.h"
#include "limit_broadcast.h"
#include "limit_exchange.h"
#include "limit_tcp.h"
#include "measure.h"

namespace {

using limit::Collective;
using limit::Kind;
using limit::Rank;
using limit::Setting;
using limit::Way;

// Zeros at first; all ranks map the same.
void* map_file(const std::string& path, size_t bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) sync_fail_with("no shared memory");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) sync_fail_with("no shared memory");
  return memory;
}

// The fastest setting; the same on all ranks.
Setting search(Collective& collective, const std::vector<Setting>& settings, const float* send, float* recv,
               size_t count) {
  struct Trial {
    Setting setting;
    double us;
    int calls;
  };
  constexpr double kSampleUs = 200, kLongUs = 5000;
  constexpr size_t kFinalists = 6;
  const auto timed = [&](const Setting& setting, int calls) {
    return collective.timed(setting, calls, send, recv, count);
  };
  std::vector<Trial> trials;
  for (const Setting& setting : settings) {
    const double first = timed(setting, 1);
    const int calls = std::clamp(static_cast<int>(kSampleUs / first), 1, 200);
    trials.push_back({setting, calls == 1 ? first : timed(setting, calls), calls});
  }
  const auto is_faster = [](const Trial& a, const Trial& b) { return a.us < b.us; };
  std::stable_sort(trials.begin(), trials.end(), is_faster);
  if (trials.size() > kFinalists) trials.erase(trials.begin() + kFinalists, trials.end());
  const int rounds = trials[0].us > kLongUs ? 2 : 6;
  for (int round = 0; round < rounds; ++round) {
    for (Trial& trial : trials) trial.us = std::min(trial.us, timed(trial.setting, trial.calls));
  }
  return std::min_element(trials.begin(), trials.end(), is_faster)->setting;
}

// A line that bench/compare passes over.
void tell(const Setting& setting, size_t count) {
  constexpr const char* kWays[] = {"mailbox", "staged", "mapped", "shared", "inputs", "parts"};
  std::printf("%zu bytes: %s", count * sizeof(float), kWays[static_cast<int>(setting.way)]);
  if (setting.chunk > 0) std::printf(", %zu KiB", setting.chunk >> 10);
  std::printf("%s%s%s%s", setting.streams_stage ? ", streamed stage" : "",
              setting.streams_result ? ", streamed result" : "", setting.streams_output ? ", streamed output" : "",
              setting.claims ? ", claimed lines" : "");
  std::printf(", %zu banks%s\n", setting.banks, setting.sleeps ? ", sleeps" : "");
}

struct Peer {
  int rank;
  std::unique_ptr<Collective> collective;
  int taken = 0;  // buffers
};
Peer* self = nullptr;

void* allocate(size_t) { return self->collective->half(self->taken++ % 2); }
void release(void*, size_t) {}

int call(measure_collective, const float* send, float* recv, size_t count) {
  static size_t known = 0;
  static Setting setting;
  if (count != known) {
    known = count;
    setting = search(*self->collective, self->collective->settings(count), send, recv, count);
    if (self->rank == 0) tell(setting, count);
  }
  self->collective->call(setting, send, recv, count);
  return 0;
}

std::unique_ptr<Collective> collective_named(const std::string& name, bool is_tcp, int rank, int ranks, Rank* shared) {
  if (is_tcp) {
    if (name != "allreduce") sync_fail_with("limit: over TCP allreduce alone");
    return std::make_unique<limit::TcpAllreduce>(rank, ranks, shared);
  }
  if (name == "allreduce") return std::make_unique<limit::Allreduce>(rank, ranks, shared);
  if (name == "broadcast") return std::make_unique<limit::Broadcast>(rank, ranks, shared);
  if (name == "allgather") return std::make_unique<limit::Exchange>(Kind::Allgather, rank, ranks, shared);
  if (name == "alltoall") return std::make_unique<limit::Exchange>(Kind::Alltoall, rank, ranks, shared);
  if (name != "reduce_scatter") sync_fail_with("limit: not reduce, gather and scatter");
  return std::make_unique<limit::Exchange>(Kind::ReduceScatter, rank, ranks, shared);
}

size_t largest(const char* sizes) {
  size_t most = sizeof(float);
  while (*sizes != '\0') {
    char* end;
    most = std::max<size_t>(most, std::strtoull(sizes, &end, 10));
    sizes = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  return most;
}

}  // namespace

int main() {
  int rank, ranks;
  measure_launch(&rank, &ranks);
  const bool is_mapped = std::string(sync_setting("COMPARE_BUFFERS", "ordinary")) == "mapped";
  const bool is_tcp = std::string(sync_setting("COMPARE_TRANSPORT", "shm")) == "tcp";
  const std::string path = sync_setting("COMPARE_SYNC", nullptr);
  auto* shared = static_cast<Rank*>(map_file(path + ".limit", static_cast<size_t>(ranks) * sizeof(Rank)));
  Peer peer{rank, collective_named(sync_setting("COMPARE_COLLECTIVE", nullptr), is_tcp, rank, ranks, shared)};
  self = &peer;
  measure_peer measured{};
  measured.version = "1";
  measured.call = call;
  if (is_mapped) {
    constexpr size_t kPage = 4096;
    const size_t half = (largest(sync_setting("COMPARE_SIZES", nullptr)) + kPage - 1) / kPage * kPage;
    const size_t all = static_cast<size_t>(ranks) * 2 * half;
    peer.collective->set_mapped(static_cast<char*>(map_file(path + ".arena", all)), half);
    measured.allocate = allocate;
    measured.release = release;
  }
  return measure_run(&measured, rank, ranks);
}
