// SPDX-License-Identifier: Apache-2.0
#include "setup/comm_setup.h"

#include <algorithm>

#include "base/assert.h"
#include "base/descriptor_limit.h"
#include "node/fences.h"
#include "node/lines.h"
#include "node/own_memory.h"
#include "setup/emulation.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

constexpr const char* kCapabilities = "segments";
constexpr const char* kAddresses = "addresses";
constexpr const char* kConnected = "connections";

// For what waits for other ranks between two exchanges: a rank that has waited in vain needs time to tell the others,
// and to hear from them who is missing. Of a lost rank it hears in the next exchange, which it begins at once.
WaitLimit before_exchange(Rendezvous& rendezvous, Deadline deadline) {
  constexpr std::chrono::nanoseconds kMostForExchange = std::chrono::seconds(1);
  return {Deadline(deadline.when() - std::min(deadline.left() / 2, kMostForExchange)),
          [&rendezvous] { return rendezvous.has_failed(); }};
}

int index_of(Rank rank, const std::vector<Rank>& ranks) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

CommSetup::CommSetup(const Membership& membership, const CommConfig& config, const Topology& topology,
                     const Topology& imitated, std::vector<int> channels, const HostSegmentNeeds& needs,
                     std::unique_ptr<HostSegment> segment)
    : membership_(membership),
      topology_(topology),
      imitated_(imitated),
      ways_(imitated_),
      channels_(std::move(channels)),
      local_ranks_(topology.ranks_of(topology.ranks[static_cast<size_t>(membership.rank)].host)),
      needs_(needs),
      segment_(std::move(segment)),
      config_(config) {}

// The monitor first: its destructor waits for the liveness thread, which may be calling our listener, and tells the
// other hosts that this rank leaves in order before they see its connections end. What uses the segment goes before it.
CommSetup::~CommSetup() {
  listing_ = Listing();
  published_ = PublishedRank();
  monitor_.reset();
  messages_.reset();
  relay_.reset();
  plans_.reset();
  arenas_.reset();
  if (fabric_ && segment_->is_leader() && segment_->shared() != nullptr) {
    log_traffic(imitated_, *segment_->shared(), *fabric_);
  }
}

Result<std::unique_ptr<CommSetup>> CommSetup::connect(const Membership& membership, const CommConfig& config,
                                                      const Topology& topology, const Topology& imitated,
                                                      std::vector<int> channels, Rendezvous& rendezvous,
                                                      Deadline deadline, const CommSetup* parent) {
  CCOM_ASSERT(channels.size() == static_cast<size_t>(membership.nranks));
  const HostSegmentNeeds needs = segment_needs(config, topology, imitated, membership.rank, channels);
  const int host = topology.ranks[static_cast<size_t>(membership.rank)].host;
  auto segment = std::make_unique<HostSegment>(needs, index_of(membership.rank, topology.ranks_of(host)),
                                               membership.secret.derive("ccom segment"));
  std::unique_ptr<CommSetup> self(
      new CommSetup(membership, config, topology, imitated, std::move(channels), needs, std::move(segment)));
  if (parent != nullptr) self->inherit(*parent);
  Result<std::vector<wire::Capabilities>> gathered = exchange(rendezvous, kCapabilities, self->create(), deadline);
  if (!gathered) {  // on all ranks, unless the exchange itself has failed
    if (!rendezvous.has_failed()) self->segment_->abandon();
    return std::move(gathered).error();
  }
  const std::vector<wire::Capabilities>& capabilities = *gathered;
  self->choose_capabilities(capabilities);
  const Result<wire::Addresses> mine = self->share(capabilities, before_exchange(rendezvous, deadline));
  // Of the ranks of a part that have no addresses, those that failed say so in the last exchange.
  const bool tells = parent == nullptr || self->uses_network();
  if (!tells && !mine) return exchange_status(rendezvous, kLastExchange, mine.error(), deadline);
  CCOM_TRY_ASSIGN(const std::vector<wire::Addresses> addresses,
                  tells ? exchange(rendezvous, kAddresses, mine, deadline)
                        : Result(std::vector<wire::Addresses>(static_cast<size_t>(membership.nranks), *mine)));
  Result<wire::Connected> dialled = self->dial(addresses, self->until_failure(before_exchange(rendezvous, deadline)));
  if (parent != nullptr) {
    if (!dialled) self->dialled_ = self->monitor_->report(dialled.error());
    return self;
  }
  CCOM_TRY_ASSIGN(const std::vector<wire::Connected> connected, exchange(rendezvous, kConnected, dialled, deadline));
  CCOM_TRY(self->agree_on_reach(connected));
  return self;
}

