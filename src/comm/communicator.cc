// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <algorithm>
#include <functional>

#include "base/log.h"
#include "base/version.h"
#include "base/wait_limit.h"
#include "planner/forced.h"
#include "planner/plan_file.h"
#include "setup/exchange.h"

namespace ccom {
namespace {

// On a fabric the planner decides how a call is cut, and tiles one after another would add up the latencies of all of
// their steps.
Settings planner_settings(const Topology& topology, const CommConfig& config) {
  const char* const crossing = config.crossing == InterHostMode::One   ? "hierarchical_leaders"
                               : config.crossing == InterHostMode::All ? "hierarchical_sharded"
                                                                       : "";
  Settings settings{.forced = config.algorithm,
                    .preferred = crossing,
                    .shared_memory = config.transports.empty() || config.transports[0] == "shm",
                    .has_ways = config.algorithm.empty(),
                    .order = config.determinism == Determinism::Full ? SumOrder::Canonical : SumOrder::Any,
                    .rounds_once = config.rounds_once,
                    .wire = config.wire};
  if (topology.hosts[0].imposed) settings.scratch_bytes = static_cast<size_t>(config.max_memory);
  settings.most_channels = channels_needed(topology, config.algorithm);
  return settings;
}

}  // namespace

Communicator::Communicator(const Membership& membership, CommConfig config, Topology topology)
    : membership_(membership),
      origins_(static_cast<size_t>(membership.nranks), -1),
      config_(std::move(config)),
      topology_(std::move(topology)),
      timeout_ms_(config_.timeout_ms),
      sent_to_(static_cast<size_t>(membership.nranks)),
      received_from_(static_cast<size_t>(membership.nranks)) {}

// parent: the communicator that this one is a part of; null: it is none.
Result<std::unique_ptr<Communicator>> Communicator::start(Agreement agreement, CommConfig config,
                                                          const Communicator* parent, Rendezvous& rendezvous,
                                                          Deadline deadline) {
  const Membership& membership = agreement.membership;
  const LogContext context(membership.rank, membership.communicator);
  std::unique_ptr<Communicator> self(new Communicator(membership, std::move(config), std::move(agreement.topology)));
  self->shared_choices_ = parent == nullptr ? std::make_shared<SharedChoices>() : parent->shared_choices_;
  self->plans_ = std::move(agreement.plans);
  self->known_ways_ = std::move(agreement.ways);
  if (self->known_ways_.starts >= kEnoughStarts) self->config_.known_own = self->known_ways_.own;
  CCOM_TRY(self->imitate_hosts(parent));
  const bool has_shm = self->config_.transports.empty() ||
                       std::ranges::find(self->config_.transports, "shm") != self->config_.transports.end();
  if (!has_shm) self->topology_ = without_shared_memory(std::move(self->topology_));
  Settings settings = planner_settings(self->topology_, self->config_);
  CCOM_TRY(check_forced(self->config_.algorithm));
  const std::string useless =
      membership.rank == 0 ? useless_part(self->topology_, settings, self->config_.algorithm) : "";
  if (!useless.empty()) log(LogLevel::Warn, "CCOM_ALGO=%s: %s", self->config_.algorithm.c_str(), useless.c_str());
  if (!self->plans_.empty()) {
    Result<std::vector<PlanEntry>> plans = plans_from_json(self->plans_);
    if (!plans) return std::move(plans).error().in("CCOM_PLAN=" + self->config_.plan);
    settings.plans = *std::move(plans);
  }
  Result<std::unique_ptr<CommSetup>> links =
      CommSetup::connect(membership, self->config_, self->machine(), self->topology_,
                         channels_by_peer(self->topology_, settings, membership.rank), rendezvous, deadline,
                         parent == nullptr ? nullptr : parent->links_.get());
  if (!links) return at_its_host(std::move(links).error(), self->machine());
  self->links_ = *std::move(links);
  const Place& place = self->machine().ranks[static_cast<size_t>(membership.rank)];
  WaitPolicy policy = WaitPolicy::for_host(self->machine().ranks_on_machine_of(place.host),
                                           self->machine().hosts[static_cast<size_t>(place.host)].cpus);
  if (self->config_.emulate_scale > 0) policy.spin = policy.yield = std::chrono::nanoseconds(0);  // all sleep
  if (self->config_.interrupted_often) policy.ask_often(self->config_.interrupted);
  self->engine_.emplace(membership.rank, membership.nranks, self->links_->monitor(), self->links_->transports(), *self,
                        policy);
  self->choices_ = self->shared_choices_->of(self->topology_, std::move(settings));
  Status opened = self->links_->dialled();
  if (opened.is_ok()) opened = self->open_host(policy);
  if (opened.is_ok()) opened = self->open_programs();
  if (opened.is_ok()) opened = self->open_messages(policy);
  if (opened.is_ok()) opened = self->open_recorder(parent == nullptr ? 0 : parent->membership_.communicator);
  if (Status met = exchange_status(rendezvous, CommSetup::kLastExchange, opened, deadline); !met.is_ok()) {
    met = at_its_host(std::move(met), self->machine());
    self->report(met);  // others may have begun calls, and are told why this rank leaves
    return met;
  }
  self->links_->monitor().on_failure([woken = self.get()] { woken->wake_waiters(); });
  self->log_start();
  return self;
}

// Behind calls of other threads and streams. False if the call will not be made.
bool Communicator::wait_in_line(Turns::Ticket& place) {
  const int64_t at_most_ms = timeout_ms();
  const auto is_of_use = [this] { return !is_finalized() && links_->monitor().check().is_ok(); };
  for (uint32_t served = turns_.served();; served = turns_.served()) {
    const Deadline deadline = Deadline::after_ms(at_most_ms);
    const WaitLimit limit(deadline, config_.interrupted);  // check() asks whether it is interrupted
    do {
      if (turns_.wait(place, limit.next_look())) return true;
      if (!is_of_use()) return false;
    } while (!deadline.passed());
    if (turns_.served() == served) break;
  }
  report(error(Code::Timeout, "rank %d waited %lld ms for its turn: its call before is not over", membership_.rank,
               static_cast<long long>(at_most_ms))
             .with_peers({membership_.rank})
             .with_cure("see what its streams are doing; raise CCOM_TIMEOUT_MS if they are only slow"));
  return false;
}

Status Communicator::run_at(Turns::Ticket place, const Request& request) {
  if (!wait_for_turn(place)) [[unlikely]]
    return leave(place);
  return in_turn(place, [&] {
    if (is_finalized()) [[unlikely]]
      return refuse_finalized();
    return request.collective == Collective::SendReceive ? run_transfers(&request, 1) : run_in_turn(request);
  });
}

Status Communicator::run(Ticket ticket, const std::vector<Request>& requests) {
  Turns::Ticket place = ticket.use();
  if (!wait_for_turn(place)) return leave(place);
  return in_turn(place, [&] {
    if (is_finalized()) return refuse_finalized();
    Status first;
    for (size_t i = 0; i < requests.size();) {
      size_t count = 1;
      Status status;
      if (requests[i].collective == Collective::SendReceive) {
        while (i + count < requests.size() && requests[i + count].collective == Collective::SendReceive) ++count;
        status = run_transfers(&requests[i], count);
      } else {
        count = std::max<size_t>(count_fused(std::span(requests).subspan(i)), 1);
        status = run_neighbours(std::span(requests).subspan(i, count));
      }
      if (first.is_ok()) first = status;
      i += count;
    }
    return first;
  });
}

// Collectives of a group that follow one another: several are to be fused.
Status Communicator::run_neighbours(std::span<const Request> calls) {
  if (calls.size() > 1) {
    if (std::optional<Status> status = run_fused(calls)) return *std::move(status);
  }
  Status first;
  for (const Request& call : calls) {
    const Status status = run_in_turn(call);
    if (first.is_ok()) first = status;
  }
  return first;
}

// An allgather of what ranks tell one another; all: that of each rank.
Request Communicator::gathering(const void* mine, size_t bytes, void* all) const {
  Request gather;
  gather.collective = Collective::AllGather;
  gather.input = static_cast<const std::byte*>(mine);
  gather.output = static_cast<std::byte*>(all);
  gather.count = bytes;
  gather.type = DataType::Uint8;
  gather.timeout_ms = timeout_ms();
  return gather;
}

Result<std::vector<std::byte*>> Communicator::locate(void* buffer, size_t bytes) {
  struct Said {
    Announcement::Where where;
    uint64_t bytes;
  };
  std::vector<Said> all(static_cast<size_t>(membership_.nranks));
  const Said mine{host_ == nullptr ? Announcement::Where() : host_->reach_map().describe(buffer, bytes), bytes};
  CCOM_TRY(run(gathering(&mine, sizeof mine, all.data())));
  std::vector<std::byte*> found(all.size());
  const std::vector<Rank> neighbours = topology_.ranks_of(topology_.ranks[static_cast<size_t>(membership_.rank)].host);
  for (size_t local = 0; local < neighbours.size() && host_ != nullptr; ++local) {
    const auto rank = static_cast<size_t>(neighbours[local]);
    if (!all[rank].where.is_mapped()) continue;
    found[rank] = host_->reach_map().resolve(static_cast<int>(local), all[rank].where, all[rank].bytes);
  }
  found[static_cast<size_t>(membership_.rank)] = static_cast<std::byte*>(buffer);
  return found;
}

// Remembers the call that met the communicator's error first. Without an operation no call has met it yet.
Status Communicator::finish(std::string_view operation, Status status) {
  if (status.is_ok()) return status;
  const Lock lock(failed_mutex_);
  if (failed_.operation.empty()) failed_ = {std::string(operation), sequence()};
  return config_.name.empty() ? status : std::move(status).in(config_.name);
}

Status Communicator::finish(const Envelope& envelope, Status status) {
  if (status.is_ok()) [[likely]]
    return status;
  links_->monitor().activity().set_result(status);
  const CallKind kind = parts_of(call_of(envelope).kind);
  return finish(call_name(kind.collective, kind.is_v), std::move(status));
}

std::string Communicator::describe_call(const Envelope& envelope) const {
  if (envelope.words[0] != membership_.communicator) return "a message of another communicator";
  return text_of(call_of(envelope));
}

Status Communicator::status() const { return links_->monitor().look(); }

Communicator::Usage Communicator::usage() {
  Usage usage;
  Turns::Ticket place = turns_.take();
  turns_.wait_for_all(place);
  const Status done = in_turn(place, [&] {
    usage.bytes_sent_to = engine_->bytes_sent_to();
    usage.memory_bytes = links_->memory_bytes() + engine_->memory_bytes() + runner_->memory_bytes() +
                         multiplied_.capacity() + packed_.capacity() + (host_ == nullptr ? 0 : host_->memory_bytes());
    return Status();
  });
  CCOM_ASSERT(done.is_ok() || !status().is_ok());
  if (messages_ == nullptr) return usage;
  const Messages::Usage messages = messages_->usage();
  std::ranges::transform(usage.bytes_sent_to, messages.bytes_sent_to, usage.bytes_sent_to.begin(), std::plus<>());
  usage.memory_bytes += messages.memory_bytes;
  return usage;
}

}  // namespace ccom
