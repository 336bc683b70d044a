// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose communicator changes all the time: parts are split off, ranks are left out, end suddenly, come back as
// new processes, and leave nothing behind.
//
//   changing_program FOLDER UNTIL SEED                     a founder; until: seconds since 1970
//   changing_program FOLDER UNTIL joins GENERATION INDEX   one that has begun anew: waits to be taken in
//
// Rank 0 draws the next change and tells it to all. Who is left out runs this program again in the same process: the
// image is gone at once, as after a kill, and the kernel closes what it had. Says "wrong ..." or "failed ..." and ends,
// or "done CHANGES" in the end, and "grew ..." where descriptors, threads or memory have.
#include <ccom/ccom.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/harness/resources.h"
#include "tests/processes/rank.h"

namespace ccom {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::system_clock;  // the same in a process that begins anew

constexpr int kFewest = 2;
constexpr int kBaseline = 30;  // changes after which what is used counts

enum class Kind : int { Calls, Split, LeaveOut, EndSuddenly, Grow, End };

// What all ranks hear.
struct Change {
  Kind kind = Kind::Calls;
  int victim = -1;
  unsigned number = 0;
};

// Takes new ranks in: what they find in the folder.
struct Invitation {
  ccomUniqueId id;
  int first = 0, ranks = 0;
};

class Changing {
 public:
  Changing(std::string folder, long long until, unsigned seed)
      : folder_(std::move(folder)), until_(until), random_(seed) {}

  void found() { comm_ = join(nullptr); }
  void be_taken_in(int generation, int index);
  int run();

 private:
  void check(ccomResult_t result) const { require(comm_, result); }
  void look_who_is_here();
  Change agree_on_next();
  void call(ccomComm_t comm) const;
  void split(unsigned number) const;
  void leave_out(const Change& change);
  void grow();
  [[noreturn]] void begin_anew() const;
  void replace_by(ccomComm_t next);
  std::string invitation_at(int generation) const { return folder_ + "/" + std::to_string(generation); }

