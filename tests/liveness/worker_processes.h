// SPDX-License-Identifier: Apache-2.0
//
// Ranks as real processes on pretended hosts. The test program starts itself again with --worker; a memfd, the
// SharedRecords, carries addresses in and observations out. Workers die with the test (PR_SET_PDEATHSIG) and are ended
// by ~WorkerProcesses at the latest.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include "base/secret.h"

namespace ccom::test {

inline constexpr int kMaxWorkers = 16;

enum class Phase : uint32_t { Started, Created, Ready, Destroyed };

struct WorkerRecord {
  std::atomic<Phase> phase;
  std::atomic<int64_t> failed_at_ns;    // when check() or status() first returned the error
  std::atomic<int64_t> listener_at_ns;  // when the listener was called
  std::atomic<int64_t> destroy_ns;      // what the destructor took
  char address[64], agreement[64];
  char text[1100];
  char host[64];
  int code;
  int peer_count;
  int peers[32];
};

// In shared memory, zeroed.
struct SharedRecords {
  std::atomic<int> reporter_plus_one;  // this rank is to report an error
  std::atomic<uint32_t> finish;        // everybody destroys its monitor and exits
  std::atomic<uint32_t> leave_mask;    // these do so now
  uint8_t secret[32];
  WorkerRecord workers[kMaxWorkers];
};

struct WorkerOptions {
  std::vector<int> layout;  // ranks per host
  int64_t dead_ms = 3000;
  uint32_t idle_mask = 0;  // these never call check(): they compute
  int ballast_rank = -1;   // touches ballast_mib of memory
  int ballast_mib = 0;
};

int64_t monotonic_ns();

class WorkerProcesses {
 public:
  // Returns when all are ready; throws if they do not become so.
  explicit WorkerProcesses(WorkerOptions options);
  ~WorkerProcesses();
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  int ranks() const { return static_cast<int>(pids_.size()); }
  SharedRecords& records() { return *records_; }
  void signal(int rank, int number);
  void signal_host(int host, int number);
  // Waits until each of `ranks` has seen an error; false if that takes longer.
  bool wait_for_errors(const std::vector<int>& ranks, int64_t within_ms);
  bool wait_for_phase(int rank, Phase phase, int64_t within_ms);
  std::vector<int> peers_of(int rank);
  std::string text_of(int rank) { return records_->workers[rank].text; }
  // Ends everybody; the number of workers that had to be killed or failed. Stopped ones are continued first.
  int finish();

 private:
  std::vector<std::string> arguments(int rank, int stage_fd, int board_fd) const;
  WorkerOptions options_;
  SharedRecords* records_ = nullptr;
  std::vector<pid_t> pids_;  // 0 once reaped
  std::vector<bool> killed_, stopped_;
};

// What a worker process does; never returns to the tests.
int run_worker(int argc, char** argv);

}  // namespace ccom::test
