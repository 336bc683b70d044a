// SPDX-License-Identifier: Apache-2.0
//
// One rank of a process test: does what its arguments say and reports on stdout, one line per event, for the parent to
// read.
//   rank_program loop BYTES [COLLECTIVE]
//                                    "begins", "joined"; calls without end (endless.h); "ready" after the third,
//                                    "failed ..." on the first error; COLLECTIVE: allreduce, "cycle" or "parts"
//   rank_program outlive             "ready" after a call, when rank 0 has left; rank 2 waits for a message of rank 1
//   rank_program ended HOW BUFFERS BYTES
//                                    the same until SIGUSR1 ends rank 0's communicator (endless.h)
//   rank_program dies COLLECTIVE BUFFERS BYTES VICTIM NUMBER PERCENT
//                                    calls until rank VICTIM kills itself in call NUMBER (endless.h)
//   rank_program shrink BYTES        goes on with the ranks that are left after deaths (endless.h)
//   rank_program unread SECONDS      allreduces for that time, while nobody reads rank 0's stderr, a full pipe;
//                                    then "done"
//   rank_program mismatch ODD CALLS CALLS ...
//                                    the second calls by rank ODD, the first by all others (written_calls.h);
//                                    "failed ..." or "succeeded", then "ended 0."; likewise in another communicator for
//                                    the next three arguments, then "ended 1.", and so on
//   rank_program vanish HOW          rank 1 aborts, makes another call than the others, or lowers its limit of file
//   sizes
//                                    (HOW: abort, mismatch, limit); each rank ends by _exit as soon as it has an error:
//                                    "failed ..."
//   rank_program sleep TIMEOUT_MS   rank 1 comes to a barrier 2.5 s later than the others time out
//   rank_program links COLLECTIVE    one call, then "sent PEER BYTES" for every peer
//   rank_program messages BYTES      a cycle of messages without end; "ready", "failed ..." as above
//   rank_program timed BYTES PAIRS   messages between pairs of ranks (0-2,1-3), at the same time; "took US", the least
//                                    of some rounds: there and back for one pair, there and a barrier for several
//   rank_program leave HOW BYTES     rank 1 leaves after its call 5 (HOW: destroy, finalize, exit, throw, receive); the
//                                    others go on; "left", "failed ..." as above
//   rank_program grow OLD FILE       the first OLD ranks are a communicator that grows by the others; rank 1 makes the
//   id,
//                                    which the others find in FILE; "growing", then "grown" and after a call "called",
//                                    or "failed ..."
//   rank_program end HOW             everybody leaves after call 5, one after another; "ended CODE", its error if any
//   rank_program canary HOW BYTES    allreduces without end on buffers that are HOW (allocate()); "ready"; after an
//                                    error "failed ...", fills the output, and says for some seconds whether it stays
//                                    as it is: "kept" or "overwritten N"
//   rank_program lonely              a message from any rank that never comes, and nobody who waits for it; likewise
// Rank, number of ranks and rendezvous address come from CCOM_RANK, CCOM_NRANKS and CCOM_URL.
#include <ccom/ccom.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/waiting.h"
#include "tests/processes/endless.h"
#include "tests/processes/rank.h"
#include "tests/processes/written_calls.h"

namespace {

using namespace ccom;

void fill_stderr() {
  static int ends[2];
  const std::vector<char> bytes(1 << 20);
  if (::pipe(ends) != 0 || ::dup2(ends[1], STDERR_FILENO) < 0) std::exit(4);
  ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
  while (::write(STDERR_FILENO, bytes.data(), bytes.size()) > 0 || ::write(STDERR_FILENO, bytes.data(), 1) > 0) {
  }
  ::fcntl(STDERR_FILENO, F_SETFL, 0);
}

int unread(int seconds) {
  if (rank == 0) fill_stderr();
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 4000;
  ccomComm_t comm = join(&config);
  const auto begin = std::chrono::steady_clock::now();
  for (int going = 1, all = 0, i = 0; all < nranks || i == 0; ++i) {
    if (i == 3) say("ready");
    going = std::chrono::steady_clock::now() - begin > std::chrono::seconds(seconds) ? 1 : 0;
    require(comm, ccomAllReduce(&going, &all, 1, ccomInt32, ccomSum, comm, nullptr));
  }
  ccomCommDestroy(comm);
  say("done");
  return 0;
}

// With a communicator of its own, which `all` makes.
void mismatch(ccomComm_t all, const ccomConfig_t& config, const std::string& calls) {
  ccomUniqueId id;
  if (rank == 0) require(all, ccomGetUniqueId(&id));
  require(all, ccomBroadcast(&id, &id, sizeof id, ccomUint8, 0, all, nullptr));
  ccomComm_t comm = nullptr;
  require(all, ccomCommInitRankConfig(&comm, nranks, id, rank, &config));
  ccomResult_t result = ccomBarrier(comm, nullptr);
  if (result == ccomSuccess) result = make_calls(calls, comm);
  result == ccomSuccess ? say("succeeded") : say_failure(comm, result);
  ccomCommDestroy(comm);
}

int mismatches(std::span<char* const> arguments) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = 60000;
  ccomComm_t all = join(&config);
  for (size_t i = 0; i < arguments.size() / 3; ++i) {
    const auto now = arguments.subspan(3 * i, 3);
    mismatch(all, config, now[rank == std::atoi(now[0]) ? 2 : 1]);
    say("ended " + std::to_string(i) + ".");
  }
  ccomCommDestroy(all);
  return 0;
}

