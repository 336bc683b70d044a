// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "algorithms/stage_plans.h"
#include "sim/message_clock.h"
#include "sim/noise.h"
#include "sim/program_timing.h"

namespace ccom {
namespace {

// A host's ranks in a stage, from when the first one has come.
struct Meeting {
  Part part;
  int group = 0;
  size_t arrived = 0;
  SimTime end = 0;
};

// How far a rank has come in the program.
struct Progress {
  size_t next = 0;               // part
  SimTime since = 0;             // when it came to that part
  bool is_waiting = false;       // for the messages of that part
  std::vector<StageUse> stages;  // its own
  std::vector<SimTime> opened;   // by stage and bank of tiles under way: start of the stage
};

class Simulation {
 public:
  Simulation(const Topology& topology, const Program& program, StagePlanSource source, const SimOptions& options)
      : program_(program),
        options_(options),
        timing_(topology, program, std::move(source), options),
        order_(order_of(program, timing_.tiles())),
        clock_(topology, timing_.wires(), timing_.ranks(), options) {
    progress_.resize(timing_.ranks());
    for (Progress& progress : progress_) {
      progress.stages.resize(program.stages.size());
      progress.opened.resize(program.stages.size() * kTilesUnderWay);
    }
    report_.rank_done_ns.assign(timing_.ranks(), -1);
  }

  Result<SimReport> run() {
    prepare_starts();
    while (!clock_.queue.empty()) {
      const ClockEvent event = clock_.queue.take();
      clock_.now = event.time;
      ++report_.events;
      switch (event.kind) {
        case kStart: CCOM_TRY(advance(event.subject)); break;
        case kDeath: clock_.ranks[event.subject].dead = true; break;
        case kEnter: enter(event.subject); break;
        case kLeave: CCOM_TRY(leave(event.subject)); break;
        default: clock_.handle(event); break;
      }
      for (clock_.follow_up(); !clock_.completed.empty(); clock_.follow_up()) CCOM_TRY(go_on());
    }
    return finish();
  }

 private:
  enum EventKind : uint32_t { kStart = MessageClock::kKinds, kDeath, kEnter, kLeave };

  void prepare_starts() {
    std::vector<SimTime> late(timing_.ranks());
    for (size_t r = 0; r < late.size() && options_.noise.late_ns > 0; ++r) {
      late[r] = picoseconds(options_.noise.late_ns * exponential(options_.noise.seed, static_cast<Rank>(r), 0));
    }
    for (const auto& straggler : options_.faults.stragglers) {
      late[static_cast<size_t>(straggler.rank)] += picoseconds(straggler.late_ns);
    }
    for (uint32_t r = 0; r < timing_.ranks(); ++r) clock_.queue.add({late[r], kStart, r});
    for (const auto& death : options_.faults.deaths) {
      clock_.queue.add({picoseconds(death.at_ns), kDeath, static_cast<uint32_t>(death.rank)});
    }
  }

  // ---- the parts of a rank ----

  // Runs parts until one takes time.
  Status advance(uint32_t r) {
    Progress& progress = progress_[r];
    while (progress.next < order_.size()) {
      if (clock_.ranks[r].dead) return Status::ok();
      const Part& part = order_[progress.next];
      const StagePlace place = timing_.place(part.stage, static_cast<Rank>(r));
      progress.since = clock_.now;
      if (place.group < 0) {
        ++progress.next;
        continue;
      }
      const bool is_alone = timing_.is_alone(part.stage, place.group);
      if (is_alone && part.kind == Part::Kind::Finish) {  // it has copied at the start
        ++progress.next;
        continue;
      }
      if (is_alone || program_.stages[part.stage].where == Stage::Where::Host) {
        come(r, part, place.group);
        return Status::ok();
      }
      if (part.kind != Part::Kind::Finish) CCOM_TRY(start_messages(r, part, place));
      if (part.kind != Part::Kind::Start && !finish_messages(r, part, place)) return Status::ok();
      ++progress.next;
    }
    if (report_.rank_done_ns[r] < 0) report_.rank_done_ns[r] = nanoseconds(clock_.now);
    return Status::ok();
  }

  // Ranks whose messages of a stage are complete, and who may have waited for that.
  Status go_on() {
    const std::vector<Completion> completed = std::exchange(clock_.completed, {});
    for (const Completion& done : completed) {
      Progress& progress = progress_[static_cast<size_t>(done.rank)];
      if (!progress.is_waiting || exchange_of(order_[progress.next], done.rank) != done.exchange) continue;
      progress.is_waiting = false;
      const Part& part = order_[progress.next];
      finish_messages(static_cast<uint32_t>(done.rank), part, timing_.place(part.stage, done.rank));
      ++progress.next;
      CCOM_TRY(advance(static_cast<uint32_t>(done.rank)));
    }
    return Status::ok();
  }

  SimTime& opened(uint32_t r, const Part& part) {
    return progress_[r].opened[part.stage * kTilesUnderWay + part.tile % kTilesUnderWay];
  }
  void account(uint32_t r, const Part& part) {
    StageUse& use = progress_[r].stages[part.stage];
    use.waited_ns += nanoseconds(clock_.now - progress_[r].since);
    use.open_ns += nanoseconds(clock_.now - opened(r, part));
  }

  // ---- messages ----

  using PartKey = std::tuple<uint32_t, int, uint32_t>;  // stage, group, tile

  uint32_t exchange_of(const Part& part, Rank rank) const {
    const StagePlace place = timing_.place(part.stage, rank);
    const auto found = exchanges_.find({part.stage, place.group, part.tile});
    return found == exchanges_.end() ? kNone : found->second;
  }

