// SPDX-License-Identifier: Apache-2.0
//
// Ranks that could run but hardly get a core are not dead: jobs with ranks at nice 19 beside 32 busy processes at nice
// 0 for each core, on one host, on two and with every rank a host, have no error, and go on when there is room again.
// On one core, for a few seconds and with a CCOM_DEAD_MS that a thread waits for a core there; an hour on all
// cores with the default by CCOM_TEST_LONG=1. CCOM_TEST_SECONDS: another time of each case.
//
// Whoever may not raise the priority of a thread (root, CAP_SYS_NICE, RLIMIT_NICE) tests one host alone: on others the
// starved thread is not seen.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <thread>

#include "tests/harness/child.h"
#include "tests/harness/effort.h"
#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

constexpr int kBusyPerCore = 32;
constexpr const char* kShortDeadMs = "1000";
const std::vector<std::string>& transports() {
  static const std::vector<std::string> all{"shm", "tcp", "mixed"}, one_host{"shm"};
  static const bool may_raise = [] {
    const int own = ::getpriority(PRIO_PROCESS, 0);
    return ::setpriority(PRIO_PROCESS, 0, own - 1) == 0 && ::setpriority(PRIO_PROCESS, 0, own) == 0;
  }();
  return may_raise ? all : one_host;
}
const std::vector<int> kAll = first_ranks(4);

// The last core that this process may use; in the long form all of them.
cpu_set_t crowded_cores() {
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) std::abort();
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&cores) > 1 && !is_long(); ++core) CPU_CLR(core, &cores);
  return cores;
}

// Processes that are busy while they are told to, all at the same instant: who starts them would be starved.
class Crowd {
 public:
  explicit Crowd(const cpu_set_t& cores) {
    void* const shared = ::mmap(nullptr, sizeof(Flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) std::abort();
    is_busy_ = new (shared) Flag(false);
    for (int i = 0; i < kBusyPerCore * CPU_COUNT(&cores); ++i) {
      const Child& child =
          *children_.emplace_back(std::make_unique<Child>([this] { return be_busy_when_told(); }, 7200));
      ::sched_setaffinity(child.pid(), sizeof cores, &cores);
    }
  }
  ~Crowd() {
    children_.clear();
    ::munmap(is_busy_, sizeof(Flag));
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  void set_busy(bool busy) { is_busy_->store(busy, std::memory_order_relaxed); }

 private:
  using Flag = std::atomic<bool>;
  int be_busy_when_told() const {
    for (;;) {
      if (!is_busy_->load(std::memory_order_relaxed)) ::usleep(20000);
    }
  }

  Flag* is_busy_ = nullptr;
  std::vector<std::unique_ptr<Child>> children_;
};

// All threads of the process compete with the crowd, and are served last, but for those with a higher priority than
// ours.
void send_into_crowd(pid_t pid, const cpu_set_t& cores) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    const auto thread = static_cast<pid_t>(std::stol(task.path().filename()));
    EXPECT_EQ(::sched_setaffinity(thread, sizeof cores, &cores), 0);
    if (::getpriority(PRIO_PROCESS, static_cast<id_t>(thread)) >= own) {
      EXPECT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(thread), 19), 0);
    }
  }
}

std::unique_ptr<Job> start(const std::string& transport) {
  Job::Environment more;
  if (!is_long()) more["CCOM_DEAD_MS"] = kShortDeadMs;
  auto job = std::make_unique<Job>("rank_program", 4, std::vector<std::string>{"loop", "4096", "cycle"},
                                   ranks_on(transport, more));
  EXPECT_TRUE(job->wait_for("ready", kAll, milliseconds(60000))) << job->transcript();
  return job;
}

void crowd_out(const std::vector<int>& ranks) {
  const size_t seconds = count_from("CCOM_TEST_SECONDS", 3, 1800);
  const cpu_set_t cores = crowded_cores();
  Crowd crowd(cores);
  std::vector<std::unique_ptr<Job>> jobs;
  for (const std::string& transport : transports()) jobs.push_back(start(transport));
  for (const auto& job : jobs)
    for (const int rank : ranks) send_into_crowd(job->pid(rank), cores);
  crowd.set_busy(true);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  crowd.set_busy(false);
  for (size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(transports()[i]);
    EXPECT_FALSE(jobs[i]->wait_for("failed", {ranks.back()}, milliseconds(100))) << jobs[i]->transcript();
    jobs[i]->forget_lines();
    EXPECT_TRUE(jobs[i]->wait_for("calls", kAll, milliseconds(20000))) << jobs[i]->transcript();
  }
}

TEST(CrowdedRanks, AreNotNamedDeadByOthersThatAreNot) { crowd_out({1}); }

TEST(CrowdedRanks, AreNotNamedDeadByOthersThatAreCrowdedToo) { crowd_out(kAll); }

}  // namespace
}  // namespace ccom