int vanish(const std::string& how) {
  constexpr int kNumber = 10;  // of the call
  const size_t count = how == "limit" ? 1 << 20 : 2;
  ccomComm_t comm = join(nullptr);
  std::vector<float> in(count, 1), out(count);
  ccomResult_t result = ccomSuccess;
  for (int call = 0; result == ccomSuccess; ++call) {
    const bool is_odd = rank == 1 && call == kNumber;
    if (is_odd && how == "abort") {
      if (ccomCommAbort(comm) != ccomSuccess) std::_Exit(4);
      ::_exit(0);
    }
    const rlimit limit{1 << 20, 1 << 20};
    if (is_odd && how == "limit" && ::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(4);
    const size_t now = how == "limit" ? (call < kNumber ? 1 : count) : (is_odd ? 2 : 1);
    result = ccomAllReduce(in.data(), out.data(), now, ccomFloat32, ccomSum, comm, nullptr);
  }
  say_failure(comm, result);
  ::_exit(0);
}

int sleep_one(int timeout_ms) {
  ::dup2(STDOUT_FILENO, STDERR_FILENO);  // the log is part of what the test reads
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = timeout_ms;
  ccomComm_t comm = join(&config);
  if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms + 2500));
  require(comm, ccomBarrier(comm, nullptr));
  say("succeeded");
  ccomCommDestroy(comm);
  return 0;
}

// Does not return where leaving ends the process. finalize: stays alive, and returns when nobody needs it any more.
int leave(const std::string& how, ccomComm_t comm) {
  say("left");
  if (how == "exit") std::exit(0);
  if (how == "throw") throw std::runtime_error("a failure of the application");
  if (how == "finalize") {
    if (ccomCommFinalize(comm) != ccomSuccess) say("finalize failed");
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  ccomCommDestroy(comm);
  return 0;
}

constexpr int kCallsBeforeLeaving = 5;

int leave_early(const std::string& how, size_t bytes) {
  ccomComm_t comm = join(nullptr);
  const size_t count = bytes / sizeof(float);
  std::vector<float> send(count, 1), recv(count);
  for (int call = 0;; ++call) {
    if (rank == 1 && call == kCallsBeforeLeaving) return leave(how, comm);
    const bool receives = how == "receive" && call == kCallsBeforeLeaving;
    require(comm, receives ? ccomRecv(recv.data(), count, ccomFloat32, 1, comm, nullptr)
                           : ccomAllReduce(send.data(), recv.data(), count, ccomFloat32, ccomSum, comm, nullptr));
  }
}

int canary(const std::string& how, size_t bytes) {
  ::dup2(STDOUT_FILENO, STDERR_FILENO);  // the log is part of what the test reads
  ccomComm_t comm = join(nullptr);
  void* const send = allocate(how, bytes, comm);
  void* const recv = allocate(how, bytes, comm);
  if (send == nullptr || recv == nullptr) return 4;
  std::memset(send, 1, bytes);
  ccomResult_t result = ccomSuccess;
  for (int i = 0; result == ccomSuccess; ++i) {
    if (i == 3) say("ready");
    result = ccomAllReduce(send, recv, bytes, ccomUint8, ccomSum, comm, nullptr);
  }
  fill_canary(recv, bytes);
  say("failed " + std::to_string(result));
  watch_canary(recv, bytes, 15, 100);
  return report_failure(comm, result);
}

int end_one_after_another(const std::string& how) {
  ccomComm_t comm = join(nullptr);
  float value = 1;
  for (int call = 0; call < kCallsBeforeLeaving; ++call) {
    require(comm, ccomAllReduce(&value, &value, 1, ccomFloat32, ccomMax, comm, nullptr));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * rank));
  ccomResult_t result = ccomSuccess;
  ccomCommGetAsyncError(comm, &result);
  if (result == ccomSuccess) result = ccomCommFinalize(comm);
  say("ended " + std::to_string(result) + " " + (result == ccomSuccess ? "" : ccomGetLastError(nullptr)));
  return leave(how, comm);
}

