// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/endless.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/processes/rank.h"

namespace ccom {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<const char*, 7> kCycle = {"allreduce", "allgather", "reduce_scatter", "broadcast",
                                               "alltoall",  "barrier",   "neighbours"};

// Calls on two buffers, with inputs that depend on rank and call.
class Calls {
 public:
  // `bytes`: of each buffer, a multiple of nranks * 4.
  Calls(ccomComm_t comm, void* send, void* recv, size_t bytes)
      : comm_(comm),
        send_(static_cast<int32_t*>(send)),
        recv_(static_cast<int32_t*>(recv)),
        count_(bytes / sizeof(int32_t)),
        block_(count_ / static_cast<size_t>(nranks)) {}

  ccomResult_t make(const std::string& collective, int number, ccomStream_t stream = nullptr) const {
    if (stream == nullptr) fill(number);
    if (collective == "allreduce") return ccomAllReduce(send_, recv_, count_, ccomInt32, ccomSum, comm_, stream);
    if (collective == "allgather") return ccomAllGather(send_, recv_, block_, ccomInt32, comm_, stream);
    if (collective == "reduce_scatter")
      return ccomReduceScatter(send_, recv_, block_, ccomInt32, ccomSum, comm_, stream);
    if (collective == "broadcast")
      return ccomBroadcast(send_, recv_, count_, ccomInt32, number % nranks, comm_, stream);
    if (collective == "alltoall") return ccomAlltoAll(send_, recv_, block_, ccomInt32, comm_, stream);
    if (collective == "barrier") return ccomBarrier(comm_, stream);
    if (collective == "parts") return split(number);
    ccomGroupStart();
    ccomSend(send_, count_, ccomInt32, (rank + 1) % nranks, comm_, stream);
    ccomRecv(recv_, count_, ccomInt32, (rank + nranks - 1) % nranks, comm_, stream);
    return ccomGroupEnd();
  }

  // Of the last make() without a stream.
  bool is_right(const std::string& collective, int number) const {
    if (collective == "barrier") return true;
    const bool gathers = collective == "allgather" || collective == "alltoall";
    const size_t made = collective == "reduce_scatter" ? block_
                        : gathers                      ? block_ * static_cast<size_t>(nranks)
                                                       : count_;
    for (size_t i = 0; i < made; i = i + 1 == made ? made : std::min(made - 1, i + 509)) {
      if (recv_[i] != expected(collective, number, static_cast<int>(i / block_))) return false;
    }
    return true;
  }

 private:
  static int color(int of_rank, int number) { return (of_rank + number / 2) % 2; }

