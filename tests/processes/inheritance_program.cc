// SPDX-License-Identifier: Apache-2.0
//
// One rank of a job that looks at what its children and threads get from it; one line per event on stdout, for the
// parent to read.
//   inheritance_program forks VICTIM  allreduces without end; after the third, rank VICTIM forks a child that lives on
//                                     ("child PID"), all others say "ready"; "failed ..." on the first error (rank.h)
//   inheritance_program watches       a start and calls, while another thread looks for descriptors that a program
//                                     would inherit, starts programs that list theirs, and reads the signal masks of
//                                     all threads. "leak ...", "mask ..." for each fault; "watched LOOKS PROGRAMS"
//   inheritance_program lists         what the started program does: its descriptors, one number per line
#include <ccom/ccom.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;

namespace fs = std::filesystem;

constexpr int kMostDescriptors = 1024;
constexpr std::chrono::milliseconds kLasting{1000};

int fork_and_call(int victim) {
  ccomComm_t comm = join(nullptr);
  float value = 1, sum = 0;
  for (int i = 0;; ++i) {
    require(comm, ccomAllReduce(&value, &sum, 1, ccomFloat32, ccomSum, comm, nullptr));
    if (i != 3) continue;
    if (rank != victim) {
      say("ready");
      continue;
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);
      ::pause();
      std::_Exit(0);
    }
    say("child " + std::to_string(child));
  }
}

std::string target_of(int fd) {
  std::array<char, 256> text{};
  const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text.data(), text.size() - 1);
  return length < 0 ? "" : std::string(text.data(), static_cast<size_t>(length));
}

int list_descriptors() {
  std::string numbers;
  for (int fd = 0; fd < kMostDescriptors; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) numbers += std::to_string(fd) + " " + target_of(fd) + "\n";
  }
  return ::write(STDOUT_FILENO, numbers.data(), numbers.size()) < 0 ? 9 : 0;
}

// Looks again and again, in a thread of its own.
class Watcher {
 public:
  Watcher() {
    for (int fd = 0; fd < kMostDescriptors; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) before_.insert(fd);
    }
    allowed_.insert(static_cast<pid_t>(::syscall(SYS_gettid)));
    thread_ = std::thread([this] { run(); });
  }
  ~Watcher() {
    is_over_ = true;
    thread_.join();
    for (const std::string& fault : faults_) say(fault);
    say("watched " + std::to_string(looks_) + " " + std::to_string(programs_));
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  void run() {
    allowed_.insert(static_cast<pid_t>(::syscall(SYS_gettid)));
    // One look more at the end, when everything that lasts is there.
    for (bool is_last = false; !is_last; ++looks_) {
      is_last = is_over_;
      look_at_descriptors();
      look_at_masks();
      if (looks_ % 4 == 0 || is_last) start_a_program();
    }
  }

  using Clock = std::chrono::steady_clock;
  using Inherited = std::set<std::pair<int, std::string>>;  // descriptors and what they are of
  // ccom closes descriptors in forked children; programs that are started otherwise get all that are not close-on-exec.
  enum class How { Flags, Spawned, Forked };

  void look_at_descriptors() {
    Inherited seen;
    for (int fd = 0; fd < kMostDescriptors; ++fd) {
      const int flags = ::fcntl(fd, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) seen.emplace(fd, target_of(fd));
    }
    compare(seen, How::Flags);
  }

  // gRPC makes a socket and then sets close-on-exec, between which its thread may have to wait for a core. A descriptor
  // that each look of one kind has seen for kLasting is a leak.
  void compare(const Inherited& seen, How how) {
    auto& since = since_[how];
    std::erase_if(since, [&seen](const auto& entry) { return !seen.contains(entry.first); });
    for (const auto& descriptor : seen) {
      if (before_.contains(descriptor.first)) continue;
      const auto [entry, is_new] = since.try_emplace(descriptor, Clock::now());
      if (!is_new && Clock::now() - entry->second > kLasting) faults_.insert("leak of " + descriptor.second);
    }
  }

  // Whether a thread takes signals that somebody sends. It keeps those of its own faults (tests/base/thread_test.cc);
  // glibc blocks these too while a thread starts.
  static bool takes_signals(const std::string& blocked) {
    static const std::set<int> kOthers = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    const uint64_t mask = std::stoull(blocked, nullptr, 16);
    for (int number = 1; number < 32; ++number) {
      if (!kOthers.contains(number) && (mask >> (number - 1) & 1) == 0) return true;
    }
    return false;
  }

  void look_at_masks() {
    std::error_code ignored;
    for (const auto& task : fs::directory_iterator("/proc/self/task", ignored)) {
      if (allowed_.contains(static_cast<pid_t>(std::stol(task.path().filename())))) continue;
      std::ifstream status(task.path() / "status");
      std::string name, key, value;
      while (status >> key >> value) {
        if (key == "Name:") name = value;
        if (key == "Threads:" && value == "0") break;  // it has ended; the kernel shows masks of zero
        if (key == "SigBlk:" && takes_signals(value)) faults_.insert("mask of " + name + ": " + value);
        std::getline(status, key);
      }
    }
  }

  void start_a_program() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::array<char*, 3> arguments = {const_cast<char*>("inheritance_program"), const_cast<char*>("lists"), nullptr};
    const How how = programs_ % 2 == 0 ? How::Spawned : How::Forked;
    if (how == How::Spawned) {
      ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
    } else if ((child = ::fork()) == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv("/proc/self/exe", arguments.data());
      std::_Exit(127);
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<size_t>(got));
    ::close(ends[0]);
    int outcome = -1;
    ::waitpid(child, &outcome, 0);
    if (outcome != 0) faults_.insert("leak: a program ended with " + std::to_string(outcome));
    std::istringstream lines(text);
    Inherited seen;
    int fd = -1;
    for (std::string what; lines >> fd && std::getline(lines, what);) seen.emplace(fd, what.substr(1));
    compare(seen, how);
    ++programs_;
  }

  std::set<int> before_;
  std::set<pid_t> allowed_;  // threads of the application
  std::set<std::string> faults_;
  std::map<How, std::map<Inherited::value_type, Clock::time_point>> since_;  // seen without a break
  int looks_ = 0, programs_ = 0;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

int watch() {
  Watcher watcher;
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.messages = 1;
  ccomComm_t comm = join(&config);
  ccomStream_t stream = nullptr;
  ccomResult_t result = ccomStreamCreate(&stream);
  for (const size_t count : {size_t{1}, size_t{1} << 18}) {
    const std::vector<float> in(count, 1);
    std::vector<float> out(count);
    if (result == ccomSuccess) result = ccomAllReduce(in.data(), out.data(), count, ccomFloat32, ccomSum, comm, stream);
    if (result == ccomSuccess) result = ccomStreamSynchronize(stream, -1);
  }
  if (result != ccomSuccess) return report_failure(comm, result);
  std::this_thread::sleep_for(kLasting + kLasting / 2);  // threads and descriptors that last are looked at
  ccomStreamDestroy(stream);
  ccomCommDestroy(comm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "lists") return list_descriptors();
  if (ccomGetLaunch(&rank, &nranks, nullptr, nullptr) != ccomSuccess) return 3;
  if (what == "forks" && argc > 2) return fork_and_call(std::atoi(argv[2]));
  if (what == "watches") return watch();
  return 3;
}
