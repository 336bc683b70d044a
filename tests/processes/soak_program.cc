// SPDX-License-Identifier: Apache-2.0
//
// soak_program SEED SECONDS MOST_BYTES THREADS: one rank of the soak (soak_test.cc).
//
// Every thread has a duplicate of the first communicator. Again and again it makes new ones, over all ranks or a part
// of them, and random calls on them. What is called follows from the seed, the thread, and the number of the split
// alone, so a seed repeats its calls; memory, alignment and stream are each rank's own choice, also by the seed. The
// time decides only after which split all end. Says "done CALLS BYTES WRONG", or "failed ..." and "wrong ..." with what
// repeats it; "used ...", or "grew ..." where descriptors, threads or memory have grown in the second half.
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/harness/resources.h"
#include "tests/processes/soak_call.h"

namespace ccom {
namespace {

using launch::Outcome;
using launch::outcome_of;

constexpr int64_t kTimeoutMs = 120'000;
constexpr int kBatches = 32;  // between two splits

struct Settings {
  uint64_t seed = 0;
  int seconds = 0;
  size_t most_bytes = 0;
  int threads = 1;
};

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(9);
}

std::atomic<uint64_t> calls_made{0}, bytes_moved{0}, wrong{0};

// Colour and order of this rank: all in order, all in reverse, the odd and the even ones, halves, the first one alone.
struct Part {
  int color = 0;
  int key = 0;
};
Part part_of(uint64_t way, int rank, int ranks) {
  switch (way % 5) {
    case 0: return {0, rank};
    case 1: return {0, ranks - rank};
    case 2: return {rank % 2, rank};
    case 3: return {rank < ranks / 2 ? 0 : 1, ranks - rank};
    default: return {rank == 0 ? 0 : 1, rank};
  }
}

ccomConfig_t config_of_soak() {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.timeoutMs = kTimeoutMs;
  config.initTimeoutMs = kTimeoutMs;
  config.messages = 1;
  return config;
}

// Collective over `whole`: a communicator over the ranks of the same colour, by a split or by an id of its own.
Outcome split(uint64_t way, ccomComm_t whole, ccomComm_t* part) {
  int rank = 0;
  int ranks = 0;
  ccomCommUserRank(whole, &rank);
  ccomCommCount(whole, &ranks);
  const Part mine = part_of(way, rank, ranks);
  const ccomConfig_t config = config_of_soak();
  if (way / 5 % 2 == 0) return outcome_of(ccomCommSplit(whole, mine.color, mine.key, part, &config), whole, "split");
  int size = 0;
  int place = 0;
  int first = rank;
  for (int other = 0; other < ranks; ++other) {
    const Part theirs = part_of(way, other, ranks);
    if (theirs.color != mine.color) continue;
    ++size;
    place += theirs.key < mine.key ? 1 : 0;
    if (theirs.key < part_of(way, first, ranks).key) first = other;
  }
  ccomUniqueId id{};
  if (place == 0) CCOM_LAUNCH_TRY(outcome_of(ccomGetUniqueId(&id), nullptr, "make an id"));
  std::vector<ccomUniqueId> ids(static_cast<size_t>(ranks));
  CCOM_LAUNCH_TRY(outcome_of(ccomAllGather(&id, ids.data(), sizeof id, ccomUint8, whole, nullptr), whole, "tell ids"));
  return outcome_of(ccomCommInitRankConfig(part, size, ids[static_cast<size_t>(first)], place, &config), nullptr,
                    "make a part by its id");
}

class Member {
 public:
  Member(const Settings& settings, int thread, ccomComm_t whole) : settings_(settings), thread_(thread), whole_(whole) {
    ccomCommUserRank(whole_, &rank_);
  }
  ~Member() {
    if (stream_ != nullptr) ccomStreamDestroy(stream_);
  }