  // The sum over the ranks of a color. Of an error of the part, that of the whole, which says it in its own ranks.
  ccomResult_t split(int number) const {
    ccomComm_t part = nullptr;
    ccomResult_t result = ccomCommSplit(comm_, color(rank, number), number % 2 == 0 ? rank : -rank, &part, nullptr);
    if (result == ccomSuccess) {
      result = ccomAllReduce(send_, recv_, count_, ccomInt32, ccomSum, part, nullptr);
      ccomCommDestroy(part);
    }
    const auto end = Clock::now() + std::chrono::seconds(10);
    for (ccomResult_t whole = ccomSuccess; result != ccomSuccess && whole == ccomSuccess && Clock::now() < end;) {
      ccomCommGetAsyncError(comm_, &whole);
      if (whole != ccomSuccess) result = ccomBarrier(comm_, nullptr);  // is this thread's last error then
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return result;
  }

  static int32_t input(int of_rank, int number) { return of_rank + 1 + number % 1000; }
  void fill(int number) const { std::fill(send_, send_ + count_, input(rank, number)); }

  static int32_t expected(const std::string& collective, int number, int block) {
    if (collective == "allgather" || collective == "alltoall") return input(block, number);
    if (collective == "broadcast") return input(number % nranks, number);
    if (collective == "neighbours") return input((rank + nranks - 1) % nranks, number);
    int32_t sum = 0;
    for (int other = 0; other < nranks; ++other) {
      if (collective != "parts" || color(other, number) == color(rank, number)) sum += input(other, number);
    }
    return sum;
  }

  const ccomComm_t comm_;
  int32_t* const send_;
  int32_t* const recv_;
  const size_t count_, block_;
};

void require_right(const Calls& calls, const std::string& collective, int number) {
  if (calls.is_right(collective, number)) return;
  say("wrong " + collective + " in call " + std::to_string(number));
  std::exit(1);
}

const char* turn_of(const std::string& collective, int number) {
  return collective == "cycle" ? kCycle[static_cast<size_t>(number) % kCycle.size()] : collective.c_str();
}

size_t whole_blocks(size_t bytes) {
  const size_t unit = sizeof(int32_t) * static_cast<size_t>(nranks);
  return std::max(bytes / unit, size_t{1}) * unit;
}

sigset_t ending_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  return set;
}

// Ends the communicator when SIGUSR1 comes; the signal must be blocked in all threads.
void end_on_signal(const std::string& how, ccomComm_t comm, std::atomic<bool>& returned) {
  const sigset_t set = ending_signal();
  int got = 0;
  ::sigwait(&set, &got);
  const auto start = Clock::now();
  if (how.ends_with("finalize")) {
    ccomCommFinalize(comm);
  } else {
    ccomCommAbort(comm);
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
  say("returned " + std::to_string(took.count()));
  returned = true;
}

bool has_signal_come() {
  sigset_t set;
  ::sigpending(&set);
  return ::sigismember(&set, SIGUSR1) == 1;
}

// Until the first error; what is queued on the stream, if there is one, is waited for after many.
ccomResult_t make_calls_until_error(bool ends_at_signal, const Calls& calls, ccomStream_t stream) {
  constexpr int kQueued = 64;
  ccomResult_t result = ccomSuccess;
  for (int i = 0; result == ccomSuccess; ++i) {
    if (i == 3) say("ready");
    if (ends_at_signal && has_signal_come()) break;
    result = calls.make(turn_of("cycle", i), i, stream);
    if (result == ccomSuccess && stream != nullptr && i % kQueued == kQueued - 1)
      result = ccomStreamSynchronize(stream, 60000);
  }
  return result;
}

}  // namespace

int call_without_end(const std::string& collective, size_t bytes) {
  say("begins");
  ccomComm_t comm = join(nullptr);
  say("joined");
  const size_t whole = whole_blocks(bytes);
  std::vector<char> send(whole), recv(whole);
  const Calls calls(comm, send.data(), recv.data(), whole);
  auto reported = Clock::now();
  for (int i = 0;; ++i) {
    if (i == 3) say("ready");
    if (Clock::now() - reported > std::chrono::seconds(1)) {
      say("calls " + std::to_string(i));
      reported = Clock::now();
    }
    const char* const turn = turn_of(collective, i);
    require(comm, calls.make(turn, i));
    require_right(calls, turn, i);
  }
}

namespace {

// The kernel's timer does it, wherever this thread is then.
void kill_this_process_in(std::chrono::nanoseconds time) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGKILL;
  timer_t timer{};
  itimerspec when{};
  when.it_value.tv_sec = time.count() / 1'000'000'000;
  when.it_value.tv_nsec = std::max<long>(1, time.count() % 1'000'000'000);  // 0 would disarm it
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || ::timer_settime(timer, 0, &when, nullptr) != 0) {
    say("no timer");
    std::_Exit(4);
  }
}

}  // namespace

int call_until_a_death(const std::string& collective, const std::string& buffers, size_t bytes, const Death& death) {
  ccomComm_t comm = join(nullptr);
  const size_t whole = (whole_blocks(bytes) + 4095) / 4096 * 4096;
  void* const send = allocate(buffers, whole, comm);
  void* const recv = allocate(buffers, whole, comm);
  if (send == nullptr || recv == nullptr) return 4;
  const Calls calls(comm, send, recv, whole_blocks(bytes));
  std::chrono::nanoseconds last{};
  for (int i = 1;; ++i) {
    const bool is_last = rank == death.victim && i == death.number;
    if (is_last) kill_this_process_in(last * death.percent / 100);
    const auto begin = Clock::now();
    const ccomResult_t result = calls.make(collective, i);
    if (is_last) ::raise(SIGKILL);
    last = Clock::now() - begin;
    require(comm, result);
    require_right(calls, collective, i);
  }
}