ccomComm_t join_with_messages() {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.messages = 1;
  return join(&config);
}

int messages(size_t bytes) {
  ccomComm_t comm = join_with_messages();
  std::vector<char> out(bytes), in(bytes);
  for (int i = 0;; ++i) {
    if (i == 3) say("ready");
    ccomMessage_t sent = nullptr;
    ccomMessage_t received = nullptr;
    ccomResult_t result =
        ccomMessageRecv(in.data(), bytes, (rank + nranks - 1) % nranks, 0, comm, nullptr, nullptr, &received);
    if (result == ccomSuccess)
      result = ccomMessageSend(out.data(), bytes, (rank + 1) % nranks, 0, comm, nullptr, nullptr, &sent);
    if (result == ccomSuccess) result = ccomMessageWait(received, -1, nullptr);
    if (result == ccomSuccess) result = ccomMessageWait(sent, -1, nullptr);
    if (result != ccomSuccess) return report_failure(comm, result);
    ccomMessageFree(received);
    ccomMessageFree(sent);
  }
}

int lonely() {
  ccomComm_t comm = join_with_messages();
  static std::atomic<int> ended{-1};
  char data[8];
  const auto done = [](void*, ccomResult_t result, int) { ended = result; };
  const ccomResult_t posted = ccomMessageRecv(data, sizeof data, CCOM_ANY_RANK, 0, comm, done, nullptr, nullptr);
  if (posted != ccomSuccess) return report_failure(comm, posted);
  ccomBarrier(comm, nullptr);
  say("ready");
  while (ended == -1) ::usleep(500);
  return report_failure(comm, static_cast<ccomResult_t>(ended.load()));
}

int links(const std::string& collective) {
  ccomComm_t comm = join(nullptr);
  const size_t count = 1000;
  std::vector<float> send(count * static_cast<size_t>(nranks), 1), recv(send.size());
  ccomResult_t result = ccomInternalError;
  if (collective == "allreduce")
    result = ccomAllReduce(send.data(), recv.data(), send.size(), ccomFloat32, ccomSum, comm, nullptr);
  if (collective == "allgather") result = ccomAllGather(send.data(), recv.data(), count, ccomFloat32, comm, nullptr);
  if (collective == "broadcast")
    result = ccomBroadcast(send.data(), recv.data(), count, ccomFloat32, 5 % nranks, comm, nullptr);
  if (collective == "alltoall") result = ccomAlltoAll(send.data(), recv.data(), count, ccomFloat32, comm, nullptr);
  if (result != ccomSuccess) return report_failure(comm, result);
  const float expected = collective == "allreduce" ? static_cast<float>(nranks) : 1;
  if (recv[0] != expected || recv[count - 1] != expected) say("wrong");
  for (int peer = 0; peer < nranks; ++peer) {
    uint64_t bytes = 0;
    ccomCommGetBytesSent(comm, peer, &bytes);
    if (bytes > 0) say("sent " + std::to_string(peer) + " " + std::to_string(bytes));
  }
  ccomBarrier(comm, nullptr);
  ccomCommDestroy(comm);
  say("done");
  return 0;
}

// Whom this rank sends to or, negative minus one, receives from; itself: neither.
int partner_in(const std::string& pairs) {
  for (size_t at = 0; at < pairs.size(); at = pairs.find_first_of(",", at) + 1) {
    int from = 0;
    int to = 0;
    if (std::sscanf(pairs.c_str() + at, "%d-%d", &from, &to) != 2) std::exit(3);
    if (from == rank) return to;
    if (to == rank) return -1 - from;
    if (pairs.find(',', at) == std::string::npos) break;
  }
  return rank;
}

// Rank 0 leaves after the last collective call, rank 1 waits for its death, and rank 2 for a message of rank 1.
int outlive() {
  ccomComm_t comm = join(nullptr);
  require(comm, ccomBarrier(comm, nullptr));
  if (rank == 0) ccomCommDestroy(comm);
  say("ready");
  if (rank < 2) ::pause();
  char byte = 0;
  return report_failure(comm, ccomRecv(&byte, 1, ccomUint8, 1, comm, nullptr));
}