// The leader of each host makes the segment, and its monitor, which initialises the board.
Result<wire::Capabilities> CommSetup::create() {
  CCOM_TRY(check_metrics());
  CCOM_TRY_ASSIGN(routes_, choose_routes(config_, topology_, imitated_, membership_.rank));
  if (uses_network()) {
    CCOM_TRY_ASSIGN(network_, choose_network(config_, topology_, list_interfaces()));
    CCOM_TRY(make_room_for_descriptors(network_descriptors()));
  }
  if (needs_.wires > 0) {
    fabric_ = emulated_fabric(imitated_, membership_.rank, config_.emulate_scale);
  }
  wire::Capabilities mine;
  mine.set_process(process_number());
  mine.set_efa(can_use_efa());
  if (needs_.has_collectives && !inherits()) {
    arenas_ = std::make_shared<ArenaExchange>(segment_->local_rank(), membership_.secret.derive("ccom arena"));
    *mine.mutable_memory() = ArenaExchange::describe();
  }
  // A part that is alone on its host needs nobody to reach its memory.
  const bool is_in_arena = (inherits() && means_.arenas) || (parent_ != 0 && local_ranks_.size() == 1);
  CCOM_TRY(segment_->create(is_in_arena ? process_arena() : nullptr));
  if (segment_->is_leader()) CCOM_TRY(make_monitor(true));
  mine.set_segment(segment_->path());
  if (segment_->place_in_arena()) mine.set_place(*segment_->place_in_arena());
  describe_control(mine);
  return mine;
}

// Of what connects at the start, and of what it needs to wait; a few more for the control trees.
size_t CommSetup::network_descriptors() const {
  constexpr size_t kBeside = 16;
  size_t lines = 0;
  const bool on_use = connects_on_use(config_, membership_.nranks);
  for (size_t peer = 0; peer < channels_.size(); ++peer) {
    const int transport = routes_.of[peer];
    if (transport < 0 || routes_.names[static_cast<size_t>(transport)] != "tcp") continue;
    lines += static_cast<size_t>((on_use ? 0 : channels_[peer]) + message_channels_to(static_cast<Rank>(peer)));
  }
  const size_t of_each = std::max({static_cast<size_t>(network_.tcp_streams), network_.rails.size(), size_t{1}});
  return lines * of_each + kBeside;
}

bool CommSetup::uses_network() const {
  return routes_.names.size() > (routes_.uses("shm") ? 1U : 0U) || topology_.hosts.size() > 1;
}

// Everybody maps the segment and opens its transports.
Result<wire::Addresses> CommSetup::share(const std::vector<wire::Capabilities>& all, const WaitLimit& limit) {
  CCOM_TRY(join_segment(all, limit));
  if (!segment_->is_leader()) CCOM_TRY(make_monitor(false));
  CCOM_TRY(prepare_control(all));
  wire::Addresses mine;
  const Monitor::Addresses at = monitor_->addresses();
  mine.set_control(at.control);
  mine.set_agreement(at.agreement);
  if (arenas_ != nullptr && !inherits()) {
    std::vector<ArenaExchange::Said> said;
    for (const Rank rank : local_ranks_) {
      const wire::Capabilities& theirs = all[static_cast<size_t>(rank)];
      if (!theirs.has_memory()) return incomplete_part(kCapabilities, rank, "memory");
      said.push_back({theirs.process(), &theirs.memory()});
    }
    *mine.mutable_arena() = arenas_->prepare(said);
  }
  CCOM_TRY(open_transports(mine));
  return mine;
}

