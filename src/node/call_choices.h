// SPDX-License-Identifier: Apache-2.0
//
// Which way calls run whose task has several: one OnlineChoice for each kind of call and of buffers.
//
// Ranks need no messages to agree. Each says at the opening barrier of a call when its last one began, how long it
// took, and where its buffers are; everybody hears the same of everybody. So the time of a call is known after the next
// one has begun: from the begin of the rank that came last to the end of the one that left last. Calls in a row add up
// to the time of all of them, whether ranks have processors of their own or share some; ranks that come late disturb
// nothing.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/call.h"
#include "base/collective.h"
#include "plan/node_plan.h"
#include "plan/online_choice.h"

namespace ccom {

// Belongs to one thread at a time.
class CallChoices {
 public:
  // Of calls that are alike on all ranks but for their buffers.
  struct Kind {
    uint64_t words = 0;  // of the whole call: kind_of()
    uint64_t bytes = 0;  // of a unit
    uint64_t given = 0;  // units
    Collective collective = Collective::AllReduce;
    size_t ways = 1;  // set by begin(): programs that ask for the same work may have other ways to do it
    friend auto operator<=>(const Kind&, const Kind&) = default;  // NOLINT(modernize-use-nullptr): of its own
  };
  // Few v-forms are of one length: those of one power of two are a kind.
  static Kind kind_of_calls(uint64_t words, uint64_t unit_bytes, uint64_t given, Collective collective) {
    return {words, (words & kIsV) != 0 ? std::bit_ceil(unit_bytes) : unit_bytes, given, collective};
  }
  // What is expected of a kind's ways, the same on all ranks; on buffers as of Heard, or on any, as long as they are
  // not known.
  using Expect = std::function<ExpectedWays(const Kind&, const NodeTask&, const std::vector<NodeChoice>& ways,
                                            std::optional<uint64_t> buffers)>;
  // A rank's, behind its Announcement.
  struct Said {
    int64_t begin_ns = 0;  // of the last call that was timed: the host's clock
    float took_ns = 0;
    uint32_t buffers = 0;  // which of them others reach, however the call runs
  };

  // expect: empty: nothing, so that calls begin with the first one. tries: other ways than those that they begin with.
  explicit CallChoices(Expect expect = {}, bool tries = true) : expect_(std::move(expect)), tries_(tries) {}

  // What calls of a kind begin with: the way that those of about as many bytes have found to be the best, or else what
  // is expected.
  ExpectedWays expected(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways,
                        std::optional<uint64_t> buffers = {}) const;
  // The way that this call is to take. In between: end(). ways: the same ones whenever a kind has so many. task: until
  // hear().
  size_t begin(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways);
  // The same for a call that learns nothing, and that some ranks may not make: calls of that kind go on as if there had
  // been none.
  size_t look_up(Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways);
  // Whether end() wants to know how long this rank worked on the call. The same on all ranks.
  bool is_timed() const { return is_timed_; }
  Said say(uint32_t buffers) const { return {last_begin_ns_, last_took_ns_, buffers}; }
  // What all said after the opening barrier, added in the order of ranks.
  struct Heard {
    int64_t begin_ns = 0, end_ns = 0;
    uint64_t mixed = 0;
    bool is_any_mapped = false;
    void add(const Said& said);
    uint64_t buffers() const { return is_any_mapped ? mixed : 0; }  // stands for all of them
  };
  // Whether there is nothing to learn from what they say if they have such buffers.
  bool has_heard(uint64_t buffers) const {
    return last_.choice == nullptr && (calls_ == nullptr || calls_->is_latest(buffers));
  }
  void hear(const Heard& heard);
  void end(int64_t begin_ns, int64_t end_ns);

  // What calls have found out. Valid until the next call.
  struct Found {
    const Kind& kind;
    uint64_t buffers = 0;  // as of Heard
    const std::vector<NodeChoice>& ways;
    const OnlineChoice& choice;
  };
  std::vector<Found> found() const;

 private:
  // Of what is known, the half that calls have used least makes room: a kind takes some KiB.
  static constexpr size_t kMostKinds = 1024;
  static constexpr size_t kMostBuffers = 8;  // of a kind

  using ByBuffers = std::vector<std::pair<uint64_t, std::unique_ptr<OnlineChoice>>>;  // the latest first
  struct Turn {
    OnlineChoice* choice = nullptr;  // null: nothing to learn
    size_t way = 0;
  };
  struct Calls {
    std::vector<NodeChoice> ways;
    ByBuffers by_buffers{};
    uint64_t used = 0;  // the number of begin()
    bool is_latest(uint64_t buffers) const { return !by_buffers.empty() && by_buffers.front().first == buffers; }
  };
  void make_room();
  const OnlineChoice* neighbour(const Kind& of, const std::vector<NodeChoice>& ways,
                                std::optional<uint64_t> buffers) const;

  const Expect expect_;
  const bool tries_;
  std::map<Kind, Calls> kinds_;
  uint64_t begun_ = 0;  // calls
  std::map<Kind, Calls>::iterator latest_ = kinds_.end();
  Calls* calls_ = nullptr;  // of the call under way
  const NodeTask* task_ = nullptr;
  Turn now_, last_;  // last_: its time has not been heard
  int64_t last_begin_ns_ = 0;
  float last_took_ns_ = 0;
  bool is_timed_ = false;
};

}  // namespace ccom