  const std::string folder_;
  const long long until_;  // seconds since 1970
  std::mt19937 random_;
  ccomComm_t comm_ = nullptr;
  int rank_ = 0, size_ = 0;
  int waiting_ = 0, generation_ = 0;  // of ranks that want to come back
};

void Changing::look_who_is_here() {
  check(ccomCommUserRank(comm_, &rank_));
  check(ccomCommCount(comm_, &size_));
}

void Changing::be_taken_in(int generation, int index) {
  generation_ = generation + 1;
  Invitation found;
  for (;;) {
    std::ifstream file(invitation_at(generation), std::ios::binary);
    if (file.read(reinterpret_cast<char*>(&found), sizeof found)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  check(ccomCommGrow(nullptr, found.ranks, &found.id, found.first + index, &comm_, nullptr));
}

// Also beside others: rank 0 draws, and the bits of all ranks are compared.
Change Changing::agree_on_next() {
  Change change{.number = static_cast<unsigned>(random_())};
  const bool is_over =
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now().time_since_epoch()).count() >= until_;
  if (is_over) {
    change.kind = waiting_ > 0 ? Kind::Grow : Kind::End;
  } else if (waiting_ > 0 && change.number % 3 == 0) {
    change.kind = Kind::Grow;
  } else if (size_ > kFewest && change.number % 3 == 1) {
    change.kind = change.number % 2 == 0 ? Kind::LeaveOut : Kind::EndSuddenly;
    change.victim = static_cast<int>(change.number / 7 % static_cast<unsigned>(size_));
  } else {
    change.kind = change.number % 2 == 0 ? Kind::Split : Kind::Calls;
  }
  check(ccomBroadcast(&change, &change, sizeof change, ccomUint8, 0, comm_, nullptr));
  return change;
}

void Changing::call(ccomComm_t comm) const {
  int size = 0, own = 0;
  check(ccomCommCount(comm, &size));
  check(ccomCommUserRank(comm, &own));
  for (const size_t count : {size_t{1}, size_t{5000}, size_t{70000}}) {
    std::vector<int> data(count, own + 1);
    check(ccomAllReduce(data.data(), data.data(), count, ccomInt32, ccomSum, comm, nullptr));
    if (std::ranges::all_of(data, [size](int value) { return value == size * (size + 1) / 2; })) continue;
    say("wrong sum of " + std::to_string(size) + " ranks");
    std::exit(1);
  }
}

void Changing::split(unsigned number) const {
  ccomComm_t part = nullptr;
  check(ccomCommSplit(comm_, (rank_ + static_cast<int>(number / 5 % 7)) % 2, rank_, &part, nullptr));
  call(part);
  check(ccomCommDestroy(part));
}

void Changing::replace_by(ccomComm_t next) {
  check(ccomCommDestroy(comm_));
  comm_ = next;
  look_who_is_here();
}

// By name, or because it is not there any more: then the others find out in a call.
void Changing::leave_out(const Change& change) {
  const bool is_named = change.kind == Kind::LeaveOut;
  ccomResult_t result = ccomBarrier(comm_, nullptr);  // all know the change, before somebody is gone
  if (is_named || rank_ == change.victim) check(result);
  if (rank_ == change.victim) {
    if (is_named) check(ccomCommDestroy(comm_));
    begin_anew();
  }
  ++waiting_;
  if (!is_named) {
    int value = 0;
    while (result == ccomSuccess) result = ccomAllReduce(&value, &value, 1, ccomInt32, ccomSum, comm_, nullptr);
    if (result != ccomRemoteError) check(result);
  }
  ccomComm_t smaller = nullptr;
  check(ccomCommShrink(comm_, is_named ? &change.victim : nullptr, is_named ? 1 : 0, &smaller, nullptr, 0));
  const int before = size_;
  replace_by(smaller);
  if (size_ == before - 1) return;
  say("wrong number of ranks " + std::to_string(size_) + " after " + std::to_string(before));
  std::exit(1);
}

void Changing::grow() {
  Invitation invitation{.id = {}, .first = size_, .ranks = size_ + waiting_};
  if (rank_ == 0) {
    check(ccomCommGetUniqueId(comm_, &invitation.id));
    const std::string path = invitation_at(generation_);
    std::ofstream(path + ".new", std::ios::binary).write(reinterpret_cast<const char*>(&invitation), sizeof invitation);
    fs::rename(path + ".new", path);
  }
  ccomComm_t larger = nullptr;
  check(ccomCommGrow(comm_, invitation.ranks, rank_ == 0 ? &invitation.id : nullptr, -1, &larger, nullptr));
  replace_by(larger);
  ++generation_;
  waiting_ = 0;
}

// What is open is closed on exec, the robust futexes are released by the kernel.
void Changing::begin_anew() const {
  const std::string until = std::to_string(until_), generation = std::to_string(generation_),
                    index = std::to_string(waiting_);
  ::execl("/proc/self/exe", "changing_program", folder_.c_str(), until.c_str(), "joins", generation.c_str(),
          index.c_str(), static_cast<char*>(nullptr));
  std::perror("exec");
  std::_Exit(4);
}

int Changing::run() {
  look_who_is_here();
  Resources before;
  int changes = 0;
  for (;; ++changes) {
    if (changes <= kBaseline) before = {};
    call(comm_);
    const Change change = agree_on_next();
    if (change.kind == Kind::End) break;
    if (change.kind == Kind::Split) split(change.number);
    if (change.kind == Kind::LeaveOut || change.kind == Kind::EndSuddenly) leave_out(change);
    if (change.kind == Kind::Grow) grow();
  }
  const Resources after;
  const std::string used = text_of(before) + " to " + text_of(after) + " in " + std::to_string(changes) + " changes";
  if (has_grown(before, after)) say("grew from " + used);
  check(ccomCommDestroy(comm_));
  say("done with " + std::to_string(size_) + " ranks, from " + used);
  return 0;
}

}  // namespace
}  // namespace ccom

int main(int argc, char** argv) {
  if (argc < 4) return 3;
  const std::string folder = argv[1];
  const long long number = std::atoll(argv[2]);
  if (argc > 5) {
    ccom::Changing joiner(folder, number, static_cast<unsigned>(::getpid()));
    joiner.be_taken_in(std::atoi(argv[4]), std::atoi(argv[5]));
    return joiner.run();
  }
  ccom::rank = std::atoi(std::getenv("CCOM_RANK"));
  ccom::nranks = std::atoi(std::getenv("CCOM_NRANKS"));
  ccom::Changing founder(folder, number, static_cast<unsigned>(std::atoi(argv[3])));
  founder.found();
  return founder.run();
}
