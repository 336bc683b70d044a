// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/log.h"
#include "comm/explanation.h"
#include "kernels/kernels.h"
#include "setup/agreement.h"
#include "setup/emulation.h"
#include "setup/exchange.h"

namespace ccom {
namespace {

// On a fabric the planner decides how a call is cut, and tiles one after another would add up the latencies of all of
// their steps.
Settings planner_settings(const Topology& topology, const CommConfig& config) {
  const char* const crossing = config.crossing == InterHostMode::One   ? "hierarchical_leaders,"
                               : config.crossing == InterHostMode::All ? "hierarchical_sharded,"
                                                                       : "";
  Settings settings{.forced = crossing + config.algorithm,
                    .shared_memory = config.transports.empty() || config.transports[0] == "shm"};
  if (topology.hosts[0].imposed) settings.scratch_bytes = static_cast<size_t>(config.max_memory);
  return settings;
}

}  // namespace

Communicator::Communicator(const Membership& membership, CommConfig config, Topology topology)
    : membership_(membership),
      config_(std::move(config)),
      topology_(std::move(topology)),
      timeout_ms_(config_.timeout_ms),
      sent_to_(static_cast<size_t>(membership.nranks)),
      received_from_(static_cast<size_t>(membership.nranks)) {}

Communicator::~Communicator() {
  drain();
  if (messages_ != nullptr) messages_->close();
}

Result<std::unique_ptr<Communicator>> Communicator::create(const Membership& joining, CommConfig config,
                                                           Rendezvous& rendezvous, Deadline deadline) {
  CCOM_TRY_ASSIGN(Agreement agreement, agree(joining, config, rendezvous, deadline));
  const Membership& membership = agreement.membership;
  std::unique_ptr<Communicator> self(new Communicator(membership, std::move(config), std::move(agreement.topology)));
  CCOM_TRY(check_emulation(self->config_, self->topology_));
  const bool has_shm = self->config_.transports.empty() ||
                       std::ranges::find(self->config_.transports, "shm") != self->config_.transports.end();
  if (!has_shm) self->topology_ = without_shared_memory(std::move(self->topology_));
  const Settings settings = planner_settings(self->topology_, self->config_);
  CCOM_TRY_ASSIGN(self->links_,
                  CommSetup::connect(membership, self->config_, self->topology_,
                                     channels_by_peer(self->topology_, settings, membership.rank), rendezvous,
                                     deadline));
  self->cache_.emplace(membership.rank, self->topology_, settings, *self->links_);
  const Place& place = self->topology_.ranks[static_cast<size_t>(membership.rank)];
  WaitPolicy policy = WaitPolicy::for_host(self->topology_.ranks_on_machine_of(place.host),
                                           self->topology_.hosts[static_cast<size_t>(place.host)].cpus);
  // Emulated time passes while everybody sleeps.
  if (self->config_.emulate_scale > 0) policy.spin = policy.yield = std::chrono::nanoseconds(0);
  self->engine_.emplace(membership.rank, membership.nranks, self->links_->monitor(), self->links_->transports(), *self,
                        policy);
  Status opened = self->open_node(policy);
  if (opened.is_ok()) opened = self->open_messages(policy);
  CCOM_TRY(exchange_status(rendezvous, "node", opened, deadline));
  self->links_->monitor().on_failure([woken = self.get()] { woken->wake_waiters(); });
  log(LogLevel::Info, "rank %d of %d is up: %zu host(s), transports %s, %s", membership.rank, membership.nranks,
      self->topology_.hosts.size(), self->transport_names().c_str(),
      self->config_.topology.empty() ? "no imposed topology" : self->config_.topology.c_str());
  return self;
}

// Whatever is thrown in a turn ends the communicator, not the order of turns: buffers may be posted.
template <typename Fn>
Status Communicator::in_turn(Turns::Ticket ticket, Fn fn) {
  turns_.wait(ticket);
  Status status;
  try {
    status = fn();
  } catch (const std::bad_alloc&) {
    status = engine_->fail(error(Code::OutOfMemory, "rank %d ran out of memory", membership_.rank));
  } catch (const std::exception& exception) {
    status = engine_->fail(error(Code::InternalError, "rank %d: %s", membership_.rank, exception.what()));
  }
  turns_.pass(ticket);
  return status;
}

Status Communicator::run(Turns::Ticket ticket, const Request& request) {
  return in_turn(ticket, [&] {
    return request.collective == Collective::SendReceive ? run_transfers(&request, 1) : run_in_turn(request);
  });
}

Status Communicator::run(Turns::Ticket ticket, const std::vector<Request>& requests) {
  return in_turn(ticket, [&] {
    Status first;
    for (size_t i = 0; i < requests.size();) {
      size_t count = 1;
      Status status;
      if (requests[i].collective == Collective::SendReceive) {
        while (i + count < requests.size() && requests[i + count].collective == Collective::SendReceive) ++count;
        status = run_transfers(&requests[i], count);
      } else {
        status = run_in_turn(requests[i]);
      }
      if (first.is_ok()) first = status;
      i += count;
    }
    return first;
  });
}

Result<std::vector<std::byte*>> Communicator::locate(Turns::Ticket ticket, void* buffer, size_t bytes) {
  struct Said {
    Announcement::Where where;
    uint64_t bytes;
  };
  std::vector<Said> all(static_cast<size_t>(membership_.nranks));
  const Said mine{node_ == nullptr ? Announcement::Where() : node_->reach_map().describe(buffer, bytes), bytes};
  Request gather;
  gather.collective = Collective::AllGather;
  gather.input = reinterpret_cast<const std::byte*>(&mine);
  gather.output = reinterpret_cast<std::byte*>(all.data());
  gather.count = sizeof mine;
  gather.type = DataType::Uint8;
  gather.timeout_ms = timeout_ms();
  CCOM_TRY(run(ticket, gather));
  std::vector<std::byte*> found(all.size());
  for (size_t rank = 0; rank < all.size() && node_ != nullptr; ++rank) {
    if (all[rank].where.is_mapped()) {
      found[rank] = node_->reach_map().resolve(static_cast<int>(rank), all[rank].where, all[rank].bytes);
    }
  }
  found[static_cast<size_t>(membership_.rank)] = static_cast<std::byte*>(buffer);
  return found;
}

void Communicator::drain() {
  const Status nothing = in_turn(turns_.take(), [] { return Status(); });
  CCOM_ASSERT(nothing.is_ok());
}

// Only whoever has the turn writes it.
uint64_t Communicator::next_sequence() {
  const uint64_t next = sequence_.load(std::memory_order_relaxed) + 1;
  sequence_.store(next, std::memory_order_relaxed);
  return next;
}

bool Communicator::is_in_place(const Request& request) const {
  return ccom::is_in_place(request.collective, membership_.rank, membership_.rank == request.root,
                           {request.input, request.output, request.count * size_of(request.type)});
}

PlanKey Communicator::key_of(const Request& request) const {
  return {request.collective, request.type, request.op,    is_in_place(request), request.sends,
          request.root,       request.peer, request.count, request.count};
}

size_t Communicator::input_elements(const Request& request) const {
  return request.count * input_units(request.collective, membership_.nranks, membership_.rank == request.root);
}

const std::byte* Communicator::multiply_input(const Request& request) {
  const size_t elements = input_elements(request);
  multiplied_.resize(elements * size_of(request.type));
  multiply(request.type, request.multiplier, request.input, multiplied_.data(), elements);
  return multiplied_.data();
}

Status Communicator::run_on_node(const Request& request) {
  const Envelope envelope = describe(request, membership_.communicator, next_sequence(), 0);
  TunedCall call;
  call.collective = request.collective;
  call.input = request.multiplier != nullptr ? multiply_input(request) : request.input;
  call.output = request.output;
  call.count = request.count;
  call.type = request.type;
  call.op = request.op;
  call.root = request.root;
  call.in_place = is_in_place(request);
  if (config_.rounding == Rounding::Stochastic) {
    call.rounding = Rounding::Stochastic;
    call.seed = rounding_seed(config_.rounding_seed, sequence());
  }
  if (Status status = node_->run(call, envelope.words, std::chrono::milliseconds(request.timeout_ms)); !status.is_ok())
      [[unlikely]] {
    return finish(name_of(request.collective), std::move(status));
  }
  return {};
}

Status Communicator::run_in_turn(const Request& asked) {
  if (on_node_[static_cast<size_t>(asked.collective)]) return run_on_node(asked);
  const uint64_t sequence = next_sequence();
  links_->monitor().begin_call(sequence);
  const Envelope envelope = describe(asked, membership_.communicator, sequence, 0);
  Request request = asked;
  if (request.multiplier != nullptr) request.input = multiply_input(request);
  const Deadline deadline = Deadline::after_ms(request.timeout_ms);
  const PlanKey key = key_of(request);
  if (by_hosts_[static_cast<size_t>(request.collective)] &&
      serves(*level_, request.collective, cache_->question(key).bytes)) {
    return finish(name_of(request.collective), hierarchy_->run(request, envelope, deadline));
  }
  constexpr size_t kNeverTiled = 4096;  // elements: skips a look-up for what is small anyway
  if (request.count > kNeverTiled) {
    const size_t tile = cache_->tile(key);
    if (tile < request.count) return run_tiles(request, key, tile, envelope, deadline);
  }
  CCOM_TRY_ASSIGN(const std::shared_ptr<const BoundPlan> plan, cache_->get(key));
  return run_operation(request, *plan, envelope, deadline);
}

Status Communicator::run_operation(const Request& request, const BoundPlan& plan, const Envelope& envelope,
                                   Deadline deadline) {
  if (plan.scratch_bytes > static_cast<size_t>(config_.max_memory)) {
    return finish(name_of(request.collective),
                  engine_->fail(error(Code::OutOfMemory, "rank %d: %s needs %zu bytes of scratch, maxMemory is %lld",
                                      membership_.rank, call_text(envelope).c_str(), plan.scratch_bytes,
                                      static_cast<long long>(config_.max_memory))
                                    .with_cure("raise maxMemory (CCOM_MAX_MEMORY) or split the call")));
  }
  const Operation operation{&plan,   request.input, request.output,
                            nullptr, envelope,      static_cast<uint32_t>(membership_.nranks)};
  return finish(name_of(request.collective), engine_->run({&operation, 1}, deadline));
}

// One element range of every unit after another. All ranks cut alike, because they chose the same plan.
Status Communicator::run_tiles(const Request& request, PlanKey key, size_t tile, Envelope envelope, Deadline deadline) {
  for (size_t begin = 0; begin < request.count; begin += tile, ++envelope.words[4]) {
    key.unit_elements = std::min(tile, request.count - begin);
    CCOM_TRY_ASSIGN(const std::shared_ptr<const BoundPlan> plan, cache_->get(key));
    Request part = request;
    part.input += begin * size_of(request.type);
    part.output += begin * size_of(request.type);
    CCOM_TRY(run_operation(part, *plan, envelope, deadline));
  }
  return {};
}

// Remembers the call that met the communicator's error first.
Status Communicator::finish(std::string_view operation, Status status) {
  if (status.is_ok()) return status;
  const std::lock_guard lock(failed_mutex_);
  if (failed_.operation.empty()) failed_ = {std::string(operation), sequence()};
  return config_.name.empty() ? status : std::move(status).in(config_.name);
}

std::string Communicator::describe_call(const Envelope& envelope) const {
  if (envelope.words[0] != membership_.communicator) return "a message of another communicator";
  return call_text(envelope);
}

void Communicator::abort() {
  const Status in_force = links_->monitor().report(
      error(Code::Aborted, "rank %d aborted the communicator", membership_.rank).with_peers({membership_.rank}));
  CCOM_ASSERT(!in_force.is_ok());
  wake_waiters();
}

// Of this rank's calls. Any thread.
void Communicator::wake_waiters() {
  for (Transport* transport : links_->transports()) transport->wake();
  if (node_ != nullptr) node_->wake();
  if (host_node_ != nullptr) host_node_->wake();
  if (messages_ != nullptr) messages_->wake();
}

Status Communicator::status() const { return links_->monitor().check(); }

Communicator::FailedCall Communicator::failed_call() const {
  const std::lock_guard lock(failed_mutex_);
  return failed_;
}

Communicator::Usage Communicator::usage() {
  Usage usage;
  const Status done = in_turn(turns_.take(), [&] {
    usage.bytes_sent_to = engine_->bytes_sent_to();
    usage.memory_bytes = links_->memory_bytes() + engine_->memory_bytes() + multiplied_.capacity() +
                         (node_ == nullptr ? 0 : node_->memory_bytes()) +
                         (host_node_ == nullptr ? 0 : host_node_->memory_bytes());
    return Status();
  });
  CCOM_ASSERT(done.is_ok() || !status().is_ok());
  if (messages_ == nullptr) return usage;
  const Messages::Usage messages = messages_->usage();
  std::ranges::transform(usage.bytes_sent_to, messages.bytes_sent_to, usage.bytes_sent_to.begin(), std::plus<>());
  usage.memory_bytes += messages.memory_bytes;
  return usage;
}

Result<std::string> Communicator::explain(const Request& request) {
  std::string text;
  CCOM_TRY(in_turn(turns_.take(), [&]() -> Status {
    const PlanKey key = key_of(request);
    CCOM_TRY_ASSIGN(const std::shared_ptr<const Choice> choice, cache_->choice(key));
    text = explanation(topology_, cache_->question(key), *choice);
    return {};
  }));
  return text;
}

}  // namespace ccom
