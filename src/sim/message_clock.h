// SPDX-License-Identifier: Apache-2.0
//
// Room-private: messages on a clock and on wires. Groups of ranks exchange messages by their plans, several at a time,
// over the same wires.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/event_queue.h"
#include "sim/fair_wires.h"
#include "sim/message_group.h"
#include "sim/pool.h"
#include "sim/simulator.h"

namespace ccom {

// A member's messages of a stage and tile.
struct Completion {
  Rank rank = 0;
  uint32_t exchange = 0;
};

// A step under way.
struct StepAt {
  uint32_t exchange = 0, member = 0, step = 0;
};

struct SimRank {
  Rank rank = 0;
  Costs costs;
  SimTime post = 0, take_in = 0, reduction = 0;  // what starting a message takes, and taking it in
  double reduce_ps = 0, copy_ps = 0;             // per byte
  uint64_t drawn = 0;                            // numbers of its noise
  SimTime free = 0;  // when its processor is: it starts messages, takes them in and reduces, one thing after another
  bool dead = false, traced = false;
  bool is_inside = false;    // in a stage of its host: starts and reduces nothing
  std::vector<StepAt> held;  // until it is out again
};

class MessageClock {
 public:
  // Kinds of events that are this class's; others begin at kKinds. A subject is a flight, a step, or a wire.
  enum EventKind : uint32_t { kRequest, kHead, kTail, kLocal, kShared, kKinds };

  MessageClock(const Topology& topology, const Wires& wires, uint32_t ranks, const SimOptions& options);

  // Messages of a group in a tile. `group` outlives them.
  uint32_t open(const MessageGroup& group, const Part& part);
  // A member starts its plan.
  void start(uint32_t exchange, uint32_t member);
  bool is_complete(uint32_t exchange, uint32_t member) const;
  // A member has seen that it is complete. True: it was the last one, the exchange is no more.
  bool leave(uint32_t exchange);

  void handle(const ClockEvent& event);
  // Does what became possible at this instant; fills `completed`.
  void follow_up();
  // The rank is out of its host's stage.
  void release(uint32_t rank);
  void add_to(SimReport& report);

  EventQueue queue;
  SimTime now = 0;
  std::vector<SimRank> ranks;
  std::vector<Completion> completed;

 private:
  struct PipeState {
    uint32_t receive = kNone;                              // the receiver's next step on it that is not done
    uint32_t sent = 0, arrived = 0, posted = 0, done = 0;  // messages
  };
  struct Exchange {
    const MessageGroup* group = nullptr;
    Part part{};
    std::vector<Executor> executors;  // by member
    std::vector<char> is_complete;
    std::vector<PipeState> pipes;
    size_t left = 0;  // members that have not left
  };
  struct Flight {
    StepAt send;
    uint32_t pipe = 0, number = 0;  // of the pipe's messages
    uint32_t hop = 0, left = 0;     // wires that it has entered, and that it is not off yet
    SimTime tail = 0;
  };
  using MessageKey = std::tuple<uint32_t, uint32_t, uint32_t>;  // exchange, pipe, number

  const MessageMember& member_at(const StepAt& at) const { return exchanges_[at.exchange].group->members[at.member]; }
  SimRank& rank_at(const StepAt& at) { return ranks[static_cast<size_t>(member_at(at).rank)]; }
  const TimedStep& step_at(const StepAt& at) const { return member_at(at).plan->steps[at.step]; }

  void issue(uint32_t exchange, uint32_t member);
  void post(const StepAt& at);
  void request(uint32_t flight);
  void answer(uint32_t flight);
  void enter_wire(uint32_t flight);
  void share_wire(uint32_t flight, uint32_t wire, SimTime length);
  void leave_shared(uint32_t wire);
  void note_use(uint32_t wire, uint64_t bytes, SimTime start, SimTime end);
  void arrive(uint32_t flight);
  void match(uint32_t exchange, uint32_t pipe);
  void reduce(const StepAt& at);
  void step_done(const StepAt& at) { done_.push_back(at); }
  void note_end(const StepAt& at);

  const MessagePipe& pipe_of(const Flight& flight) const {
    return exchanges_[flight.send.exchange].group->pipes[flight.pipe];
  }
  const uint32_t* path_of(const Flight& flight) const {
    return exchanges_[flight.send.exchange].group->paths.data() + pipe_of(flight).first_wire;
  }
  SimTime way_latency(const Flight& flight, uint32_t from_hop = 0) const;
  bool is_rendezvous(const StepAt& at) {
    return rank_at(at).costs.is_rendezvous(static_cast<double>(step_at(at).bytes));
  }
  // What a rank's processor does for a message at either end.
  SimTime handling(SimRank& rank, const StepAt& at);
  SimTime noise(SimRank& rank);

  const SimOptions& options_;
  std::vector<double> wire_ps_;  // per byte
  std::vector<SimTime> wire_post_, wire_latency_, free_;
  Pool<Exchange> exchanges_;
  Pool<Flight> flights_;
  Pool<StepAt> locals_;
  FairWires shared_;
  std::vector<WireEntry> off_;                 // scratch of leave_shared()
  std::map<MessageKey, uint32_t> unanswered_;  // flights whose receiver has not come yet
  std::set<MessageKey> early_;                 // that have overtaken one of their pipe
  std::vector<uint32_t> ready_;
  std::vector<StepAt> done_;
  using TraceKey = std::pair<std::pair<uint32_t, uint32_t>, uint32_t>;  // exchange, member, step
  std::map<TraceKey, SimTime> started_;                                 // of traced ranks
  SimReport report_;                                                    // wires, messages, intervals, trace
};

}  // namespace ccom
