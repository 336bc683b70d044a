// SPDX-License-Identifier: Apache-2.0
//
// A rank that logs, for logs_test.cc; reports as rank_program does.
//   logs_program lines               a communicator's life, with stderr on stdout
//   logs_program parts COUNT         makes that many parts, with stderr on stdout
//   logs_program rate                times calls that log while stderr takes lines, and while it is a full pipe
//                                    that is read later: "ratio R", "logged N", "out N", "dropped N"
//   logs_program HOW SECONDS         calls that log, for that time; then "done". HOW is what rank 0's lines meet:
//   blocked
//                                    (a function that never returns), unread (a pipe without a reader), full, or closed
//                                    (on all ranks from the start)
#include <ccom/ccom.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/processes/rank.h"

namespace {

using namespace ccom;
using Clock = std::chrono::steady_clock;

// Of no whole page, which is logged.
alignas(4096) char unaligned[2 * 4096];

ccomResult_t call_that_logs(ccomComm_t comm, int mine, int* all, size_t bytes = 100) {
  void* handle = nullptr;
  ccomResult_t result = ccomCommRegister(comm, unaligned + 8, bytes, &handle);
  if (result == ccomSuccess) result = ccomCommDeregister(comm, handle);
  if (result == ccomSuccess) result = ccomAllReduce(&mine, all, 1, ccomInt32, ccomSum, comm, nullptr);
  return result;
}

// A small one, full unless it has no reader. Returns the end to read, if it has one.
int be_pipe(bool has_reader) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(4);
  ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  const std::vector<char> bytes(4096, '\n');
  if (::write(ends[1], bytes.data(), bytes.size()) != 4096) std::exit(4);  // before lines may come
  ::dup2(ends[1], STDERR_FILENO);
  ::close(ends[1]);
  return has_reader ? ends[0] : (::close(ends[0]), -1);
}

int lines(ccomComm_t comm) {
  int all = 0;
  require(comm, call_that_logs(comm, 1, &all));
  ccomCommDestroy(comm);
  say("done");
  return 0;
}

int parts(ccomComm_t comm, int count) {
  for (int i = 0; i < count; ++i) {
    ccomComm_t part = nullptr;
    require(comm, ccomCommSplit(comm, 0, rank, &part, nullptr));
    ccomCommDestroy(part);
  }
  ccomCommDestroy(comm);
  say("done");
  return 0;
}

double seconds_of_calls(ccomComm_t comm, int count, size_t bytes) {
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    int all = 0;
    const ccomResult_t result = call_that_logs(comm, 1, &all, bytes);
    if (result != ccomSuccess || all != nranks) std::exit(report_failure(comm, result));
  }
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The numbers in lines that say how many were dropped, and how many lines say `what`.
void count_lines(const std::string& text, const std::string& what, int* out, int* dropped) {
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    const size_t number = line.find(": ");
    if (line.find(what) != std::string::npos) ++*out;
    if (line.find("lines were dropped") != std::string::npos) *dropped += std::atoi(line.c_str() + number + 2);
  }
}

// Until lines that say `what` and those that were dropped are `count` together, or for ten seconds.
void read_lines(int reading, const std::string& what, int count, int* out, int* dropped) {
  std::string text;
  int found = 0;
  int lost = 0;
  ::fcntl(reading, F_SETFL, O_NONBLOCK);
  for (int ms = 0; ms < 10000 && found + lost < count; ++ms) {
    char bytes[4096];
    const ssize_t got = ::read(reading, bytes, sizeof bytes);
    if (got > 0) text.append(bytes, static_cast<size_t>(got));
    found = lost = 0;
    count_lines(text, what, &found, &lost);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  *out += found;
  *dropped += lost;
}

int rate(ccomComm_t comm) {
  constexpr int kRounds = 5;
  constexpr int kCalls = 300;
  int out = 0;
  int dropped = 0;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
    const double usual = seconds_of_calls(comm, kCalls, 100);
    const int reading = be_pipe(true);
    ratios.push_back(seconds_of_calls(comm, kCalls, 200) / usual);
    read_lines(reading, ": 200 bytes at ", kCalls, &out, &dropped);
    ::close(reading);
  }
  std::ranges::sort(ratios);
  say("ratio " + std::to_string(ratios[kRounds / 2]));
  say("logged " + std::to_string(kRounds * kCalls));
  say("out " + std::to_string(out));
  say("dropped " + std::to_string(dropped));
  ccomCommDestroy(comm);
  return 0;
}

int go_on(ccomComm_t comm, const std::string& how, int seconds) {
  if (rank == 0 && how == "blocked") {
    ccomSetLogCallback([](ccomLogLevel_t, const char*, void*) { ::pause(); }, nullptr);
  } else if (rank == 0 && how != "closed") {
    (void)be_pipe(how == "full");
  }
  const auto begin = Clock::now();
  for (int going = 1, all = 0, i = 0; all < nranks || i == 0; ++i) {
    if (i == 3) say("ready");
    going = Clock::now() - begin > std::chrono::seconds(seconds) ? 1 : 0;
    require(comm, call_that_logs(comm, going, &all));
  }
  ccomCommDestroy(comm);
  say("done");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || !begin_rank()) return 3;
  const std::string what = argv[1];
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (what == "closed") ::close(STDERR_FILENO);
  if (what == "lines" || what == "parts") ::dup2(STDOUT_FILENO, STDERR_FILENO);
  ccomComm_t comm = join(nullptr);
  if (what == "lines") return lines(comm);
  if (what == "parts") return parts(comm, number);
  if (what == "rate") return rate(comm);
  return go_on(comm, what, number);
}