// Those that create() found necessary.
Status CommSetup::open_transports(wire::Addresses& mine) {
  const HostSegmentLayout& layout = segment_->layout();
  if (fabric_) fabric_->offset_bytes = layout.wires.offset_bytes;
  const ShmFabric* const fabric = fabric_ ? &*fabric_ : nullptr;
  plans_ = std::make_unique<TransportSet>(membership_, routes_, channels_);
  CCOM_TRY(plans_->open(config_,
                        {.local_ranks = local_ranks_,
                         .segment = segment_->shared(),
                         .offset_bytes = layout.plan_rings.offset_bytes,
                         .ring_bytes = layout.plan_ring_bytes,
                         .channels = needs_.plan_channels,
                         .fabric = fabric},
                        network_, connects_on_use(config_, membership_.nranks)));
  *mine.mutable_plans() = plans_->addresses();
  if (!config_.messages && ways_.lanes() == 0) return {};
  Membership membership = membership_;
  membership.communicator = ~membership_.communicator;
  membership.secret = membership_.secret.derive("ccom messages");
  std::vector<int> channels;
  TransportRoutes routes = routes_;
  for (Rank peer = 0; peer < membership_.nranks; ++peer) {
    channels.push_back(message_channels_to(peer));
    if (channels.back() == 0) routes.of[static_cast<size_t>(peer)] = -1;
  }
  messages_ = std::make_unique<TransportSet>(std::move(membership), std::move(routes), std::move(channels));
  CCOM_TRY(messages_->open(config_,
                           {.local_ranks = local_ranks_,
                            .segment = segment_->shared(),
                            .offset_bytes = layout.message_rings.offset_bytes,
                            .ring_bytes = layout.message_ring_bytes,
                            .channels = needs_.message_channels,
                            .fabric = fabric},
                           network_, false));  // each waits for messages of every peer from the start
  *mine.mutable_messages() = messages_->addresses();
  return {};
}

// Everybody dials, and maps what others of the host offer.
Result<wire::Connected> CommSetup::dial(const std::vector<wire::Addresses>& all, const WaitLimit& limit) {
  std::vector<const wire::TransportAddresses*> plans, messages;
  std::vector<Monitor::Addresses> monitors;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (messages_ != nullptr && !all[rank].has_messages()) {
      return incomplete_part(kAddresses, static_cast<Rank>(rank), "messages");
    }
    monitors.push_back({all[rank].control(), all[rank].agreement()});
    plans.push_back(&all[rank].plans());
    messages.push_back(&all[rank].messages());
  }
  // At once: what follows takes ranks more or less long.
  wire::Connected report;
  CCOM_TRY(measure_costs(report));
  CCOM_TRY(monitor_->connect(monitors, limit));
  if (arenas_ != nullptr && !inherits()) CCOM_TRY(trade_arenas(all, limit));
  CCOM_TRY(plans_->connect(plans, limit));
  if (messages_ != nullptr) CCOM_TRY(messages_->connect(messages, limit));
  if (!membership_.parents.empty()) return report;
  report.set_topology(hash_of(topology_));
  report.set_arenas(arenas_ != nullptr && arenas_->has_all());
  report.set_reads(arenas_ != nullptr && arenas_->can_read_all());
  report.set_fences(arenas_ != nullptr && AsymmetricFence::available());
  return report;
}

Status CommSetup::measure_costs(wire::Connected& report) {
  if (arenas_ == nullptr || inherits() || local_ranks_.size() < 2) return {};
  const Host& host = topology_.hosts[static_cast<size_t>(topology_.ranks[static_cast<size_t>(membership_.rank)].host)];
  CCOM_TRY_ASSIGN(const std::optional<LineCosts> lines, measure_lines());
  if (!segment_->is_leader()) return {};
  if (lines) {
    report.mutable_lines()->set_plain(lines->plain_ns);
    report.mutable_lines()->set_claimed(lines->claimed_ns);
    report.mutable_lines()->set_streamed(lines->streamed_ns);
  }
  const OwnCosts own = config_.known_own ? *config_.known_own : own_costs(host.cache_bytes(2), has_measured_);
  report.mutable_own()->set_far_load(own.far_load_ns);
  report.mutable_own()->set_far_store(own.far_store_ns);
  report.mutable_own()->set_streamed_store(own.streamed_store_ns);
  report.mutable_own()->set_read_call(own.read_call_ns);
  report.mutable_own()->set_read_byte(own.read_byte_ns);
  return {};
}

