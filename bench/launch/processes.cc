// SPDX-License-Identifier: Apache-2.0
#include "bench/launch/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "bench/launch/tagged_output.h"

extern char** environ;

namespace ccom::launch {
namespace {

using Clock = std::chrono::steady_clock;

// Variables that define a rank's place; the children get their own.
constexpr std::string_view kPlace[] = {
    "CCOM_RANK=", "CCOM_NRANKS=", "CCOM_URL=", "CCOM_LOCAL_RANK=", "CCOM_LOCAL_NRANKS="};

// A directory accessible to this user only; removed with its contents. It is locked as long as this process lives, so
// that the next one removes what a killed one has left.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code failure;
    const std::filesystem::path place = std::filesystem::temp_directory_path(failure);
    if (failure) {
      errno = failure.value();
      return;
    }
    remove_left_ones(place);
    path_ = (place / (std::string(kPrefix) + "XXXXXX")).string();
    if (::mkdtemp(path_.data()) == nullptr) {
      path_.clear();
    } else {
      lock_ = locked(path_);
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    if (lock_ >= 0) ::close(lock_);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }  // "" if it could not be made.

 private:
  static constexpr std::string_view kPrefix = "ccom-run-";
  static constexpr std::chrono::minutes kNew{1};  // not locked yet, perhaps

  // -1: it is not this user's, or somebody has locked it.
  static int locked(const std::string& path) {
    const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat found {};
    if (folder >= 0 && ::fstat(folder, &found) == 0 && found.st_uid == ::geteuid() &&
        ::flock(folder, LOCK_EX | LOCK_NB) == 0)
      return folder;
    if (folder >= 0) ::close(folder);
    return -1;
  }

  static void remove_left_ones(const std::filesystem::path& place) {
    std::error_code ignored;
    for (std::filesystem::directory_iterator at(place, ignored), end; !ignored && at != end; at.increment(ignored)) {
      const auto changed = at->last_write_time(ignored);
      const bool is_new = ignored || std::filesystem::file_time_type::clock::now() - changed < kNew;
      if (is_new || !at->path().filename().string().starts_with(kPrefix)) continue;
      const int lock = locked(at->path().string());
      if (lock < 0) continue;
      std::filesystem::remove_all(at->path(), ignored);
      ::close(lock);
    }
  }

  std::string path_;
  int lock_ = -1;
};

// Signals are received by sigtimedwait, so there is no handler and no race. Restored at the end.
class BlockedSignals {
 public:
  BlockedSignals() {
    ::sigemptyset(&set_);
    for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    struct sigaction fresh {};
    fresh.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &fresh, &child_before_);  // An inherited SIG_IGN would discard the children's results.
  }
  ~BlockedSignals() {
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  const sigset_t& before() const { return before_; }
  struct Signal {
    int number = 0;        // 0: none has come in time
    bool is_sent = false;  // by a process: not the terminal's, which all processes in its foreground get
  };
  Signal wait(std::chrono::milliseconds limit) const {
    const timespec span{.tv_sec = limit.count() / 1000, .tv_nsec = (limit.count() % 1000) * 1'000'000};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set_, &info, &span);
    return signal > 0 ? Signal{signal, info.si_code <= 0} : Signal{};
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
  struct sigaction child_before_ {};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment_of(const ProcessJob& job, int rank, const std::string& folder) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const bool ours = std::ranges::any_of(kPlace, [text](std::string_view name) { return text.starts_with(name); });
    if (!ours) result.emplace_back(text);
  }
  // libinfinipath, which libfabric loads, would otherwise catch crashes and call exit(1).
  if (::getenv("IPATH_NO_BACKTRACE") == nullptr) result.emplace_back("IPATH_NO_BACKTRACE=1");
  result.push_back("CCOM_RANK=" + std::to_string(rank));
  result.push_back("CCOM_NRANKS=" + std::to_string(job.ranks));
  result.push_back("CCOM_URL=file://" + folder + "/id");
  if (!job.program.empty()) {
    result.push_back("CCOM_LOCAL_RANK=" + std::to_string(rank));
    result.push_back("CCOM_LOCAL_NRANKS=" + std::to_string(job.ranks));
  }
  return result;
}

struct Child {
  std::vector<std::string> arguments, environment;
  const char* path = "/proc/self/exe";
  bool has_input = true;
  TaggedOutput::Ends output{};
};

// Only async-signal-safe calls between fork and exec (execvpe is one with glibc). -1 with errno on failure.
pid_t start(Child child, const sigset_t& signals) {
  const std::vector<char*> argv = pointers(child.arguments);
  const std::vector<char*> envp = pointers(child.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::Communication));
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  if (!child.has_input) {
    const int nothing = ::open("/dev/null", O_RDONLY);
    if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  }
  if (child.output.out >= 0) ::dup2(child.output.out, STDOUT_FILENO);
  if (child.output.err >= 0) ::dup2(child.output.err, STDERR_FILENO);
  ::execvpe(child.path, argv.data(), envp.data());
  ::_exit(127);
}

class Children {
 public:
  explicit Children(bool are_of_others) : are_of_others_(are_of_others) {}
  ~Children() { end(SIGKILL), reap(true); }

  void add(pid_t pid) { pids_.push_back(pid), ++running_; }
  bool running() const { return running_ > 0; }
  bool failed() const { return failed_; }
  int code() const { return are_of_others_ ? first_code_ : static_cast<int>(code_); }

