// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "sim/program.h"

namespace ccom {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kLeastElements = 64;  // of a block, if all are to count as equally long

SimTime picoseconds(double ns) { return static_cast<SimTime>(std::llround(ns * 1e3)); }
double nanoseconds(SimTime time) { return static_cast<double>(time) / 1e3; }

// An ordered way from one rank to another.
struct Pipe {
  uint32_t receiver = kNone;                   // index into the simulated ranks
  uint32_t first_wire = 0, wires = 0;          // into Simulation::paths_
  uint32_t receive = kNone;                    // the receiver's next step on it that is not done
  uint32_t arrived = 0, posted = 0, done = 0;  // messages
};

struct SimRank {
  Rank rank = 0;
  std::shared_ptr<const Program> program;
  Executor executor;
  std::vector<uint32_t> pipe_of_step;
  SimTime post = 0;        // what starting a message takes
  double reduce_ps = 0;    // per byte
  SimTime may_post = 0;    // when the last message has been started
  SimTime may_reduce = 0;  // when the reducer is free
  bool dead = false, traced = false;
};

struct Flight {
  uint32_t sender = 0, step = 0, pipe = 0, hop = 0;
  SimTime tail = 0;
};

// What an event is about: `subject` is a flight, or a rank with the step in `local_`.
enum EventKind : uint32_t { kHead, kTail, kLocal, kStart, kDeath };

class Simulation {
 public:
  Simulation(const Topology& topology, const SimOptions& options)
      : topology_(topology),
        options_(options),
        wires_(topology),
        programs_(options.unit_bytes, options.element_bytes, options.fold_hosts) {}

  Result<SimReport> run(const PlanSource& plan_of) {
    prepare_wires();
    CCOM_TRY(add_ranks(plan_of));
    prepare_faults();
    while (!queue_.empty()) {
      const Event event = queue_.take();
      now_ = event.time;
      ++report_.events;
      handle(event);
      follow_up();
    }
    return finish();
  }

 private:
  // ---- building ----

  void prepare_wires() {
    free_.assign(wires_.count(), 0);
    report_.wires.resize(wires_.count());
    for (uint32_t w = 0; w < wires_.count(); ++w) {
      wire_ps_.push_back(1e12 / wires_[w].speed.bytes_per_second);
      wire_post_.push_back(picoseconds(wires_[w].post_ns));
      wire_latency_.push_back(picoseconds(wires_[w].speed.latency_ns));
    }
    for (const auto& slow : options_.faults.slow) wire_ps_[slow.wire] /= slow.factor;
  }

  Status add_ranks(const PlanSource& plan_of) {
    for (Rank rank = 0; rank < topology_.nranks(); ++rank) {
      if (options_.fold_hosts && topology_.ranks[static_cast<size_t>(rank)].host != 0) continue;
      index_of_.emplace(rank, static_cast<uint32_t>(index_of_.size()));
    }
    ranks_.reserve(index_of_.size());
    std::vector<Plan> plans;  // kept only while they are needed to fold
    for (Rank rank = 0; rank < topology_.nranks(); ++rank) {
      if (!index_of_.contains(rank)) continue;
      Plan plan = plan_of(rank);
      if (options_.fold_hosts && options_.unit_bytes < kLeastElements * options_.element_bytes * plan.blocks_per_unit) {
        return error(Code::NotSupported, "blocks of %s have too few elements", plan.algorithm.c_str());
      }
      add_rank(plan);
      if (options_.fold_hosts) {
        plans.push_back(std::move(plan));
      } else {
        for (uint32_t s = 0; s < plan.steps.size(); ++s) connect(plan, s);
      }
    }
    return options_.fold_hosts ? fold(plans, plan_of) : Status::ok();
  }