int timed(size_t bytes, const std::string& pairs) {
  constexpr int kRounds = 4;
  ccomComm_t comm = join(nullptr);
  std::vector<char> data(bytes);
  const int partner = partner_in(pairs);
  const bool goes_back = pairs.find(',') == std::string::npos;
  double least = 1e300;
  for (int round = 0; round < kRounds; ++round) {
    ccomResult_t result = ccomBarrier(comm, nullptr);
    ::usleep(2000);  // what follows is no reaction to the barrier's end, which may be told late
    const auto start = std::chrono::steady_clock::now();
    for (const bool back : {false, true}) {
      if (result != ccomSuccess || partner == rank || (back && !goes_back)) break;
      const bool sends = (partner >= 0) != back;
      const int peer = partner >= 0 ? partner : -1 - partner;
      result = sends ? ccomSend(data.data(), bytes, ccomUint8, peer, comm, nullptr)
                     : ccomRecv(data.data(), bytes, ccomUint8, peer, comm, nullptr);
    }
    if (result == ccomSuccess && !goes_back) result = ccomBarrier(comm, nullptr);
    if (result != ccomSuccess) return report_failure(comm, result);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  say("took " + std::to_string(least * 1e6));
  ccomCommDestroy(comm);
  return 0;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): a rank that throws is what "leave throw" is for
int grow(int old_ranks, const std::string& file) {
  ccomComm_t comm = nullptr, larger = nullptr;
  ccomUniqueId id;
  if (rank < old_ranks) {
    require(nullptr, ccomUniqueIdFromUrl("env://", old_ranks, rank, &id));
    require(nullptr, ccomCommInitRank(&comm, old_ranks, id, rank));
    require(comm, ccomBarrier(comm, nullptr));
    if (rank == 1) {
      require(comm, ccomGetUniqueId(&id));
      std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
      if (std::rename((file + ".new").c_str(), file.c_str()) != 0) return 4;
    }
  } else {
    wait_until([&] { return ::access(file.c_str(), F_OK) == 0; });
    std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
  }
  say("growing");
  const bool gives = comm == nullptr || rank == 1;
  const ccomResult_t grown =
      ccomCommGrow(comm, nranks, gives ? &id : nullptr, comm == nullptr ? rank : -1, &larger, nullptr);
  if (grown != ccomSuccess) return report_failure(nullptr, grown);
  say("grown");
  require(larger, ccomBarrier(larger, nullptr));
  say("called");
  ccomCommDestroy(larger);
  if (comm != nullptr) ccomCommDestroy(comm);
  return 0;
}

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): "leave throw" ends by one
  if (argc < 2 || !begin_rank()) {
    std::fprintf(stderr, "%s\n", ccomGetLastError(nullptr));
    return 3;
  }
  const std::string what = argv[1];
  if (what == "unread") return unread(argc > 2 ? std::atoi(argv[2]) : 1);
  if (what == "loop" && argc > 2) {
    return call_without_end(argc > 3 ? argv[3] : "allreduce", std::strtoul(argv[2], nullptr, 10));
  }
  if (what == "ended" && argc > 4) return end_by_signal(argv[2], argv[3], std::strtoul(argv[4], nullptr, 10));
  if (what == "shrink" && argc > 2) return go_on_after_deaths(std::strtoul(argv[2], nullptr, 10));
  if (what == "dies" && argc > 7) {
    const Death death{std::atoi(argv[5]), std::atoi(argv[6]), std::atoi(argv[7])};
    return call_until_a_death(argv[2], argv[3], std::strtoul(argv[4], nullptr, 10), death);
  }
  if (what == "mismatch" && argc > 4) return mismatches({argv + 2, argv + argc});
  if (what == "vanish" && argc > 2) return vanish(argv[2]);
  if (what == "sleep" && argc > 2) return sleep_one(std::atoi(argv[2]));
  if (what == "messages" && argc > 2) return messages(std::strtoul(argv[2], nullptr, 10));
  if (what == "timed" && argc > 3) return timed(std::strtoul(argv[2], nullptr, 10), argv[3]);
  if (what == "leave" && argc > 3) return leave_early(argv[2], std::strtoul(argv[3], nullptr, 10));
  if (what == "canary" && argc > 3) return canary(argv[2], std::strtoul(argv[3], nullptr, 10));
  if (what == "end" && argc > 2) return end_one_after_another(argv[2]);
  if (what == "grow" && argc > 3) return grow(std::atoi(argv[2]), argv[3]);
  if (what == "lonely") return lonely();
  if (what == "outlive") return outlive();
  if (what == "links" && argc > 2) return links(argv[2]);
  return 3;
}
