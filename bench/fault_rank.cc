// SPDX-License-Identifier: Apache-2.0
//
// One rank of bench/faults: allreduces without end, until another rank dies or leaves, or rank 0 aborts. On SIGUSR2 a
// rank leaves by ccomCommDestroy after its call. It says on stdout
//   ready             after the third call
//   left NS           when it begins to leave, on CLOCK_MONOTONIC
//   failed NS CODE    the first error, NS on CLOCK_MONOTONIC when the call has returned it
//   returned NS       how long ccomCommAbort took: rank 0 calls it in another thread on SIGUSR1
//
//     fault_rank BYTES [RANK RESIDENT]    RESIDENT: bytes of memory that this rank of the job touches before
//     fault_rank start                    only starts, when SIGUSR1 comes, and says before and after it
//   waits             it has the id, so the rendezvous server runs
//   started NS NS     when ccomCommInitRank began and returned, on CLOCK_MONOTONIC
//
// Rank, number of ranks and rendezvous address come from the environment.
#include <ccom/ccom.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> leaves{false};

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(9);
}

[[noreturn]] void give_up() {
  std::fprintf(stderr, "fault_rank: %s\n", ccomGetLastError(nullptr));
  std::exit(2);
}

ccomUniqueId id_of(int rank, int nranks) {
  ccomUniqueId id;
  if (ccomUniqueIdFromUrl("env://", nranks, rank, &id) != ccomSuccess) give_up();
  return id;
}

ccomComm_t join(const ccomUniqueId& id, int rank, int nranks) {
  ccomComm_t comm = nullptr;
  if (ccomCommInitRankConfig(&comm, nranks, id, rank, nullptr) != ccomSuccess) give_up();
  return comm;
}

int start_on_signal(int rank, int nranks, const sigset_t& signals) {
  const ccomUniqueId id = id_of(rank, nranks);
  say("waits");
  int number = 0;
  ::sigwait(&signals, &number);
  const int64_t begin = now_ns();
  ccomComm_t comm = join(id, rank, nranks);
  const int64_t end = now_ns();
  say("started " + std::to_string(begin) + " " + std::to_string(end));
  ccomCommDestroy(comm);
  return 0;
}

void abort_on_signal(ccomComm_t comm, sigset_t signals) {
  int number = 0;
  ::sigwait(&signals, &number);
  const int64_t start = now_ns();
  ccomCommAbort(comm);
  say("returned " + std::to_string(now_ns() - start));
}

// Rank 0's other thread still waits for its signal.
[[noreturn]] void leave(ccomComm_t comm) {
  const int64_t start = now_ns();
  ccomCommDestroy(comm);
  say("left " + std::to_string(start));
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 2) return 3;
  const size_t count = std::strtoul(argv[1], nullptr, 10) / sizeof(float);

  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGUSR2, [](int) { leaves = true; });

  int rank = 0;
  int nranks = 0;
  if (ccomGetLaunch(&rank, &nranks, nullptr, nullptr) != ccomSuccess) give_up();
  if (std::strcmp(argv[1], "start") == 0) return start_on_signal(rank, nranks, signals);
  const bool is_large = argc > 3 && std::atoi(argv[2]) == rank;
  const std::vector<char> resident(is_large ? std::strtoul(argv[3], nullptr, 10) : 0, 1);
  ccomComm_t comm = join(id_of(rank, nranks), rank, nranks);
  std::thread aborter;
  if (rank == 0) aborter = std::thread(abort_on_signal, comm, signals);

  std::vector<float> send(count, 1), recv(count);
  ccomResult_t result = ccomSuccess;
  for (int call = 0; result == ccomSuccess && !leaves; ++call) {
    if (call == 3) say("ready");
    result = ccomAllReduce(send.data(), recv.data(), count, ccomFloat32, ccomSum, comm, nullptr);
  }
  if (result == ccomSuccess) leave(comm);
  say("failed " + std::to_string(now_ns()) + " " + std::to_string(result));
  if (aborter.joinable()) {
    ::kill(::getpid(), SIGUSR1);  // after a death nobody else sends it
    aborter.join();
  }
  ccomCommDestroy(comm);
  return 0;
}
