// SPDX-License-Identifier: Apache-2.0
//
// How ranks meet for a communicator, and its parts beside its transports: shared memory of its host, programs,
// messages.
#include <algorithm>
#include <bit>

#include "base/log.h"
#include "base/version.h"
#include "bootstrap/grpc_client.h"
#include "comm/communicator.h"
#include "comm/learning.h"
#include "comm/lingering.h"
#include "comm/program_proof.h"
#include "planner/machine_view.h"
#include "planner/planner.h"
#include "setup/agreement.h"
#include "setup/emulation.h"

namespace ccom {

Result<std::unique_ptr<Communicator>> Communicator::create(const Membership& joining, CommConfig config,
                                                           Rendezvous& rendezvous, Deadline deadline) {
  CCOM_TRY_ASSIGN(Agreement agreement, agree(joining, config, rendezvous, deadline));
  return start(std::move(agreement), std::move(config), nullptr, rendezvous, deadline);
}

Result<std::unique_ptr<Communicator>> Communicator::join(const UniqueId& id, int nranks, Rank rank,
                                                         const CommConfig& config, Deadline deadline,
                                                         Interrupted given_up) {
  const LogContext context(rank, 0);
  CCOM_TRY_ASSIGN(const std::unique_ptr<Rendezvous> rendezvous,
                  connect_rendezvous(id, nranks, rank, deadline, std::move(given_up),
                                     {.has_socket = true, .host = config.host_id, .ports = config.ports}));
  return create({rank, nranks, id.communicator, id.secret, {}, {id.communicator}}, config, *rendezvous, deadline);
}

// A part imitates its part of what the whole does.
Status Communicator::imitate_hosts(const Communicator* parent) {
  CCOM_TRY(check_emulation(config_, topology_));
  std::optional<Topology> imitated;
  if (parent == nullptr) {
    CCOM_TRY_ASSIGN(imitated, imitated_hosts(topology_));
  } else if (parent->machine_) {
    imitated = part_of(parent->topology_, membership_.parents);
  }
  if (imitated) machine_ = std::exchange(topology_, *std::move(imitated));
  return {};
}

// The memory that the ranks of this host share. Which hosts have such follows from the topology and the settings alone.
Status Communicator::open_host(const WaitPolicy& policy) {
  std::optional<NodeConfig> config = links_->node_config();
  if (!config) return {};
  config->barrier.policy = policy;
  const int host = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  for (const CollectiveTraits& traits : kCollectiveTraits) {
    const bool has_root = is_rooted(traits.collective);
    config->small_bytes[static_cast<size_t>(traits.collective)] =
        std::min(choices_->small_bytes(host, has_root), config->layout.small_bytes(has_root));
  }
  config->barrier.most_long_mails_bytes = kLongMails * config->small_bytes[static_cast<size_t>(Collective::Broadcast)];
  config->tries_ways = config_.tries_ways;
  config->expect = [this, host](CallChoices::Kind kind, const NodeTask& task, const std::vector<NodeChoice>& ways,
                                std::optional<uint64_t> buffers) {
    kind.bytes = std::bit_ceil(kind.bytes);  // the size's class, as the planner is asked
    kind.ways = ways.size();
    const bool is_mapped = buffers.value_or(0) != 0;
    auto& all = expected_ways_[is_mapped ? 1 : 0];
    if (all.size() == kMostExpected) all.clear();
    const auto [known, is_new] = all.try_emplace(kind);
    if (is_new)
      known->second = expected_ways(topology_, host, links_->measured_costs(), task, ways, kind.bytes, is_mapped);
    return known->second;
  };
  if (!known_ways_.kinds.empty()) {
    const HostRanks of = ranks_on(topology_, host);
    const bool logs = config->barrier.local_rank == 0 && !config_.tuning.empty();  // nobody has named the cache
    if (logs && std::ranges::find(known_ways_.kinds, of.ranks, &LearnedKind::ranks) == known_ways_.kinds.end())
      log(LogLevel::Info, "tuning file %s: its ways are not of hosts of %d ranks and are ignored",
          config_.tuning.c_str(), of.ranks);
    config->expect = expected_of(known_ways_, of, logs, std::move(config->expect));
  }
  config->claims_mail = claims_lines(links_->measured_costs().lines);
  if (config_.verify) config->prove = prove_reach;
  config->differ = [this](const CallWords& words, std::span<const uint64_t> claims) {
    return different_counts(parts_of(words[3]).collective, describe_call(Envelope{words}), claims, membership_.nranks);
  };
  host_ = std::make_unique<ShmCollectives>(
      *std::move(config), links_->monitor(), [this](const CallWords& words) { return describe_call(Envelope{words}); },
      [this](const Status& cause) { return engine_->fail(cause); });
  return host_->open();
}

Status Communicator::open_programs() {
  runner_.emplace(ProgramRunner::Parts{host_.get(), *engine_, *links_, *this}, membership_.rank,
                  static_cast<size_t>(config_.max_memory));
  programs_.emplace(membership_.rank, topology_, choices_, links_->measured_costs().lines, *runner_, config_.verify);
  transfers_.emplace(membership_.rank, membership_.nranks, *links_);
  all_linked_ = machine_view(topology_).all_linked;
  if (membership_.nranks == 1) return {};
  if (topology_.hosts.size() > 1 || host_ == nullptr) return {};
  small_calls_.open([this](Collective collective) { return limit_of_small_calls(collective); });
  return {};
}

// In bytes of a unit: of calls that run on the node whatever their size up to there.
int64_t Communicator::limit_of_small_calls(Collective collective) {
  if (collective == Collective::SendReceive) return SmallCalls::kNone;
  // A plan of the user's may be for some of these sizes, and is proved first.
  for (const PlanEntry& entry : choices_->settings().plans)
    if (entry.program.collective == collective) return SmallCalls::kNone;
  const size_t unit_bytes = host_->small_bytes(collective) / input_units(collective, membership_.nranks, true);
  ProgramKey key{.collective = collective, .type = DataType::Uint8};
  key.root = is_rooted(collective) ? 0 : -1;
  for (const size_t count : {size_t{0}, unit_bytes}) {
    // A name that does not exist is the error of the call that asks for it.
    key.count = count;
    const Result<std::shared_ptr<const Choice>> choice = programs_->choice(key);
    if (!choice || !(*choice)->program().is_node()) return SmallCalls::kNone;
  }
  return static_cast<int64_t>(unit_bytes);
}

Status Communicator::open_messages(const WaitPolicy& policy) {
  CCOM_TRY_ASSIGN(std::optional<MessageRoutes> routes, links_->message_routes());
  if (!routes) return {};
  messages_ = std::make_shared<Messages>(
      *std::move(routes), links_->monitor(), policy,
      [this](Status status, bool ends_message) { return finish(ends_message ? "message" : "", std::move(status)); });
  CCOM_TRY(messages_->open());
  lingers_ = messages_->forwards();
  if (lingers_) Lingering::of_process().enter(membership_.communicator);
  return {};
}

// Whoever makes many parts at once gets a line or two a second of them.
void Communicator::log_start() {
  const LogLevel level = membership_.rank == 0 ? LogLevel::Info : LogLevel::Debug;
  const std::string transports = transport_names();
  const char* const topology = config_.topology.empty() ? "host" : config_.topology.c_str();
  if (membership_.parents.empty()) {
    log(level, "ccom %s: rank %d of a communicator of %d on %zu host(s), transports %s, topology %s", kVersion,
        membership_.rank, membership_.nranks, topology_.hosts.size(), transports.c_str(), topology);
  } else {
    log_rarely(LogTopic::PartStarted, level, "rank %d of a part of %d on %zu host(s), transports %s", membership_.rank,
               membership_.nranks, topology_.hosts.size(), transports.c_str());
  }
}

// parent: the number of the communicator that this one is a part of, whose topology holds for it; 0: of none.
Status Communicator::open_recorder(uint64_t parent) {
  CCOM_TRY_ASSIGN(Recorder* const recorder, Recorder::of_process());
  if (recorder == nullptr) return {};
  const bool is_part = parent != 0;
  recorder_.emplace(*recorder, CallRecorder::Identity{.number = membership_.communicator,
                                                      .parent = parent,
                                                      .rank = membership_.rank,
                                                      .nranks = membership_.nranks,
                                                      .name = config_.name,
                                                      .topology = is_part ? "" : to_json(topology_),
                                                      .costs = is_part ? "" : to_json(links_->measured_costs()),
                                                      .origins = is_part ? &membership_.parents : nullptr});
  links_->monitor().activity().record_to(&*recorder_);
  return {};
}

}  // namespace ccom
