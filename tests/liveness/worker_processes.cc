// SPDX-License-Identifier: Apache-2.0
#include "tests/liveness/worker_processes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>

#include "liveness/monitor.h"
#include "tests/harness/waiting.h"

namespace ccom::test {

namespace {

constexpr auto kStartup = std::chrono::seconds(20);

// Inherited by the workers.
int make_memory(const char* name, size_t size_bytes) {
  const int fd = ::memfd_create(name, 0);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size_bytes)) != 0) std::abort();
  return fd;
}

void* map_memory(int fd, size_t size_bytes) {
  void* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) std::abort();
  return memory;
}

// A forked process that became the test program again.
pid_t start_process(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) ::execv("/proc/self/exe", pointers.data());
  ::_exit(127);
}

std::vector<HostMembers> hosts_of(const std::vector<int>& layout) {
  std::vector<HostMembers> hosts;
  Rank next = 0;
  for (size_t h = 0; h < layout.size(); ++h) {
    hosts.push_back({.name = "host" + std::to_string(h), .ranks = {}});
    for (int i = 0; i < layout[h]; ++i) hosts.back().ranks.push_back(next++);
  }
  return hosts;
}

int host_of(const std::vector<int>& layout, int rank) {
  int host = 0;
  while (rank >= layout[static_cast<size_t>(host)]) rank -= layout[static_cast<size_t>(host++)];
  return host;
}

void copy_text(char* target, size_t size, const std::string& text) { std::snprintf(target, size, "%s", text.c_str()); }

void note_error(WorkerRecord& record, const Status& error) {
  copy_text(record.text, sizeof record.text, error.message());
  copy_text(record.host, sizeof record.host, error.host());
  record.code = static_cast<int>(error.code());
  record.peer_count = std::min(static_cast<int>(error.peers().size()), 32);
  std::copy_n(error.peers().begin(), record.peer_count, record.peers);
  record.failed_at_ns.store(monotonic_ns(), std::memory_order_release);
}

// A rank's life in a worker process.
class Worker {
 public:
  Worker(std::vector<int> layout, int rank, int64_t dead_ms, int stage_fd, int board_fd)
      : layout_(std::move(layout)), rank_(rank), dead_ms_(dead_ms), hosts_(hosts_of(layout_)) {
    records_ = static_cast<SharedRecords*>(map_memory(stage_fd, sizeof(SharedRecords)));
    const int host = host_of(layout_, rank);
    const size_t size = Monitor::board_bytes(layout_[static_cast<size_t>(host)]);
    board_ = Bytes(static_cast<std::byte*>(map_memory(board_fd, size)), size);
  }

  Status join() {
    MonitorConfig config{.rank = rank_,
                         .hosts = hosts_,
                         .host_index = host_of(layout_, rank_),
                         .key = Secret(std::span<const uint8_t, 32>(records_->secret)),
                         .communicator = 1,
                         .dead_ms = dead_ms_,
                         .bind_address = "127.0.0.1"};
    const Rank leader = hosts_[static_cast<size_t>(config.host_index)].ranks.front();
    if (leader != rank_ && !wait_until([&] { return phase(leader) >= Phase::Created; }, kStartup))
      return error(Code::Timeout, "the leader did not come");
    CCOM_TRY_ASSIGN(monitor_, Monitor::create(config, board_, leader == rank_));
    CCOM_TRY(monitor_->prepare({}));
    copy_text(record().address, sizeof record().address, monitor_->addresses().control);
    copy_text(record().agreement, sizeof record().agreement, monitor_->addresses().agreement);
    record().phase.store(Phase::Created);
    std::vector<Monitor::Addresses> addresses;
    for (Rank r = 0; r < ranks(); ++r) {
      if (!wait_until([&] { return phase(r) >= Phase::Created; }, kStartup))
        return error(Code::Timeout, "rank %d did not come", r);
      addresses.push_back({records_->workers[r].address, records_->workers[r].agreement});
    }
    monitor_->on_failure([this] { record().listener_at_ns.store(monotonic_ns()); });
    return monitor_->connect(addresses, Deadline::after_ms(20000));
  }

  // Until told to end: waits as an operation would, or, if idle, computes.
  void live(bool idle) {
    record().phase.store(Phase::Ready);
    bool reported = false;
    while (records_->finish.load() == 0 && (records_->leave_mask.load() >> rank_ & 1) == 0) {
      if (!reported && records_->reporter_plus_one.load() == rank_ + 1) {
        reported = true;
        (void)monitor_->report(error(Code::Aborted, "rank %d aborts", rank_).with_peers({rank_}));
      }
      const Status status = idle ? monitor_->status() : monitor_->check();
      if (!status.is_ok() && record().failed_at_ns.load() == 0) note_error(record(), status);
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    const int64_t start = monotonic_ns();
    monitor_.reset();
    record().destroy_ns.store(monotonic_ns() - start);
    record().phase.store(Phase::Destroyed);
  }

 private:
  WorkerRecord& record() { return records_->workers[rank_]; }
  Phase phase(Rank rank) const { return records_->workers[rank].phase.load(); }
  int ranks() const { return hosts_.back().ranks.back() + 1; }

  std::vector<int> layout_;
  int rank_;
  int64_t dead_ms_;
  std::vector<HostMembers> hosts_;
  SharedRecords* records_;
  Bytes board_;
  std::unique_ptr<Monitor> monitor_;
};

std::vector<int> parse_layout(const std::string& text) {
  std::vector<int> layout;
  for (char digit : text) layout.push_back(digit - '0');
  return layout;
}

}  // namespace