  void add_rank(const Plan& plan) {
    const Host& host = topology_.hosts[static_cast<size_t>(topology_.ranks[static_cast<size_t>(plan.rank)].host)];
    const Costs& costs = host.imposed ? host.imposed->costs : topology_.costs;
    std::shared_ptr<const Program> program = programs_.of(plan);
    Executor executor(program->dependencies);
    ranks_.push_back({.rank = plan.rank,
                      .program = std::move(program),
                      .executor = std::move(executor),
                      .pipe_of_step = std::vector<uint32_t>(plan.steps.size(), kNone),
                      .post = picoseconds(costs.post_ns),
                      .reduce_ps = costs.reduce_bytes_per_second > 0 ? 1e12 / costs.reduce_bytes_per_second : 0,
                      .traced = std::ranges::find(options_.traced_ranks, plan.rank) != options_.traced_ranks.end()});
    if (ranks_.back().traced) plan_steps_.emplace(index_of_.at(plan.rank), plan.steps);
  }

  static uint64_t key_of(Rank from, Rank to, uint8_t channel) {
    return static_cast<uint64_t>(from) << 36 | static_cast<uint64_t>(to) << 8 | channel;
  }

  // The pipe `from` -> `to`; its path is that of `path_from` -> `path_to`.
  uint32_t pipe(Rank from, Rank to, uint8_t channel) {
    const auto [at, is_new] = pipe_of_.emplace(key_of(from, to, channel), static_cast<uint32_t>(pipes_.size()));
    if (is_new) {
      Pipe& added = pipes_.emplace_back();
      added.receiver = index_of_.at(to);
      added.first_wire = static_cast<uint32_t>(paths_.size());
      wires_.path(from, to, paths_);
      added.wires = static_cast<uint32_t>(paths_.size()) - added.first_wire;
    }
    return at->second;
  }

  void connect(const Plan& plan, uint32_t s) {
    const Step& step = plan.steps[s];
    if (!step.is_transfer()) return;
    SimRank& rank = ranks_[index_of_.at(plan.rank)];
    const bool receives = step.is_receive();
    const uint32_t p = receives ? pipe(step.peer, plan.rank, step.channel) : pipe(plan.rank, step.peer, step.channel);
    rank.pipe_of_step[s] = p;
    if (receives && pipes_[p].receive == kNone) pipes_[p].receive = s;
  }