  // For that time.
  Outcome run(std::chrono::milliseconds time) {
    if (stream_ == nullptr) CCOM_LAUNCH_TRY(outcome_of(ccomStreamCreate(&stream_), nullptr, "create a stream"));
    const auto end = std::chrono::steady_clock::now() + time;
    for (uint64_t all_go_on = 1; all_go_on != 0; ++split_) {
      CCOM_LAUNCH_TRY(run_split());
      all_go_on = std::chrono::steady_clock::now() < end ? 1 : 0;
      CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(&all_go_on, &all_go_on, 1, ccomUint64, ccomMin, whole_, nullptr), whole_,
                                 "agree on the end"));
    }
    return {};
  }
  std::string place() const {
    return "seed " + std::to_string(settings_.seed) + ", rank " + std::to_string(rank_) + ", thread " +
           std::to_string(thread_) + ", split " + std::to_string(split_) + ", batch " + std::to_string(batch_);
  }

 private:
  Outcome run_split() {
    common_.seed(scattered(1));
    own_.seed(scattered(2 + static_cast<uint64_t>(rank_)));
    ccomComm_t comm = nullptr;
    CCOM_LAUNCH_TRY(split(common_(), whole_, &comm));
    Outcome outcome;
    for (batch_ = 0; batch_ < kBatches && outcome.ok(); ++batch_) outcome = run_batch(comm);
    if (outcome.ok()) outcome = outcome_of(ccomCommFinalize(comm), comm, "finalize");
    ccomCommDestroy(comm);
    return outcome;
  }

  // Messages, a call, or up to three small ones; twice on the same memory every other time.
  Outcome run_batch(ccomComm_t comm) {
    int rank = 0;
    int ranks = 0;
    ccomCommUserRank(comm, &rank);
    ccomCommCount(comm, &ranks);
    if (common_() % 8 == 0) return exchange(comm, rank, ranks);
    const bool is_grouped = common_() % 3 == 0;
    const size_t size = common_() % 2 == 0 ? 1 : 1 + common_() % 3;
    const uint64_t rounds = 1 + common_() % 2;
    std::vector<std::unique_ptr<SoakCall>> calls;
    for (size_t i = 0; i < size; ++i) {
      const size_t most_bytes = size == 1 ? settings_.most_bytes : std::min(settings_.most_bytes, size_t{1} << 20);
      const bench::Case what = random_case(common_, ranks, most_bytes);
      calls.push_back(std::make_unique<SoakCall>(what, random_placement(), rank, settings_.seed, comm));
      CCOM_LAUNCH_TRY(calls.back()->allocate());
      bytes_moved += rounds * bench::size_bytes_of(what);
    }
    for (uint64_t round = 0; round < rounds; ++round) {
      const uint64_t iteration = split_ * 1000 + static_cast<uint64_t>(batch_) * 2 + round;
      for (const auto& call : calls) call->fill(iteration);
      CCOM_LAUNCH_TRY(issue(calls, is_grouped, comm));
      calls_made += calls.size();
      for (const auto& call : calls) CCOM_LAUNCH_TRY(verify(*call, iteration, comm));
    }
    return {};
  }

  // Each rank sends some messages, with tags, to one at some distance; the receiver takes them in reverse.
  Outcome exchange(ccomComm_t comm, int rank, int ranks) {
    const int distance = static_cast<int>(common_() % static_cast<uint64_t>(ranks));
    const int to = (rank + distance) % ranks, from = (rank + ranks - distance) % ranks;
    const size_t count = common_() % 2 == 0 ? common_() % 300 : common_() % (settings_.most_bytes / 32);
    constexpr int64_t kMessages = 4;
    std::vector<std::vector<uint64_t>> sent, received;
    std::vector<ccomMessage_t> messages;
    const auto content = [&](int sender, int64_t tag, size_t i) {
      return (split_ << 40) + static_cast<uint64_t>(sender * 8 + tag) * 1'000'003 + i;
    };
    ccomResult_t result = ccomSuccess;
    const auto post = [&](auto function, std::vector<uint64_t>& data, int peer, int64_t tag) {
      messages.push_back(nullptr);
      if (result != ccomSuccess) return;
      result = function(data.data(), count * sizeof(uint64_t), peer, tag, comm, nullptr, nullptr, &messages.back());
    };
    for (int64_t tag = 0; tag < kMessages; ++tag) {
      sent.emplace_back(count);
      received.emplace_back(count);
      for (size_t i = 0; i < count; ++i) sent.back()[i] = content(rank, tag, i);
    }
    for (int64_t tag = 0; tag < kMessages; ++tag) {
      post(ccomMessageSend, sent[static_cast<size_t>(tag)], to, tag);
      post(ccomMessageRecv, received[static_cast<size_t>(kMessages - 1 - tag)], from, kMessages - 1 - tag);
    }
    for (ccomMessage_t message : messages) {
      if (message == nullptr) continue;
      if (result == ccomSuccess) result = ccomMessageWait(message, -1, nullptr);
      ccomMessageFree(message);
    }
    CCOM_LAUNCH_TRY(outcome_of(result, comm, "exchange messages"));
    calls_made += kMessages;
    bytes_moved += kMessages * count * sizeof(uint64_t);
    for (int64_t tag = 0; tag < kMessages; ++tag) {
      for (size_t i = 0; i < count; ++i) {
        if (received[static_cast<size_t>(tag)][i] == content(from, tag, i)) continue;
        report("message " + std::to_string(tag) + " of rank " + std::to_string(from) + ", wrong at " +
               std::to_string(i));
        break;
      }
    }
    return {};
  }

  Outcome issue(const std::vector<std::unique_ptr<SoakCall>>& calls, bool is_grouped, ccomComm_t comm) {
    ccomStream_t stream = own_() % 2 == 0 ? stream_ : nullptr;
    if (is_grouped) CCOM_LAUNCH_TRY(outcome_of(ccomGroupStart(), comm, "start a group"));
    ccomResult_t first = ccomSuccess;
    for (const auto& call : calls) {
      if (const ccomResult_t result = call->issue(stream); first == ccomSuccess) first = result;
    }
    if (is_grouped) {
      if (const ccomResult_t result = ccomGroupEnd(); first == ccomSuccess) first = result;
    }
    CCOM_LAUNCH_TRY(outcome_of(first, comm, "make a call"));
    if (stream == nullptr) return {};
    return outcome_of(ccomStreamSynchronize(stream, -1), comm, "synchronise");
  }

  Outcome verify(const SoakCall& call, uint64_t iteration, ccomComm_t comm) {
    if (const std::string fault = call.fault(iteration); !fault.empty()) report(fault);
    if (!call.is_equal_everywhere()) return {};
    const uint64_t hash = call.hash();
    const std::array<uint64_t, 2> mine{hash, ~hash};
    std::array<uint64_t, 2> least{};
    CCOM_LAUNCH_TRY(outcome_of(ccomAllReduce(mine.data(), least.data(), 2, ccomUint64, ccomMin, comm, nullptr), comm,
                               "compare results"));
    if (least != mine) report("results differ between ranks");
    return {};
  }

  void report(const std::string& fault) {
    if (wrong++ < 20) say("wrong " + place() + ": " + fault);
  }

  SoakCall::Placement random_placement() {
    constexpr SoakCall::Memory kKinds[] = {SoakCall::Memory::Ordinary, SoakCall::Memory::Mapped,
                                           SoakCall::Memory::Registered};
    const auto unalign = [this] { return own_() % 2 == 0 ? 0 : own_() % 64; };
    return {.memory = kKinds[own_() % 3], .unalign_send = unalign(), .unalign_recv = unalign()};
  }

  uint64_t scattered(uint64_t purpose) const {
    std::seed_seq words{settings_.seed, static_cast<uint64_t>(thread_), split_, purpose};
    std::array<uint32_t, 2> made{};
    words.generate(made.begin(), made.end());
    return (uint64_t{made[0]} << 32) | made[1];
  }

  const Settings settings_;
  const int thread_;
  const ccomComm_t whole_;
  int rank_ = 0;
  ccomStream_t stream_ = nullptr;
  std::mt19937_64 common_, own_;  // equal on all ranks; this rank's
  uint64_t split_ = 0;
  int batch_ = 0;
};

