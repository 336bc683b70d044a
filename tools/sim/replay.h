// SPDX-License-Identifier: Apache-2.0
//
// What if: the recorded calls of a job, and the time between them, on another machine, with another algorithm or other
// sizes of buckets.
//
// The model. A rank comes to a call as long after the call before it had ended as it was recorded; the call begins when
// the last rank has come, and takes what the simulator says of the program that the planner chooses; who came before
// has done meanwhile what it does before it waits for others. Calls of which one began before the other had ended
// (threads, streams) do not follow each other, unless they are of one communicator. Sends and receives count as time
// between calls. Times that a job computes stay what they were.
//
// On the recorded machine calls run in the way in which they were recorded, where calls find out which one is the
// fastest, and memory that ranks of a host share has the costs that recorded calls show (fit_costs()).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/call.h"
#include "base/measured_costs.h"
#include "base/status.h"
#include "sim/simulator.h"
#include "topology/topology.h"
#include "trace/recorded_job.h"

namespace ccom::simtool {

// One call of all ranks of a communicator.
struct ReplayCall {
  struct Part {
    size_t process = 0;
    int64_t after = -1;   // the call that it follows, by its place in Replay::calls; -1: the beginning
    double gap_ns = 0;    // between the end of that and its coming
    double early_ns = 0;  // as recorded: it came so long before the last one
  };
  size_t group = 0;  // of Replay::groups
  CallDescriptor call;
  std::vector<Part> parts;  // by rank of the communicator
  std::string algorithm;    // as recorded: "node: two_shot; readable"; "": not known
  double recorded_ns = 0;   // from when the last rank came until the last was done; 0: made for this replay
  int64_t follows = -1;     // the one before of its communicator
};

struct Replay {
  struct Group {
    std::string name;
    std::vector<Rank> ranks;  // of the machine
  };
  size_t processes = 0;
  std::vector<Group> groups;
  std::vector<ReplayCall> calls;  // each behind those that it follows
  size_t left_out = 0;            // calls that not all ranks recorded, or finished
  double recorded_ns = 0;         // of the whole, from the first coming to the last end
};

// Of calls that all ranks of a communicator have recorded from beginning to end. Only of communicators of all
// ranks where `nranks` is another number than was recorded: rank r does what rank r modulo the recorded number did.
Result<Replay> replay_of(const RecordedJob& job, int nranks);

// Neighbouring allreduces of one kind cut anew into calls of so many bytes, each begun when its last byte was there. A
// gap of eight times the median one ends a bucket: so a step's gradients are not mixed with the next one's.
Replay with_buckets(const Replay& replay, size_t bucket_bytes);

// All ranks come to each call as late as the one in the middle.
Replay without_stragglers(Replay replay);

// How well costs that were fitted to recorded calls predict other ones.
struct CostFit {
  size_t kinds = 0;  // of calls that they were fitted to
  // Of calls of each half of the kinds, predicted by costs that were fitted to the other half: median of the larger
  // one of predicted / recorded and recorded / predicted.
  double error_elsewhere = 0;
};

struct ReplayMachine {
  Topology topology;
  std::string algorithm;                       // "": as the planner chooses, or as it was recorded
  bool is_recorded = false;                    // calls run there in the way in which they were recorded
  std::optional<MeasuredCosts> measured = {};  // by its ranks, at their start
  std::optional<NodeCosts> node_costs = {};    // in place of the topology's
  std::optional<CostFit> fit = {};             // node_costs are fitted ones
};

struct ReplayedKind {
  Collective collective = Collective::AllReduce;
  size_t bytes = 0;
  std::string algorithm;
  size_t calls = 0;
  double recorded_ns = 0, predicted_ns = 0;  // of the median call; recorded 0: made for this replay
};
// A call is disturbed that took more than kDisturbed times as long as the median one of its kind: what it took beyond
// that is no property of the machine, as when a rank had no processor.
inline constexpr double kDisturbed = 4;

struct Replayed {
  double whole_ns = 0;
  // Of calls that were recorded, from when the last rank came until the last was done: as predicted, as recorded, and
  // of that by disturbances.
  double calls_ns = 0, recorded_calls_ns = 0, disturbed_ns = 0;
  size_t disturbed_calls = 0;
  // Predicted / recorded, of the time in calls without what disturbances took.
  double calls_ratio() const {
    const double recorded_ns = recorded_calls_ns - disturbed_ns;
    return recorded_ns > 0 ? calls_ns / recorded_ns : 0;
  }
  // Of a rank on average: in calls, of that waiting for other ranks to come; the rest is between calls.
  double in_calls_ns = 0, waiting_ns = 0;
  std::vector<ReplayedKind> kinds;  // what takes most first
  double median_ratio = 0;          // predicted / recorded, of all calls that were recorded
};
Result<Replayed> run_replay(const Replay& replay, const ReplayMachine& machine);

// Of recorded calls on the machine that the recording describes.
Result<Topology> recorded_topology(const RecordedJob& job);
// As its ranks have measured it, where they have.
Status use_measured(ReplayMachine& machine, const RecordedJob& job);
// Its costs of memory that ranks share, from what recorded calls took. Of calls that stay inside hosts.
Status fit_costs(const Replay& replay, ReplayMachine& machine);
// All links, cards and memory `factor` times as fast in bytes; latencies stay.
void speed_up(ReplayMachine& machine, double factor);

}  // namespace ccom::simtool