  void forward(int signal) {
    for (pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, signal);
    }
  }
  // Signal 0 sends nothing: from now on the children's ends are expected and not reported.
  void end(int signal) {
    forward(signal);
    ended_by_us_ = true;
  }

  void reap(bool wait) {
    for (size_t rank = 0; rank < pids_.size(); ++rank) {
      int status = 0;
      if (pids_[rank] <= 0 || ::waitpid(pids_[rank], &status, wait ? 0 : WNOHANG) != pids_[rank]) continue;
      pids_[rank] = 0;
      --running_;
      judge(static_cast<int>(rank), status);
    }
  }

 private:
  void judge(int rank, int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    const bool is_first = !std::exchange(failed_, true);
    if (are_of_others_) {
      if (is_first) tell_first(rank, status);
    } else if (WIFEXITED(status)) {
      if (WEXITSTATUS(status) == 127)
        std::fprintf(stderr, "ccom: rank %d: this program could not be started again\n", rank);
      code_ = more_telling(code_, static_cast<ExitCode>(WEXITSTATUS(status)));
    } else if (!ended_by_us_) {
      std::fprintf(stderr, "ccom: rank %d was ended by signal %d (%s)\n", rank, WTERMSIG(status),
                   ::strsignal(WTERMSIG(status)));
      code_ = more_telling(code_, ExitCode::Communication);
    }
  }

  // Whose exit code becomes the job's.
  void tell_first(int rank, int status) {
    first_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended_by_us_) return;
    if (WIFEXITED(status)) {
      std::fprintf(stderr, "ccom: rank %d ended with exit code %d", rank, WEXITSTATUS(status));
    } else {
      std::fprintf(stderr, "ccom: rank %d was ended by signal %d (%s)", rank, WTERMSIG(status),
                   ::strsignal(WTERMSIG(status)));
    }
    if (first_code_ == 127) std::fprintf(stderr, " (is the program there, and may it be run?)");
    std::fprintf(stderr, running_ > 0 ? "; the other ranks are ended\n" : "\n");
  }

  const bool are_of_others_;
  int first_code_ = 0;
  std::vector<pid_t> pids_;
  int running_ = 0;
  bool failed_ = false;
  bool ended_by_us_ = false;
  ExitCode code_ = ExitCode::Ok;
};

// Waits until all are gone. `end_of_job` is shortened when a child fails or a signal arrives. Returns the signal, or 0.
int supervise(const ProcessJob& job, const BlockedSignals& signals, Children& children, ExitCode& late) {
  Clock::time_point end_of_job = Clock::now() + job.timeout;
  bool ending = false;
  int received = 0;
  while (children.running()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_of_job - Clock::now());
    if (left.count() <= 0) {
      if (!ending && job.timeout < kNoTimeout) {
        std::fprintf(stderr, "ccom: timeout after %lld s, terminating all ranks\n",
                     static_cast<long long>(job.timeout.count() / 1000));
        late = ExitCode::Timeout;
      }
      children.end(SIGKILL);
      children.reap(true);
      break;
    }
    const auto [signal, is_sent] = signals.wait(left);
    if (signal == SIGUSR1 || signal == SIGUSR2) children.forward(signal);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
      received = signal;
      children.end(signal == SIGINT && !is_sent ? 0 : signal);
    }
    children.reap(false);
    if (!ending && (received != 0 || children.failed())) {
      ending = true;
      end_of_job = std::min(end_of_job, Clock::now() + job.grace);
    }
  }
  return received;
}

}  // namespace

int run_processes(const ProcessJob& job) {
  if (::getenv("CCOM_RANK") != nullptr) {
    // A child that did not recognise itself as one would start children of its own, recursively.
    std::fprintf(stderr, "ccom: CCOM_RANK is set: this process is a rank and starts none\n");
    return static_cast<int>(ExitCode::Usage);
  }
  const PrivateFolder folder;
  if (folder.path().empty()) {
    const int why = errno;
    const char* const place = ::getenv("TMPDIR");
    std::fprintf(stderr, "ccom: cannot make a temporary folder in %s: %s\n",
                 place == nullptr ? "/tmp" : (std::string("TMPDIR=") + place).c_str(), std::strerror(why));
    return static_cast<int>(ExitCode::Usage);
  }
  const BlockedSignals signals;
  Children children(!job.program.empty());
  TaggedOutput output(job.tags_output ? job.ranks : 0);
  std::fflush(nullptr);
  for (int rank = 0; rank < job.ranks; ++rank) {
    Child child{.arguments = job.arguments, .environment = environment_of(job, rank, folder.path())};
    if (!job.program.empty()) {
      child.path = job.program.c_str();
      child.has_input = rank == 0;
    }
    child.output = output.ends_of(rank);
    const pid_t pid = start(std::move(child), signals.before());
    if (pid < 0) {
      std::fprintf(stderr, "ccom: rank %d of %d could not be started: %s\n", rank, job.ranks, std::strerror(errno));
      return static_cast<int>(ExitCode::Communication);
    }
    children.add(pid);
  }
  output.begin();
  ExitCode late = ExitCode::Ok;
  const int signal = supervise(job, signals, children, late);
  output.end();
  if (signal != 0) return 128 + signal;
  // The ranks' results before termination do not matter when the job as a whole timed out.
  return late != ExitCode::Ok ? static_cast<int>(late) : children.code();
}

}  // namespace ccom::launch
