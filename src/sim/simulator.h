// SPDX-License-Identifier: Apache-2.0
//
// The timed world: plans run by the same Executor as in production, on a clock and on wires instead of transports.
//
// The model. A rank starts one message after another, `post_ns` each. A message then occupies the wires of its path
// (topology/wires.h), each first come first served: its head enters a wire when the head has come there and the wire is
// free, keeps it busy for bytes / bandwidth (at least for the wire's post_ns), and reaches the next one a latency
// later, so that the parts of a long message are on several wires at once (cut-through). When its tail is there, and
// the receiver has come to that step, the receive is done; its reduction, and every copy and local reduction, occupies
// the rank for bytes read / reduce_bytes_per_second. Starting messages and reducing are one processor's work, one after
// another. A message alone on its way takes
//
//   post_ns + sum of latencies + bytes / least bandwidth  (+ reduction)
//
// Sends need no posted receive: every transport has room for what is on the wires. But where the machine's costs name a
// rendezvous (Costs, topology.h), a message that long starts when its receiver has answered; and what its processor has
// to do for a message, starting, copying and taking it in, occupies a rank as the costs say.
//
// Wires are shared in one of two ways (Sharing): first come first served, or fairly (fair_wires.h). Noise adds to each
// start and each taking in of a message, and to when a rank comes to the call, a time drawn from an exponential
// distribution; the seed says which, so that a simulation can be repeated.
//
// Programs. Every rank runs the parts of all tiles in order_of(). A host's ranks run a stage together: it starts when
// the last of them has come and takes what algorithms/stage_cost.h says of their plans; meanwhile they neither start
// messages nor reduce what arrives, but bytes on wires move on. Messages of several tiles are under way at a time and
// compete for wires.
//
// What the model leaves out: processor time besides Costs, and the order of tiles that share a channel. The same in
// every run.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/measured_costs.h"
#include "base/memory_costs.h"
#include "base/status.h"
#include "plan/program.h"
#include "sim/event_queue.h"
#include "topology/wires.h"

namespace ccom {

// Plans are asked for once per rank, in no particular order, and not kept.
using PlanSource = std::function<Plan(Rank)>;

// What is wrong with the machine.
struct Faults {
  struct SlowWire {
    uint32_t wire = 0;
    double factor = 1;  // of its bandwidth: 0.1 is a tenth
  };
  struct Straggler {
    Rank rank = 0;
    double late_ns = 0;  // comes that much later to the call
  };
  struct Death {
    Rank rank = 0;
    double at_ns = 0;
  };
  std::vector<SlowWire> slow;
  std::vector<Straggler> stragglers;
  std::vector<Death> deaths;
  bool empty() const { return slow.empty() && stragglers.empty() && deaths.empty(); }
};

// Means of exponential distributions; 0: none.
struct Noise {
  double message_ns = 0;  // at each start, and each taking in or reduction, of a message
  double late_ns = 0;     // ranks come that much later to the call
  uint64_t seed = 1;
  bool empty() const { return message_ns <= 0 && late_ns <= 0; }
};

// Of a wire among messages.
enum class Sharing : uint8_t {
  InTurn,  // first come, first served
  Fair,    // all at once, each at an equal part of the bandwidth; those of one sender, receiver and channel in turn
};

// Of memory that ranks of a host share.
struct NodeCosts {
  MemoryCosts memory{};
  LineCosts lines{};
  double reused = 0;  // of inputs: NodeMachine
  friend bool operator==(const NodeCosts&, const NodeCosts&) = default;
};

struct SimOptions {
  size_t unit_bytes = 0;  // of a unit (plan.h): the vector of an allreduce, one rank's part of an allgather
  size_t element_bytes = 4;
  // One host stands for all: for plans that treat every host alike. Checked as far as one host's messages reach; if
  // hosts turn out to differ, or are in racks, the simulation is refused, with NotSupported, and where a block has so
  // few elements that blocks differ much in length. All blocks count as equally long then.
  bool fold_hosts = false;
  // That all ranks have inside hosts, as far as a stage's choice makes use of it: by default the kernel reads.
  Reach reach{.input = true};
  std::optional<NodeCosts> node_costs{};  // of all hosts, in place of the topology's
  Faults faults{};
  Sharing sharing = Sharing::InTurn;
  Noise noise{};
  bool keep_intervals = false;       // fill SimReport::intervals
  std::vector<Rank> traced_ranks{};  // fill SimReport::trace for these
};

struct WireUse {
  double bytes = 0;
  double busy_ns = 0;
  uint64_t messages = 0;
};

// A message on a wire.
struct Interval {
  uint32_t wire = 0;
  SimTime start = 0, end = 0;
};

// A step of a traced rank, from its start to its end; or a stage in its host.
struct TraceStep {
  Rank rank = 0;
  uint32_t stage = 0, tile = 0;
  bool is_node_stage = false;
  uint32_t step = 0;
  Step what{};  // none in a host
  size_t bytes = 0;
  SimTime start = 0, end = 0;
};

// Where the time of the rank that ends last went. What it waited, over all stages, is the whole time but for starts of
// messages.
struct StageUse {
  double waited_ns = 0;  // in the stage of its host; or for the stage's messages, having nothing else to do
  double open_ns = 0;    // between start and end of the stage, summed over tiles
};

struct SimReport {
  double time_ns = 0;                // until the last rank that lives is done
  std::vector<double> rank_done_ns;  // by rank; negative: never (dead, or waiting for the dead)
  std::vector<WireUse> wires;        // by wire; folded: of the first host only
  Rank last = 0;                     // who ends last
  std::vector<StageUse> stages;      // of that rank
  uint64_t events = 0;
  uint64_t messages = 0;
  size_t distinct_plans = 0;  // how many different plans there were, apart from who the peers are
  std::vector<Interval> intervals;
  std::vector<TraceStep> trace;
};

// InternalError if the plans do not end (and nobody is dead), naming a rank and the step it waits in.
Result<SimReport> simulate(const Topology& topology, const PlanSource& plan_of, const SimOptions& options);

// A whole program. Hosts are not folded but for programs of one stage of messages.
Result<SimReport> simulate_program(const Topology& topology, const Program& program, const SimOptions& options);

// Of a program of one stage inside a host, in its first tile: what each rank does before it first waits for others. Who
// comes early has done it when the last one comes.
std::vector<double> first_ns(const Topology& topology, const Program& program, const SimOptions& options);

}  // namespace ccom