// By the first two ranks of a host, in staging memory of the first: everybody has mapped the segment, and nobody makes
// calls. Both come from the same exchange, where the others sleep, so that two cores do where ranks outnumber them.
Result<std::optional<LineCosts>> CommSetup::measure_lines() {
  constexpr std::chrono::milliseconds kPatience(5);
  const int host = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  const bool has_cores = topology_.hosts[static_cast<size_t>(host)].cpus >= 2;
  if (!has_cores || segment_->local_rank() > 1 || segment_->layout().node.bank_bytes < kLineProbe)
    return std::optional<LineCosts>();
  const NodeLayout& node = segment_->layout().node;
  const size_t offset = segment_->layout().collectives.offset_bytes + node.block_offset(0) + node.stage_offset(0);
  CCOM_TRY(segment_->shared()->reserve(offset, kLineProbe));
  return probe_lines(segment_->shared()->bytes().data() + offset, segment_->is_leader(), kPatience);
}

Status CommSetup::trade_arenas(const std::vector<wire::Addresses>& all, const WaitLimit& limit) {
  std::vector<const wire::ArenaOffer*> offers;
  for (const Rank rank : local_ranks_) {
    const wire::Addresses& theirs = all[static_cast<size_t>(rank)];
    if (!theirs.has_arena()) return incomplete_part(kAddresses, rank, "arena");
    offers.push_back(&theirs.arena());
  }
  arenas_->trade(offers, limit);
  return {};
}

// All must have derived the same topology, because every choice follows from it; and what some ranks of a host lack
// none of them uses.
Status CommSetup::agree_on_reach(const std::vector<wire::Connected>& all) {
  const uint64_t mine = hash_of(topology_);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].topology() == mine) continue;
    return error(Code::InternalError, "rank %zu derived another topology than rank %d", rank, membership_.rank)
        .with_peers({static_cast<int>(rank)});
  }
  const auto all_local = [&](bool (wire::Connected::*has)() const) {
    return std::ranges::all_of(local_ranks_, [&](Rank rank) { return (all[static_cast<size_t>(rank)].*has)(); });
  };
  means_.arenas = all_local(&wire::Connected::arenas);
  means_.reads = all_local(&wire::Connected::reads);
  has_fences_ = all_local(&wire::Connected::fences);
  const wire::Connected& leader = all[static_cast<size_t>(local_ranks_.front())];
  if (leader.has_lines())
    measured_costs_.lines = {leader.lines().plain(), leader.lines().claimed(), leader.lines().streamed()};
  if (leader.has_own()) {
    const wire::OwnCosts& own = leader.own();
    measured_costs_.own = {own.far_load(), own.far_store(), own.streamed_store(), own.read_call(), own.read_byte()};
  }
  return {};
}

std::optional<NodeConfig> CommSetup::node_config() const {
  if (arenas_ == nullptr) return std::nullopt;
  NodeConfig node;
  node.barrier.local_rank = segment_->local_rank();
  node.barrier.ranks = local_ranks_;
  node.barrier.asymmetric = has_fences_;
  node.layout = segment_->layout().node;
  node.segment = segment_->shared();
  node.region_offset = segment_->layout().collectives.offset_bytes;
  node.peers = arenas_->peers(arena_places_);
  node.arena = process_arena();
  node.means = means_;
  return node;
}

Result<ChannelRef> CommSetup::open(Rank peer, int index) {
  if (!imitated_.linked(membership_.rank, peer)) {
    return error(ErrorKey::NoLink, "rank %d and rank %d share no link of the imposed topology %s", membership_.rank,
                 peer, config_.topology.c_str())
        .with_peers({peer});
  }
  CCOM_TRY_ASSIGN(Channel* const channel, plans_->channel(peer, index));
  return ChannelRef{channel, static_cast<uint16_t>(plans_->transport_of(peer)), peer};
}

std::string CommSetup::transport_names() const {
  std::string names;
  for (const std::string& name : routes_.names) names += (names.empty() ? "" : ",") + name;
  return names.empty() ? "none" : names;
}

uint64_t CommSetup::memory_bytes() const { return segment_->memory_bytes() + plans_->memory_bytes(); }

}  // namespace ccom