// All members for that time, each in a thread.
void run_all(const std::vector<std::unique_ptr<Member>>& members, std::chrono::milliseconds time) {
  std::vector<std::thread> threads;
  for (const auto& member : members) {
    threads.emplace_back([&member, time] {
      const Outcome outcome = member->run(time);
      if (outcome.ok()) return;
      say("failed " + member->place() + ": " + outcome.text);
      std::_Exit(4);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ::malloc_trim(0);
}

int run(const Settings& settings) {
  const ccomConfig_t config = config_of_soak();
  ccomUniqueId id;
  ccomComm_t world = nullptr;
  int rank = 0;
  int ranks = 0;
  if (ccomGetLaunch(&rank, &ranks, nullptr, nullptr) != ccomSuccess ||
      ccomUniqueIdFromUrl("env://", ranks, rank, &id) != ccomSuccess ||
      ccomCommInitRankConfig(&world, ranks, id, rank, &config) != ccomSuccess) {
    say(std::string("failed to start: ") + ccomGetLastError(nullptr));
    return 2;
  }
  std::vector<ccomComm_t> wholes(static_cast<size_t>(settings.threads));
  std::vector<std::unique_ptr<Member>> members;
  for (ccomComm_t& whole : wholes) {
    const Outcome outcome = split(members.size() % 2 * 5, world, &whole);
    if (!outcome.ok()) {
      say("failed to duplicate: " + outcome.text);
      return 2;
    }
    members.push_back(std::make_unique<Member>(settings, static_cast<int>(members.size()), whole));
  }
  say("ready");
  const std::chrono::milliseconds time(settings.seconds * 1000);
  run_all(members, time / 2);
  const Resources before;
  run_all(members, time - time / 2);
  const Resources after;
  // What the planner has chosen is kept for each collective, power of two, root and topology of a part: of random calls
  // some tens of MiB, more and more slowly.
  say((has_grown(before, after, size_t{64} << 20) ? "grew from " : "used ") + text_of(before) + ", later " +
      text_of(after));
  members.clear();
  for (ccomComm_t whole : wholes) ccomCommDestroy(whole);
  ccomCommDestroy(world);
  say("done " + std::to_string(calls_made) + " " + std::to_string(bytes_moved) + " " + std::to_string(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ccom

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 5) {
    std::fprintf(stderr, "usage: soak_program SEED SECONDS MOST_BYTES THREADS\n");
    return 3;
  }
  return ccom::run({.seed = std::strtoull(argv[1], nullptr, 10),
                    .seconds = std::atoi(argv[2]),
                    .most_bytes = std::strtoull(argv[3], nullptr, 10),
                    .threads = std::atoi(argv[4])});
}