int64_t monotonic_ns() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// --worker LAYOUT RANK DEAD_MS STAGE_FD BOARD_FD IDLE BALLAST_MIB
int run_worker(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 9) return 2;
  const size_t ballast_bytes = static_cast<size_t>(std::atoi(argv[8])) << 20;
  const std::unique_ptr<char[]> ballast(new char[ballast_bytes + 1]);
  for (size_t i = 0; i < ballast_bytes; i += 4096) static_cast<volatile char*>(ballast.get())[i] = 1;
  Worker worker(parse_layout(argv[2]), std::atoi(argv[3]), std::atoll(argv[4]), std::atoi(argv[5]), std::atoi(argv[6]));
  if (const Status joined = worker.join(); !joined.is_ok()) {
    std::fprintf(stderr, "worker %s: %s\n", argv[3], joined.message().c_str());
    return 1;
  }
  worker.live(std::atoi(argv[7]) != 0);
  return 0;
}

WorkerProcesses::WorkerProcesses(WorkerOptions options) : options_(std::move(options)) {
  const int stage_fd = make_memory("records", sizeof(SharedRecords));
  records_ = static_cast<SharedRecords*>(map_memory(stage_fd, sizeof(SharedRecords)));
  fill_random(std::as_writable_bytes(std::span(records_->secret)));
  std::vector<int> board_fds;
  for (int ranks : options_.layout) board_fds.push_back(make_memory("board", Monitor::board_bytes(ranks)));
  const int total = hosts_of(options_.layout).back().ranks.back() + 1;
  for (int rank = 0; rank < total; ++rank)
    pids_.push_back(
        start_process(arguments(rank, stage_fd, board_fds[static_cast<size_t>(host_of(options_.layout, rank))])));
  killed_.resize(pids_.size());
  stopped_.resize(pids_.size());
  ::close(stage_fd);
  for (int fd : board_fds) ::close(fd);
  for (int rank = 0; rank < total; ++rank) {
    if (wait_for_phase(rank, Phase::Ready, 20000)) continue;
    finish();
    throw std::runtime_error("rank " + std::to_string(rank) + " is not ready");
  }
}

std::vector<std::string> WorkerProcesses::arguments(int rank, int stage_fd, int board_fd) const {
  std::string layout;
  for (int ranks : options_.layout) layout += static_cast<char>('0' + ranks);
  return {"liveness-worker",
          "--worker",
          layout,
          std::to_string(rank),
          std::to_string(options_.dead_ms),
          std::to_string(stage_fd),
          std::to_string(board_fd),
          std::to_string(options_.idle_mask >> rank & 1),
          std::to_string(rank == options_.ballast_rank ? options_.ballast_mib : 0)};
}

WorkerProcesses::~WorkerProcesses() {
  finish();
  ::munmap(records_, sizeof(SharedRecords));
}

void WorkerProcesses::signal(int rank, int number) {
  const auto index = static_cast<size_t>(rank);
  if (number == SIGKILL) killed_[index] = true;
  if (number == SIGSTOP || number == SIGCONT) stopped_[index] = number == SIGSTOP;
  ::kill(pids_[index], number);
}

void WorkerProcesses::signal_host(int host, int number) {
  for (int rank = 0; rank < ranks(); ++rank)
    if (host_of(options_.layout, rank) == host) signal(rank, number);
}

bool WorkerProcesses::wait_for_errors(const std::vector<int>& expected, int64_t within_ms) {
  return wait_until(
      [&] {
        return std::ranges::all_of(expected,
                                   [this](int rank) { return records_->workers[rank].failed_at_ns.load() != 0; });
      },
      std::chrono::milliseconds(within_ms));
}

bool WorkerProcesses::wait_for_phase(int rank, Phase phase, int64_t within_ms) {
  return wait_until([&] { return records_->workers[rank].phase.load() >= phase; },
                    std::chrono::milliseconds(within_ms));
}

std::vector<int> WorkerProcesses::peers_of(int rank) {
  const WorkerRecord& record = records_->workers[rank];
  return {record.peers, record.peers + record.peer_count};
}

int WorkerProcesses::finish() {
  records_->finish.store(1);
  int bad = 0;
  for (size_t i = 0; i < pids_.size(); ++i) {
    if (pids_[i] == 0) continue;
    if (stopped_[i]) ::kill(pids_[i], SIGCONT);
    int outcome = 0;
    pid_t ended = 0;
    if (!wait_until([&] { return (ended = ::waitpid(pids_[i], &outcome, WNOHANG)) != 0; }, std::chrono::seconds(10))) {
      std::fprintf(stderr, "rank %zu did not end; its phase is %d\n", i,
                   static_cast<int>(records_->workers[i].phase.load()));
      ::kill(pids_[i], SIGKILL);
      ::waitpid(pids_[i], &outcome, 0);
    }
    const bool fine = killed_[i] || (WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
    bad += fine ? 0 : 1;
    pids_[i] = 0;
  }
  return bad;
}

}  // namespace ccom::test
