// SPDX-License-Identifier: Apache-2.0
#include "sim/message_clock.h"

#include <algorithm>

#include "sim/noise.h"

namespace ccom {

MessageClock::MessageClock(const Topology& topology, const Wires& wires, uint32_t rank_count, const SimOptions& options)
    : options_(options), shared_(options.sharing == Sharing::Fair ? wires.count() : 0) {
  free_.assign(wires.count(), 0);
  report_.wires.resize(wires.count());
  for (uint32_t w = 0; w < wires.count(); ++w) {
    wire_ps_.push_back(1e12 / wires[w].speed.bytes_per_second);
    wire_post_.push_back(picoseconds(wires[w].post_ns));
    wire_latency_.push_back(picoseconds(wires[w].speed.latency_ns));
  }
  for (const auto& slow : options.faults.slow) wire_ps_[slow.wire] /= slow.factor;
  for (uint32_t r = 0; r < rank_count; ++r) {
    const Host& host = topology.hosts[static_cast<size_t>(topology.ranks[r].host)];
    const Costs& costs = host.imposed ? host.imposed->costs : topology.costs;
    SimRank& rank = ranks.emplace_back();
    rank.rank = static_cast<Rank>(r);
    rank.costs = costs;
    rank.post = picoseconds(costs.post_ns);
    rank.take_in = picoseconds(costs.receive_ns);
    rank.reduction = picoseconds(costs.reduce_ns);
    rank.reduce_ps = costs.reduce_bytes_per_second > 0 ? 1e12 / costs.reduce_bytes_per_second : 0;
    rank.copy_ps = costs.copy_bytes_per_second > 0 ? 1e12 / costs.copy_bytes_per_second : 0;
    rank.traced = std::ranges::count(options.traced_ranks, rank.rank) > 0;
  }
}

// ---- Exchanges ------------------------------------------------------------------------------------------------------

uint32_t MessageClock::open(const MessageGroup& group, const Part& part) {
  Exchange exchange;
  exchange.group = &group;
  exchange.part = part;
  exchange.executors.reserve(group.members.size());
  for (const MessageMember& member : group.members) exchange.executors.emplace_back(member.plan->dependencies);
  exchange.is_complete.assign(group.members.size(), 0);
  exchange.pipes.resize(group.pipes.size());
  for (size_t p = 0; p < group.pipes.size(); ++p) exchange.pipes[p].receive = group.pipes[p].receive;
  exchange.left = group.members.size();
  return exchanges_.add(std::move(exchange));
}

void MessageClock::start(uint32_t exchange, uint32_t member) {
  exchanges_[exchange].executors[member].start(ready_);
  issue(exchange, member);
}

bool MessageClock::is_complete(uint32_t exchange, uint32_t member) const {
  return exchanges_[exchange].is_complete[member] != 0;
}

bool MessageClock::leave(uint32_t exchange) {
  if (--exchanges_[exchange].left > 0) return false;
  exchanges_[exchange] = {};
  exchanges_.remove(exchange);
  return true;
}

// ---- Steps ----------------------------------------------------------------------------------------------------------

void MessageClock::handle(const ClockEvent& event) {
  switch (event.kind) {
    case kRequest: request(event.subject); break;
    case kShared:
      if (shared_.is_due(event.subject, now)) leave_shared(event.subject);
      break;
    case kHead: enter_wire(event.subject); break;
    case kTail: arrive(event.subject); break;
    case kLocal: {
      const StepAt at = locals_[event.subject];
      locals_.remove(event.subject);
      step_done(at);
      break;
    }
    default: break;
  }
}

// Starts the steps in ready_. What takes no time is done at once, but noted in done_ first: no recursion.
void MessageClock::issue(uint32_t exchange, uint32_t member) {
  for (const uint32_t s : ready_) {
    const StepAt at{exchange, member, s};
    if (rank_at(at).dead) break;
    if (rank_at(at).traced) started_[{{exchange, member}, s}] = now;
    switch (step_at(at).kind) {
      case StepKind::Send: post(at); break;
      case StepKind::Receive:
      case StepKind::ReceiveReduce: {
        const uint32_t pipe = member_at(at).pipe_of_step[s];
        const uint32_t number = exchanges_[exchange].pipes[pipe].posted++;
        if (const auto waits = unanswered_.find({exchange, pipe, number}); waits != unanswered_.end()) {
          answer(waits->second);
          unanswered_.erase(waits);
        }
        match(exchange, pipe);
        break;
      }
      default: reduce(at); break;
    }
  }
  ready_.clear();
  Exchange& state = exchanges_[exchange];
  if (!state.executors[member].finished() || state.is_complete[member] != 0) return;
  state.is_complete[member] = 1;
  completed.push_back({state.group->members[member].rank, exchange});
}

void MessageClock::follow_up() {
  for (size_t i = 0; i < done_.size(); ++i) {
    const StepAt at = done_[i];
    const SimRank& rank = rank_at(at);
    if (rank.dead) continue;
    if (rank.traced) note_end(at);
    exchanges_[at.exchange].executors[at.member].done(at.step, ready_);
    issue(at.exchange, at.member);
  }
  done_.clear();
}

void MessageClock::post(const StepAt& at) {
  SimRank& rank = rank_at(at);
  if (rank.is_inside) {
    rank.held.push_back(at);
    return;
  }
  rank.free = std::max(rank.free, now) + rank.post + handling(rank, at);
  if (is_rendezvous(at)) rank.free += picoseconds(rank.costs.rendezvous_ns);
  const uint32_t pipe = member_at(at).pipe_of_step[at.step];
  const uint32_t number = exchanges_[at.exchange].pipes[pipe].sent++;
  Flight flight{.send = at, .pipe = pipe, .number = number, .tail = rank.free};
  flight.left = pipe_of(flight).wires;
  if (is_rendezvous(at)) {
    queue.add({rank.free + way_latency(flight), kRequest, flights_.add(flight)});
  } else {
    queue.add({rank.free, kHead, flights_.add(flight)});
  }
  ++report_.messages;
}

SimTime MessageClock::handling(SimRank& rank, const StepAt& at) {
  const double copied = is_rendezvous(at) ? 0 : static_cast<double>(step_at(at).bytes);
  return static_cast<SimTime>(copied * rank.copy_ps + 0.5) + noise(rank);
}

SimTime MessageClock::noise(SimRank& rank) {
  if (options_.noise.message_ns <= 0) return 0;
  return picoseconds(options_.noise.message_ns * exponential(options_.noise.seed, rank.rank, ++rank.drawn));
}

// A receiver has been asked whether it has come to the receive of a message.
void MessageClock::request(uint32_t index) {
  const Flight& flight = flights_[index];
  if (exchanges_[flight.send.exchange].pipes[flight.pipe].posted > flight.number) return answer(index);
  unanswered_.emplace(MessageKey(flight.send.exchange, flight.pipe, flight.number), index);
}

void MessageClock::answer(uint32_t index) {
  Flight& flight = flights_[index];
  flight.tail = now + way_latency(flight);
  queue.add({flight.tail, kHead, index});
}

SimTime MessageClock::way_latency(const Flight& flight, uint32_t from_hop) const {
  SimTime sum = 0;
  for (uint32_t hop = from_hop; hop < pipe_of(flight).wires; ++hop) sum += wire_latency_[path_of(flight)[hop]];
  return sum;
}

// ---- Wires ----------------------------------------------------------------------------------------------------------

void MessageClock::enter_wire(uint32_t index) {
  Flight& flight = flights_[index];
  const uint32_t wire = path_of(flight)[flight.hop++];
  const uint64_t bytes = step_at(flight.send).bytes;
  const SimTime busy =
      std::max(static_cast<SimTime>(static_cast<double>(bytes) * wire_ps_[wire] + 0.5), wire_post_[wire]);
  const bool is_last = flight.hop == pipe_of(flight).wires;
  if (options_.sharing == Sharing::Fair) {
    if (!is_last) queue.add({now + wire_latency_[wire], kHead, index});
    return share_wire(index, wire, busy);
  }
  const SimTime start = std::max(now, free_[wire]);
  free_[wire] = start + busy;
  note_use(wire, bytes, start, start + busy);
  flight.tail = std::max(flight.tail, start + busy) + wire_latency_[wire];
  queue.add(is_last ? ClockEvent{flight.tail, kTail, index} : ClockEvent{start + wire_latency_[wire], kHead, index});
}

void MessageClock::note_use(uint32_t wire, uint64_t bytes, SimTime start, SimTime end) {
  WireUse& use = report_.wires[wire];
  use.bytes += static_cast<double>(bytes);
  use.busy_ns += nanoseconds(end - start);
  ++use.messages;
  if (options_.keep_intervals) report_.intervals.push_back({wire, start, end});
}

void MessageClock::share_wire(uint32_t index, uint32_t wire, SimTime length) {
  const Flight& flight = flights_[index];
  const uint64_t pipe = static_cast<uint64_t>(flight.send.exchange) << 32 | flight.pipe;
  note_use(wire, step_at(flight.send).bytes, now, now + length);
  queue.add({shared_.enter(wire, {index, flight.hop, pipe, length}, now), kShared, wire});
}

// Its tail is there when it is off all wires, each with the latencies that follow.
void MessageClock::leave_shared(uint32_t wire) {
  off_.clear();
  const SimTime next = shared_.end(wire, now, off_);
  if (next != FairWires::kNever) queue.add({next, kShared, wire});
  for (const WireEntry& entry : off_) {
    Flight& flight = flights_[entry.flight];
    flight.tail = std::max(flight.tail, now + way_latency(flight, entry.hop - 1));
    if (--flight.left == 0) queue.add({flight.tail, kTail, entry.flight});
  }
}

void MessageClock::arrive(uint32_t index) {
  const Flight flight = flights_[index];
  flights_.remove(index);
  PipeState& pipe = exchanges_[flight.send.exchange].pipes[flight.pipe];
  const auto key = [&](uint32_t number) { return MessageKey(flight.send.exchange, flight.pipe, number); };
  // Without a rendezvous those of a pipe come in the order of their posts.
  if (flight.number == pipe.arrived || rank_at(flight.send).costs.rendezvous_bytes <= 0) {
    ++pipe.arrived;
    while (!early_.empty() && early_.erase(key(pipe.arrived)) > 0) ++pipe.arrived;
  } else {
    early_.insert(key(flight.number));
  }
  step_done(flight.send);
  match(flight.send.exchange, flight.pipe);
}

// Completes receives in their order.
void MessageClock::match(uint32_t exchange, uint32_t p) {
  Exchange& state = exchanges_[exchange];
  PipeState& pipe = state.pipes[p];
  const uint32_t member = state.group->pipes[p].receiver;
  while (pipe.done < std::min(pipe.arrived, pipe.posted)) {
    const uint32_t s = pipe.receive;
    pipe.receive = state.group->members[member].plan->dependencies.next_on_channel[s];
    ++pipe.done;
    reduce({exchange, member, s});
  }
}

// Occupies the reducer, if the step needs it.
void MessageClock::reduce(const StepAt& at) {
  SimRank& rank = rank_at(at);
  if (rank.is_inside) {
    rank.held.push_back(at);
    return;
  }
  const bool is_message = step_at(at).kind == StepKind::Receive || step_at(at).kind == StepKind::ReceiveReduce;
  auto work = static_cast<SimTime>(static_cast<double>(step_at(at).reduced_bytes) * rank.reduce_ps + 0.5);
  if (is_message) work += rank.take_in + handling(rank, at);
  if (step_at(at).kind == StepKind::ReceiveReduce || step_at(at).kind == StepKind::Reduce) work += rank.reduction;
  if (work == 0) {
    step_done(at);
    return;
  }
  rank.free = std::max(rank.free, now) + work;
  queue.add({rank.free, kLocal, locals_.add(at)});
}

void MessageClock::release(uint32_t index) {
  SimRank& rank = ranks[index];
  rank.is_inside = false;
  const std::vector<StepAt> held = std::exchange(rank.held, {});
  for (const StepAt& at : held) step_at(at).kind == StepKind::Send ? post(at) : reduce(at);
}

// ---- What happened --------------------------------------------------------------------------------------------------

void MessageClock::note_end(const StepAt& at) {
  const Exchange& exchange = exchanges_[at.exchange];
  report_.trace.push_back({.rank = member_at(at).rank,
                           .stage = exchange.part.stage,
                           .tile = exchange.part.tile,
                           .step = at.step,
                           .what = member_at(at).steps[at.step],
                           .bytes = step_at(at).bytes,
                           .start = started_[{{at.exchange, at.member}, at.step}],
                           .end = now});
}

void MessageClock::add_to(SimReport& report) {
  report.wires = std::move(report_.wires);
  report.intervals = std::move(report_.intervals);
  report.messages = report_.messages;
  for (TraceStep& step : report_.trace) report.trace.push_back(step);
}

}  // namespace ccom