namespace {

// The ranks of `comm`, by what they were called first.
ccomResult_t gather_names(ccomComm_t comm, int name, std::string& text) {
  std::vector<int> names(static_cast<size_t>(nranks), -1);
  const ccomResult_t result = ccomAllGather(&name, names.data(), 1, ccomInt32, comm, nullptr);
  text = "[";
  for (const int each : names) text += (text.size() > 1 ? "," : "") + std::to_string(each);
  text += "]";
  return result;
}

// Until the first error; what it says after the first hundred: 'then'.
ccomResult_t make_checked_calls(ccomComm_t comm, size_t bytes, const std::string& then) {
  const size_t whole = whole_blocks(bytes);
  std::vector<char> send(whole), recv(whole);
  const Calls calls(comm, send.data(), recv.data(), whole);
  for (int i = 0;; ++i) {
    if (i == 100) say(then);
    const std::string turn = i % 2 == 0 ? "allreduce" : "parts";
    const ccomResult_t result = calls.make(turn, i);
    if (result != ccomSuccess) return result;
    require_right(calls, turn, i);
  }
}

}  // namespace

int go_on_after_deaths(size_t bytes) {
  ccomComm_t comm = join(nullptr);
  const int name = rank;
  std::string names;
  for (bool is_first = true;; is_first = false) {
    if (gather_names(comm, name, names) == ccomSuccess) {
      say((is_first ? "ready " : "left ") + names);
      make_checked_calls(comm, bytes, "goes_on " + names);
    }
    ccomComm_t smaller = nullptr;
    const ccomResult_t result = ccomCommShrink(comm, nullptr, 0, &smaller, nullptr, CCOM_SHRINK_DEFAULT);
    if (result != ccomSuccess) return report_failure(comm, result);
    ccomCommDestroy(comm);
    comm = smaller;
    ccomCommUserRank(comm, &rank);
    ccomCommCount(comm, &nranks);
  }
}

int end_by_signal(const std::string& how, const std::string& buffers, size_t bytes) {
  const sigset_t blocked = ending_signal();
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  ccomComm_t comm = join(nullptr);
  const size_t whole = (whole_blocks(bytes) + 4095) / 4096 * 4096;
  void* const send = allocate(buffers, whole, comm);
  void* const recv = allocate(buffers, whole, comm);
  if (send == nullptr || recv == nullptr) return 4;
  const bool destroys = how.ends_with("destroy") && rank == 0;
  ccomStream_t stream = nullptr;
  if (how.starts_with("queued") && ccomStreamCreate(&stream) != ccomSuccess) return 4;
  std::atomic<bool> returned{destroys || rank != 0};
  std::thread ender;
  if (!returned) ender = std::thread([&] { end_on_signal(how, comm, returned); });
  const Calls calls(comm, send, recv, whole_blocks(bytes));
  const ccomResult_t result = make_calls_until_error(destroys, calls, stream);
  if (result == ccomSuccess) {
    const auto start = Clock::now();
    ccomCommDestroy(comm);
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
    say("returned " + std::to_string(took.count()));
    if (stream != nullptr) ccomStreamDestroy(stream);
    fill_canary(recv, whole);
    say("stopped 0 destroyed");
    watch_canary(recv, whole, 20, 5);
    say("failed 0 [] destroyed");
    return 0;
  }
  if (stream != nullptr) ccomStreamDestroy(stream);
  const std::string text = ccomGetLastError(nullptr);
  fill_canary(recv, whole);
  say("stopped " + std::to_string(result) + " " + text);
  watch_canary(recv, whole, 20, 5);
  if (ender.joinable()) ender.join();
  return report_failure(comm, result);
}

}  // namespace ccom