  Status start_messages(uint32_t r, const Part& part, const StagePlace& place) {
    opened(r, part) = clock_.now;
    const auto [at, is_new] = exchanges_.try_emplace({part.stage, place.group, part.tile}, kNone);
    if (is_new) {
      CCOM_TRY_ASSIGN(const MessageGroup* const group, timing_.messages(part.stage, place.group, part.tile));
      at->second = clock_.open(*group, part);
    }
    clock_.start(at->second, static_cast<uint32_t>(place.member));
    return Status::ok();
  }

  // False: they are not complete, the rank waits. The last member to leave closes the exchange.
  bool finish_messages(uint32_t r, const Part& part, const StagePlace& place) {
    const auto at = exchanges_.find({part.stage, place.group, part.tile});
    if (!clock_.is_complete(at->second, static_cast<uint32_t>(place.member))) {
      progress_[r].is_waiting = true;
      return false;
    }
    account(r, part);
    if (clock_.leave(at->second)) exchanges_.erase(at);
    return true;
  }

  // ---- inside a host ----

  // A rank comes once it has started its messages and reduced what it had to.
  void come(uint32_t r, const Part& part, int group) {
    SimRank& rank = clock_.ranks[r];
    opened(r, part) = clock_.now;
    rank.is_inside = true;
    const auto [at, is_new] = meeting_of_.try_emplace({part.stage, group, part.tile}, 0);
    if (is_new) {
      at->second = meetings_.add({.part = part, .group = group});
    }
    clock_.queue.add({std::max(clock_.now, rank.free), kEnter, at->second});
  }

  void enter(uint32_t index) {
    Meeting& meeting = meetings_[index];
    const Part& part = meeting.part;
    if (++meeting.arrived < timing_.group_size(part.stage, meeting.group)) return;
    const double duration = timing_.node_ns(part.stage, meeting.group, part.tile);
    clock_.queue.add({clock_.now + picoseconds(duration), kLeave, index});
  }

  Status leave(uint32_t index) {
    const Meeting meeting = meetings_[index];
    meetings_.remove(index);
    meeting_of_.erase({meeting.part.stage, meeting.group, meeting.part.tile});
    for (size_t i = 0; i < timing_.group_size(meeting.part.stage, meeting.group); ++i) {
      const auto r = static_cast<uint32_t>(timing_.member(meeting.part.stage, meeting.group, i));
      SimRank& rank = clock_.ranks[r];
      if (rank.dead) continue;
      account(r, meeting.part);
      if (rank.traced) {
        report_.trace.push_back({.rank = rank.rank,
                                 .stage = meeting.part.stage,
                                 .tile = meeting.part.tile,
                                 .is_node_stage = true,
                                 .start = progress_[r].since,
                                 .end = clock_.now});
      }
      clock_.release(r);
      ++progress_[r].next;
      CCOM_TRY(advance(r));
    }
    return Status::ok();
  }

  // ---- the end ----

  Result<SimReport> finish() {
    for (uint32_t r = 0; r < timing_.ranks(); ++r) {
      if (report_.rank_done_ns[r] > report_.time_ns) {
        report_.time_ns = report_.rank_done_ns[r];
        report_.last = static_cast<Rank>(r);
      }
      if (report_.rank_done_ns[r] >= 0 || !options_.faults.deaths.empty()) continue;
      // Folded, a message may have come to the wrong rank: hosts are not alike.
      return error(options_.fold_hosts ? Code::NotSupported : Code::InternalError,
                   "simulation of %s: rank %u waits for ever in stage %u", program_.algorithm.c_str(), r,
                   order_[progress_[r].next].stage);
    }
    report_.stages = progress_[static_cast<size_t>(report_.last)].stages;
    report_.distinct_plans = timing_.distinct_plans();
    clock_.add_to(report_);
    return std::move(report_);
  }

  const Program& program_;
  const SimOptions& options_;
  ProgramTiming timing_;
  const std::vector<Part> order_;
  MessageClock clock_;
  std::vector<Progress> progress_;  // by rank
  std::map<PartKey, uint32_t> exchanges_, meeting_of_;
  Pool<Meeting> meetings_;
  SimReport report_;
};

}  // namespace

Result<SimReport> simulate(const Topology& topology, const PlanSource& plan_of, const SimOptions& options) {
  Program program{.algorithm = "plans", .collective = Collective::SendReceive, .nranks = topology.nranks()};
  program.stages.emplace_back();
  const StagePlanSource source{
      .messages = [&](const Program&, const Stage&, size_t, int rank, bool) { return plan_of(rank); }, .node = {}};
  return Simulation(topology, program, source, options).run();
}

Result<SimReport> simulate_program(const Topology& topology, const Program& program, const SimOptions& options) {
  StagePlanSource source{stage_plan, stage_node_plan};
  if (program.is_messages()) {  // what its plans have in common is worked out once
    const Stage& stage = program.stages[0];
    source.messages = [plans = message_plans(stage.messages, stage.collective, program.nranks, stage.root)](
                          const Program&, const Stage&, size_t, int rank, bool) { return plans(rank); };
  }
  return Simulation(topology, program, std::move(source), options).run();
}

std::vector<double> first_ns(const Topology& topology, const Program& program, const SimOptions& options) {
  return ProgramTiming(topology, program, {}, options).shared_memory_cost(program.stages[0], 0, 0).first_ns;
}

}  // namespace ccom
