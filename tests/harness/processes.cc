// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tests/harness/paths.h"

namespace ccom {

using Clock = std::chrono::steady_clock;

Job::Job(const std::string& name, int nranks, const std::vector<std::string>& arguments,
         const std::function<Environment(int)>& environment) {
  for (int rank = 0; rank < nranks; ++rank) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    Environment added = environment(rank);
    added.insert({"CCOM_RANK", std::to_string(rank)});
    added.insert({"CCOM_NRANKS", std::to_string(nranks)});
    added.insert({"CCOM_URL", "file://" + folder_ / "id"});
    std::vector<std::string> words{program(name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (const auto& [key, value] : added) ::setenv(key.c_str(), value.c_str(), 1);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execvp(argv[0], argv.data());
      std::_Exit(127);
    }
    ::close(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ranks_.push_back({.pid = pid, .output = ends[0]});
  }
}

Job::~Job() {
  for (Process& process : ranks_) {
    if (process.pid > 0) {
      ::kill(process.pid, SIGKILL);
      ::waitpid(process.pid, nullptr, 0);
    }
    ::close(process.output);
  }
}

void Job::read_some(int timeout_ms) {
  std::vector<pollfd> polls;
  for (const Process& process : ranks_) polls.push_back({process.has_ended_output ? -1 : process.output, POLLIN, 0});
  ::poll(polls.data(), polls.size(), timeout_ms);
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (polls[i].revents == 0) continue;
    char buffer[4096];
    ssize_t got = 0;
    while ((got = ::read(ranks_[i].output, buffer, sizeof buffer)) > 0)
      ranks_[i].partial.append(buffer, static_cast<size_t>(got));
    ranks_[i].has_ended_output = got == 0;  // polled again, it would be ready at once
    std::string& text = ranks_[i].partial;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      ranks_[i].lines.push_back(text.substr(0, end));
      ranks_[i].times.push_back(Clock::now());
      text.erase(0, end + 1);
    }
  }
}

void Job::forget_lines() {
  read_some(0);
  for (Process& process : ranks_) {
    process.lines.clear();
    process.times.clear();
  }
}

std::string Job::line(int rank, const std::string& prefix) const {
  for (const std::string& text : ranks_[static_cast<size_t>(rank)].lines) {
    if (text.starts_with(prefix)) return text;
  }
  return "";
}

Clock::time_point Job::when(int rank, const std::string& prefix) const {
  const Process& process = ranks_[static_cast<size_t>(rank)];
  for (size_t i = 0; i < process.lines.size(); ++i) {
    if (process.lines[i].starts_with(prefix)) return process.times[i];
  }
  return {};
}

bool Job::wait_for(const std::string& prefix, const std::vector<int>& ranks, std::chrono::milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  const auto all_said = [&] {
    return std::ranges::all_of(ranks, [&](int rank) { return !line(rank, prefix).empty(); });
  };
  const auto says_no_more = [&](int rank) {
    return line(rank, prefix).empty() && ranks_[static_cast<size_t>(rank)].has_ended_output;
  };
  while (!all_said()) {
    if (Clock::now() > deadline || std::ranges::any_of(ranks, says_no_more)) return false;
    read_some(2);
  }
  return true;
}

void Job::signal(int rank, int number) { ::kill(ranks_[static_cast<size_t>(rank)].pid, number); }

bool Job::finish(std::chrono::milliseconds at_most) {
  const auto deadline = Clock::now() + at_most;
  bool running = true;
  while (running && Clock::now() < deadline) {
    running = false;
    read_some(1);
    for (Process& process : ranks_) {
      if (process.pid > 0 && ::waitpid(process.pid, nullptr, WNOHANG) == process.pid) process.pid = -1;
      running |= process.pid > 0;
    }
  }
  read_some(0);
  return !running;
}

std::string Job::transcript() const {
  std::string text;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const std::string& said : ranks_[rank].lines) text += "rank " + std::to_string(rank) + ": " + said + "\n";
  }
  return text;
}

}  // namespace ccom
