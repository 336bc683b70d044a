// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include <algorithm>
#include <map>

#include "sim/setting.h"

namespace ccom {
namespace {

struct Flight {
  uint32_t sender = 0, step = 0, pipe = 0, hop = 0;
  SimTime tail = 0;
};

// What an event is about: `subject` is a flight, or a rank with the step in `local_`.
enum EventKind : uint32_t { kHead, kTail, kLocal, kStart, kDeath };

class Simulation {
 public:
  Simulation(const Topology& topology, const SimOptions& options) : options_(options), setting_(topology, options) {}

  Result<SimReport> run(const PlanSource& plan_of) {
    prepare_wires();
    CCOM_TRY(setting_.add_ranks(plan_of));
    prepare_faults();
    while (!queue_.empty()) {
      const ClockEvent event = queue_.take();
      now_ = event.time;
      ++report_.events;
      handle(event);
      follow_up();
    }
    return finish();
  }

 private:
  // ---- before the start ----

  void prepare_wires() {
    free_.assign(setting_.wires.count(), 0);
    report_.wires.resize(setting_.wires.count());
    for (uint32_t w = 0; w < setting_.wires.count(); ++w) {
      wire_ps_.push_back(1e12 / setting_.wires[w].speed.bytes_per_second);
      wire_post_.push_back(picoseconds(setting_.wires[w].post_ns));
      wire_latency_.push_back(picoseconds(setting_.wires[w].speed.latency_ns));
    }
    for (const auto& slow : options_.faults.slow) wire_ps_[slow.wire] /= slow.factor;
  }

  void prepare_faults() {
    std::vector<SimTime> late(setting_.ranks.size());
    for (const auto& straggler : options_.faults.stragglers) {
      late[setting_.index_of.at(straggler.rank)] = picoseconds(straggler.late_ns);
    }
    report_.rank_done_ns.assign(setting_.ranks.size(), -1);
    for (uint32_t r = 0; r < setting_.ranks.size(); ++r) queue_.add({late[r], kStart, r});
    for (const auto& death : options_.faults.deaths) {
      queue_.add({picoseconds(death.at_ns), kDeath, setting_.index_of.at(death.rank)});
    }
  }

  // ---- running ----

  void handle(const ClockEvent& event) {
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
        setting_.ranks[event.subject].executor.start(ready_);
        issue(event.subject);
        break;
      case kDeath: setting_.ranks[event.subject].dead = true; break;
    }
  }

  // Starts what is in ready_. What takes no time is done at once, but noted in done_ first: no recursion.
  void issue(uint32_t r) {
    SimRank& rank = setting_.ranks[r];
    for (const uint32_t s : ready_) {
      if (rank.dead) break;
      if (rank.traced) started_[{r, s}] = now_;
      switch (rank.plan->steps[s].kind) {
        case StepKind::Send: post(r, s); break;
        case StepKind::Receive:
        case StepKind::ReceiveReduce:
          ++setting_.pipes[rank.pipe_of_step[s]].posted;
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
      if (setting_.ranks[r].dead) continue;
      if (setting_.ranks[r].traced) note_end(r, s);
      setting_.ranks[r].executor.done(s, ready_);
      issue(r);
    }
    done_.clear();
  }

  void post(uint32_t r, uint32_t s) {
    SimRank& rank = setting_.ranks[r];
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
    const Pipe& pipe = setting_.pipes[flight.pipe];
    const uint32_t wire = setting_.paths[pipe.first_wire + flight.hop];
    const uint64_t bytes = setting_.ranks[flight.sender].plan->steps[flight.step].bytes;
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
    ++setting_.pipes[flight.pipe].arrived;
    step_done(flight.sender, flight.step);
    match(flight.pipe);
  }

  // Completes receives in their order.
  void match(uint32_t p) {
    while (setting_.pipes[p].done < std::min(setting_.pipes[p].arrived, setting_.pipes[p].posted)) {
      Pipe& pipe = setting_.pipes[p];
      const uint32_t s = pipe.receive;
      const uint32_t r = pipe.receiver;
      pipe.receive = setting_.ranks[r].plan->dependencies.next_on_channel[s];
      ++pipe.done;
      reduce(r, s);
    }
  }

  // Occupies the reducer, if the step needs it.
  void reduce(uint32_t r, uint32_t s) {
    SimRank& rank = setting_.ranks[r];
    const auto work =
        static_cast<SimTime>(static_cast<double>(rank.plan->steps[s].reduced_bytes) * rank.reduce_ps + 0.5);
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
    const SimTime start = started_[{r, s}];
    report_.trace.push_back({setting_.ranks[r].rank, s, setting_.steps_of.at(r)[s],
                             setting_.ranks[r].plan->steps[s].bytes, start, now_});
  }

  Result<SimReport> finish() {
    for (uint32_t r = 0; r < setting_.ranks.size(); ++r) {
      report_.time_ns = std::max(report_.time_ns, report_.rank_done_ns[r]);
      if (setting_.ranks[r].executor.finished() || !options_.faults.deaths.empty()) continue;
      // Folded, a message may have come to the wrong rank: hosts are not alike.
      return error(options_.fold_hosts ? Code::NotSupported : Code::InternalError,
                   "simulation of %s: rank %d waits for ever", setting_.ranks[r].plan->algorithm.c_str(),
                   setting_.ranks[r].rank);
    }
    report_.distinct_plans = setting_.distinct_plans();
    return std::move(report_);
  }

  const SimOptions& options_;
  Setting setting_;
  std::vector<double> wire_ps_;  // per byte
  std::vector<SimTime> wire_post_, wire_latency_, free_;
  EventQueue queue_;
  SimTime now_ = 0;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_flights_;
  std::vector<std::pair<uint32_t, uint32_t>> locals_;
  std::vector<uint32_t> free_locals_;
  std::vector<uint32_t> ready_;
  std::vector<std::pair<uint32_t, uint32_t>> done_;           // rank, step
  std::map<std::pair<uint32_t, uint32_t>, SimTime> started_;  // of traced ranks and steps
  SimReport report_;
};

}  // namespace

Result<SimReport> simulate(const Topology& topology, const PlanSource& plan_of, const SimOptions& options) {
  return Simulation(topology, options).run(plan_of);
}

}  // namespace ccom