  // Messages that leave the host go to the mate of their receiver (the rank of its place on this host), as the message
  // that the mate gets in the same step of its plan.
  Status fold(const std::vector<Plan>& plans, const PlanSource& plan_of) {
    for (const Plan& plan : plans) {
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        if (plan.steps[s].kind != StepKind::Send || index_of_.contains(plan.steps[s].peer)) connect(plan, s);
      }
    }
    struct Outside {
      Plan plan;
      std::unordered_map<uint64_t, uint32_t> first_receive;  // by peer and channel
    };
    std::unordered_map<Rank, Outside> outside;
    for (const Plan& plan : plans) {
      SimRank& sender = ranks_[index_of_.at(plan.rank)];
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        if (step.kind != StepKind::Send || index_of_.contains(step.peer)) continue;
        const Rank mate = topology_.ranks[static_cast<size_t>(step.peer)].local;  // hosts are numbered alike
        if (!outside.contains(step.peer)) {
          Outside& added = outside[step.peer];
          added.plan = plan_of(step.peer);
          if (programs_.of(added.plan) != ranks_[index_of_.at(mate)].program) return unlike(step.peer, mate);
          for (uint32_t r = 0; r < added.plan.steps.size(); ++r) {
            const Step& receive = added.plan.steps[r];
            if (receive.is_receive()) added.first_receive.emplace(key_of(receive.peer, 0, receive.channel), r);
          }
        }
        const Outside& peer = outside.at(step.peer);
        const auto first = peer.first_receive.find(key_of(plan.rank, 0, step.channel));
        if (first == peer.first_receive.end()) return unlike(step.peer, mate);
        const Step& twin = plans[index_of_.at(mate)].steps[first->second];
        sender.pipe_of_step[s] = pipe(twin.peer, mate, twin.channel);
      }
    }
    return Status::ok();
  }

  Status unlike(Rank rank, Rank mate) const {
    return error(Code::NotSupported, "the plan of rank %d is unlike that of rank %d on the first host", rank, mate)
        .with_cure("Simulate all hosts.");
  }

  void prepare_faults() {
    std::vector<SimTime> late(ranks_.size());
    for (const auto& straggler : options_.faults.stragglers) {
      late[index_of_.at(straggler.rank)] = picoseconds(straggler.late_ns);
    }
    report_.rank_done_ns.assign(ranks_.size(), -1);
    for (uint32_t r = 0; r < ranks_.size(); ++r) queue_.add({late[r], kStart, r});
    for (const auto& death : options_.faults.deaths) {
      queue_.add({picoseconds(death.at_ns), kDeath, index_of_.at(death.rank)});
    }
  }

  // ---- running ----

  void handle(const Event& event) {
    switch (event.kind) {
      case kHead: enter_wire(event.subject); break;
      case kTail: arrive(event.subject); break;
      case kLocal: {
        const auto [rank, step] = locals_[event.subject];
        free_locals_.push_back(event.subject);
        step_done(rank, step);
        break;
      }
      case kStart:
        ranks_[event.subject].executor.start(ready_);
        issue(event.subject);
        break;
      case kDeath: ranks_[event.subject].dead = true; break;
    }
  }

  // Starts what is in ready_. What takes no time is done at once, but noted in done_ first: no recursion.
  void issue(uint32_t r) {
    SimRank& rank = ranks_[r];
    for (const uint32_t s : ready_) {
      if (rank.dead) break;
      if (rank.traced) started_[key_of(static_cast<Rank>(r), static_cast<Rank>(s), 0)] = now_;
      switch (rank.program->steps[s].kind) {
        case StepKind::Send: post(r, s); break;
        case StepKind::Receive:
        case StepKind::ReceiveReduce:
          ++pipes_[rank.pipe_of_step[s]].posted;
          match(rank.pipe_of_step[s]);
          break;
        default: reduce(r, s); break;
      }
    }
    ready_.clear();
    if (rank.executor.finished() && report_.rank_done_ns[r] < 0) report_.rank_done_ns[r] = nanoseconds(now_);
  }

  void step_done(uint32_t r, uint32_t s) { done_.emplace_back(r, s); }

  void follow_up() {
    for (size_t i = 0; i < done_.size(); ++i) {
      const auto [r, s] = done_[i];
      if (ranks_[r].dead) continue;
      if (ranks_[r].traced) note_end(r, s);
      ranks_[r].executor.done(s, ready_);
      issue(r);
    }
    done_.clear();
  }

  void post(uint32_t r, uint32_t s) {
    SimRank& rank = ranks_[r];
    rank.may_post = std::max(rank.may_post, now_) + rank.post;
    uint32_t flight = static_cast<uint32_t>(flights_.size());
    if (free_flights_.empty()) {
      flights_.emplace_back();
    } else {
      flight = free_flights_.back();
      free_flights_.pop_back();
    }
    flights_[flight] = {r, s, rank.pipe_of_step[s], 0, rank.may_post};
    queue_.add({rank.may_post, kHead, flight});
    ++report_.messages;
  }

  void enter_wire(uint32_t index) {
    Flight& flight = flights_[index];
    const Pipe& pipe = pipes_[flight.pipe];
    const uint32_t wire = paths_[pipe.first_wire + flight.hop];
    const uint64_t bytes = ranks_[flight.sender].program->steps[flight.step].bytes;
    const SimTime start = std::max(now_, free_[wire]);
    const SimTime busy =
        std::max(static_cast<SimTime>(static_cast<double>(bytes) * wire_ps_[wire] + 0.5), wire_post_[wire]);
    free_[wire] = start + busy;
    flight.tail = std::max(flight.tail, start + busy) + wire_latency_[wire];
    WireUse& use = report_.wires[wire];
    use.bytes += static_cast<double>(bytes);
    use.busy_ns += nanoseconds(busy);
    ++use.messages;
    if (options_.keep_intervals) report_.intervals.push_back({wire, start, start + busy});
    if (++flight.hop < pipe.wires) {
      queue_.add({start + wire_latency_[wire], kHead, index});
    } else {
      queue_.add({flight.tail, kTail, index});
    }
  }

  void arrive(uint32_t index) {
    const Flight flight = flights_[index];
    free_flights_.push_back(index);
    ++pipes_[flight.pipe].arrived;
    step_done(flight.sender, flight.step);
    match(flight.pipe);
  }

  // Completes receives in their order.
  void match(uint32_t p) {
    while (pipes_[p].done < std::min(pipes_[p].arrived, pipes_[p].posted)) {
      Pipe& pipe = pipes_[p];
      const uint32_t s = pipe.receive;
      const uint32_t r = pipe.receiver;
      pipe.receive = ranks_[r].program->dependencies.next_on_channel[s];
      ++pipe.done;
      reduce(r, s);
    }
  }

  // Occupies the reducer, if the step needs it.
  void reduce(uint32_t r, uint32_t s) {
    SimRank& rank = ranks_[r];
    const auto work =
        static_cast<SimTime>(static_cast<double>(rank.program->steps[s].reduced_bytes) * rank.reduce_ps + 0.5);
    if (work == 0) {
      step_done(r, s);
      return;
    }
    rank.may_reduce = std::max(rank.may_reduce, now_) + work;
    uint32_t local = static_cast<uint32_t>(locals_.size());
    if (free_locals_.empty()) {
      locals_.emplace_back();
    } else {
      local = free_locals_.back();
      free_locals_.pop_back();
    }
    locals_[local] = {r, s};
    queue_.add({rank.may_reduce, kLocal, local});
  }

  // ---- the end ----

  void note_end(uint32_t r, uint32_t s) {
    const SimTime start = started_[key_of(static_cast<Rank>(r), static_cast<Rank>(s), 0)];
    report_.trace.push_back({ranks_[r].rank, s, plan_steps_.at(r)[s], ranks_[r].program->steps[s].bytes, start, now_});
  }

  Result<SimReport> finish() {
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      report_.time_ns = std::max(report_.time_ns, report_.rank_done_ns[r]);
      if (ranks_[r].executor.finished() || !options_.faults.deaths.empty()) continue;
      // Folded, a message may have come to the wrong rank: hosts are not alike.
      return error(options_.fold_hosts ? Code::NotSupported : Code::InternalError,
                   "simulation of %s: rank %d waits for ever", ranks_[r].program->algorithm.c_str(), ranks_[r].rank);
    }
    report_.distinct_programs = programs_.count();
    return std::move(report_);
  }

  const Topology& topology_;
  const SimOptions& options_;
  Wires wires_;
  Programs programs_;
  std::unordered_map<Rank, uint32_t> index_of_;
  std::vector<SimRank> ranks_;
  std::vector<Pipe> pipes_;
  std::unordered_map<uint64_t, uint32_t> pipe_of_;
  std::vector<uint32_t> paths_;
  std::vector<double> wire_ps_;  // per byte
  std::vector<SimTime> wire_post_, wire_latency_, free_;
  EventQueue queue_;
  SimTime now_ = 0;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_flights_;
  std::vector<std::pair<uint32_t, uint32_t>> locals_;
  std::vector<uint32_t> free_locals_;
  std::vector<uint32_t> ready_;
  std::vector<std::pair<uint32_t, uint32_t>> done_;             // rank, step
  std::unordered_map<uint32_t, std::vector<Step>> plan_steps_;  // of traced ranks
  std::unordered_map<uint64_t, SimTime> started_;
  SimReport report_;
};

}  // namespace

Result<SimReport> simulate(const Topology& topology, const PlanSource& plan_of, const SimOptions& options) {
  return Simulation(topology, options).run(plan_of);
}

}  // namespace ccom
