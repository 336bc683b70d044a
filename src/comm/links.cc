// SPDX-License-Identifier: Apache-2.0
#include "comm/links.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "comm/emulation.h"
#include "comm/hierarchy.h"
#include "comm/process_segments.h"

namespace ccom {

// The monitor first: its destructor waits for the liveness thread, which may be calling our listener, and tells the
// other hosts that this rank leaves in order before they see its connections end.
CommSetup::~CommSetup() {
  monitor_.reset();
  messages_.reset();
  plans_.reset();
  if (fabric_ && is_leader()) log_traffic(topology_, *segment_, *fabric_);
}

Result<std::unique_ptr<CommSetup>> CommSetup::connect(const Membership& membership, const CommConfig& config,
                                              const Topology& topology, int channels, Rendezvous& rendezvous,
                                              Deadline deadline) {
  std::unique_ptr<CommSetup> links(new CommSetup(membership, config, topology, channels));
  links->local_ranks_ = topology.ranks_of(topology.ranks[static_cast<size_t>(membership.rank)].host);

  // 1. The leader of each host makes the segment (and its monitor, which initialises the board) and says where to fetch
  // it.
  Status chosen = links->choose_transports();
  Result<std::string> offer = chosen.is_ok() ? links->make_segment() : Result<std::string>(chosen);
  CCOM_TRY_ASSIGN(const std::vector<std::string> offers, exchange(rendezvous, "segments", std::move(offer), deadline));
  links->settle_carrier(offers);

  // 2. Everybody maps it and opens its transports.
  Result<std::string> address = links->share_segment(offers, deadline);
  CCOM_TRY_ASSIGN(const std::vector<std::string> addresses,
                  exchange(rendezvous, "addresses", std::move(address), deadline));

  // 3. Everybody dials, and maps what others of the host offer.
  Status dialled = links->dial(addresses, deadline);
  const bool forms_node = links->has_node();
  const nlohmann::json said{{"topology", hash_of(topology)},
                            {"arenas", forms_node && links->node_join_->has_all()},
                            {"reads", forms_node && links->node_join_->can_read_all()},
                            {"fences", forms_node && links->node_join_->has_fence()}};
  Result<std::string> report = dialled.is_ok() ? Result<std::string>(said.dump()) : Result<std::string>(dialled);
  CCOM_TRY_ASSIGN(const std::vector<std::string> reports,
                  exchange(rendezvous, "connections", std::move(report), deadline));
  CCOM_TRY(links->check_agreement(reports));
  return links;
}

// All must have derived the same topology, because every choice follows from it; and what some ranks of a host lack
// none of them uses.
Status CommSetup::check_agreement(const std::vector<std::string>& reports) {
  means_ = {true, true};
  has_fences_ = true;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    const nlohmann::json report = nlohmann::json::parse(reports[rank], nullptr, false);
    if (!report.is_object() || report.value("topology", nlohmann::json()) != hash_of(topology_)) {
      return error(Code::InternalError, "rank %zu derived another topology than rank %d", rank, membership_.rank)
          .with_peers({static_cast<int>(rank)});
    }
    if (!std::ranges::binary_search(local_ranks_, static_cast<Rank>(rank))) continue;
    means_.arenas &= report.value("arenas", false);
    means_.reads &= report.value("reads", false);
    has_fences_ &= report.value("fences", false);
  }
  return {};
}

int CommSetup::place() const {
  return static_cast<int>(std::ranges::find(local_ranks_, membership_.rank) - local_ranks_.begin());
}

// Collectives may use the host's memory as they like: neither a fabric nor another transport is to be tried.
bool CommSetup::has_node() const {
  const int host = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  return shares_memory() && uses_shm_ && !topology_.hosts[static_cast<size_t>(host)].imposed.has_value();
}

std::optional<NodeConfig> CommSetup::node_config() const {
  if (!has_node()) return std::nullopt;
  NodeConfig node;
  node.barrier.place = place();
  node.barrier.ranks = local_ranks_;
  node.barrier.asymmetric = has_fences_;
  node.layout = node_layout_;
  node.segment = segment_.get();
  node.region_offset = node_offset();
  node.mates = node_join_->mates();
  node.arena = process_arena();
  node.means = means_;
  return node;
}

int CommSetup::add_transport(const std::string& name) {
  const auto found = std::ranges::find(routes_.names, name);
  if (found != routes_.names.end()) return static_cast<int>(found - routes_.names.begin());
  routes_.names.push_back(name);
  return static_cast<int>(routes_.names.size()) - 1;
}

// Per peer the first transport of the list that can reach it: shm only inside a host.
Status CommSetup::choose_transports() {
  const std::vector<std::string> preference =
      config_.transports.empty() ? std::vector<std::string>{"shm", "tcp"} : config_.transports;
  routes_.of.assign(static_cast<size_t>(membership_.nranks), -1);
  for (Rank peer = 0; peer < membership_.nranks; ++peer) {
    if (peer == membership_.rank) continue;
    const bool local = std::ranges::binary_search(local_ranks_, peer);
    const auto able =
        std::ranges::find_if(preference, [local](const std::string& name) { return local || name != "shm"; });
    if (able == preference.end()) {
      return error(Code::ConfigError,
                   "rank %d and rank %d are on different hosts (%s and %s), which transport shm cannot join",
                   membership_.rank, peer,
                   topology_.hosts[static_cast<size_t>(topology_.ranks[static_cast<size_t>(membership_.rank)].host)]
                       .name.c_str(),
                   topology_.hosts[static_cast<size_t>(topology_.ranks[static_cast<size_t>(peer)].host)].name.c_str())
          .with_peers({peer})
          .with_cure("add tcp or ofi to the list of transports (CCOM_TRANSPORT=shm,tcp)");
    }
    const int transport = add_transport(*able);
    if (topology_.linked(membership_.rank, peer)) routes_.of[static_cast<size_t>(peer)] = transport;
  }
  uses_shm_ = std::ranges::find(routes_.names, "shm") != routes_.names.end();
  const bool uses_network = routes_.names.size() > (uses_shm_ ? 1U : 0U) || topology_.hosts.size() > 1;
  if (uses_network) {
    CCOM_TRY_ASSIGN(network_, choose_network(config_, topology_, list_interfaces()));
  }
  return {};
}

namespace {

// What the ranks of this host said under `key`, by place.
std::vector<nlohmann::json> entries_of(const std::vector<std::string>& texts, const std::vector<Rank>& ranks,
                                       const char* key) {
  std::vector<nlohmann::json> entries;
  for (const Rank rank : ranks) {
    const nlohmann::json parsed = nlohmann::json::parse(texts[static_cast<size_t>(rank)], nullptr, false);
    entries.push_back(parsed.is_object() ? parsed.value(key, nlohmann::json()) : nlohmann::json());
  }
  return entries;
}

}  // namespace

Result<std::string> CommSetup::share_segment(const std::vector<std::string>& offers, Deadline deadline) {
  const nlohmann::json path = entries_of(offers, {local_ranks_.front()}, "segment")[0];
  if (shares_memory() && !path.is_string()) {
    return error(Code::InternalError, "rank %d offers no shared memory", local_ranks_.front());
  }
  const std::vector<nlohmann::json> processes = entries_of(offers, local_ranks_, "process");
  CCOM_TRY(map_segment(path.is_string() ? path.get<std::string>() : "", processes, deadline));
  nlohmann::json addresses;
  if (has_node()) {
    CCOM_TRY_ASSIGN(addresses["node"], node_join_->prepare(entries_of(offers, local_ranks_, "node")));
  }
  CCOM_TRY_ASSIGN(addresses["transports"], make_transports());
  addresses["control"] = monitor_->control_address();
  return addresses.dump();
}

// Each process maps it once, by its first rank.
Status CommSetup::map_segment(const std::string& leader_path, const std::vector<nlohmann::json>& processes,
                          Deadline deadline) {
  if (!shares_memory()) {
    void* start = private_board_.data();
    size_t space = private_board_.size();
    std::align(128, Monitor::board_bytes(1), start, space);
    return make_monitor({static_cast<std::byte*>(start), Monitor::board_bytes(1)}, true);
  }
  if (is_leader()) {
    const std::set<nlohmann::json> distinct(processes.begin(), processes.end());
    const Status served = segment_server_->serve(*segment_, static_cast<int>(distinct.size()) - 1, deadline);
    segment_server_.reset();
    return served;
  }
  const auto self = processes.begin() + place();
  if (std::find(processes.begin(), self, *self) != self) {
    CCOM_TRY_ASSIGN(segment_, await_segment(leader_path, deadline));
  } else {
    Result<std::unique_ptr<SharedSegment>> fetched =
        fetch_segment(leader_path, segment_bytes(), membership_.secret.derive("ccom segment"), deadline);
    if (fetched) segment_ = *std::move(fetched);
    put_segment(leader_path, fetched ? Result<std::shared_ptr<SharedSegment>>(segment_)
                                     : Result<std::shared_ptr<SharedSegment>>(fetched.error()));
    if (!fetched) return std::move(fetched).error();
  }
  return make_monitor(segment_->bytes().first(board_bytes()), false);
}

Status CommSetup::make_monitor(Bytes board, bool initialise) {
  MonitorConfig monitor;
  monitor.rank = membership_.rank;
  for (int host = 0; host < static_cast<int>(topology_.hosts.size()); ++host) {
    monitor.hosts.push_back({topology_.hosts[static_cast<size_t>(host)].name, topology_.ranks_of(host)});
  }
  monitor.host_index = topology_.ranks[static_cast<size_t>(membership_.rank)].host;
  monitor.key = membership_.secret.derive("ccom control");
  monitor.communicator = membership_.communicator;
  monitor.dead_ms = config_.dead_ms;
  if (!network_.addresses.empty()) monitor.bind_address = network_.addresses.front();
  monitor.ports = config_.ports;
  CCOM_TRY_ASSIGN(monitor_, Monitor::create(std::move(monitor), board, initialise));
  return {};
}

// Plans across hosts use two in turn.
std::vector<int> CommSetup::channels_by_peer() const {
  std::vector<int> channels(static_cast<size_t>(membership_.nranks), channels_);
  if (const std::optional<HostLevel> level = host_level(topology_, membership_.rank); level && has_node()) {
    for (const Rank mate : level->mates) {
      channels[static_cast<size_t>(mate)] = std::max(channels_, Hierarchy::channels(*level));
    }
  }
  return channels;
}

// Opens what choose_transports() found necessary; returns all addresses, by set.
Result<nlohmann::json> CommSetup::make_transports() {
  nlohmann::json addresses;
  const ShmFabric* const fabric = fabric_ ? &*fabric_ : nullptr;
  plans_.emplace(membership_, routes_, channels_by_peer());
  CCOM_TRY(
      plans_->open(config_, {local_ranks_, segment_.get(), rings_offset(), ring_bytes_, channels_, fabric}, network_));
  addresses["plans"] = plans_->addresses();
  if (!config_.messages) return addresses;
  Membership membership = membership_;
  membership.communicator = ~membership_.communicator;
  membership.secret = membership_.secret.derive("ccom messages");
  const std::vector<int> channels(static_cast<size_t>(membership_.nranks), MessageRoutes::kChannels);
  messages_.emplace(std::move(membership), routes_, channels);
  CCOM_TRY(messages_->open(
      config_,
      {local_ranks_, segment_.get(), message_rings_offset(), message_ring_bytes_, MessageRoutes::kChannels, fabric},
      network_));
  addresses["messages"] = messages_->addresses();
  return addresses;
}

Status CommSetup::dial(const std::vector<std::string>& addresses, Deadline deadline) {
  std::vector<nlohmann::json> plans, messages;
  std::vector<std::string> control;
  for (const std::string& text : addresses) {
    nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
    if (!parsed.is_object() || !parsed["control"].is_string() || !parsed["transports"].is_object()) {
      return error(Code::InternalError, "rank %zu sent addresses that cannot be read", control.size());
    }
    control.push_back(parsed["control"]);
    plans.push_back(parsed["transports"]["plans"]);
    messages.push_back(parsed["transports"]["messages"]);
  }
  CCOM_TRY(monitor_->connect(control, deadline));
  if (has_node()) CCOM_TRY(node_join_->trade(entries_of(addresses, local_ranks_, "node"), deadline));
  CCOM_TRY(plans_->connect(plans, deadline));
  return messages_ ? messages_->connect(messages, deadline) : Status();
}

Result<ChannelRef> CommSetup::open(Rank peer, int index) {
  if (!topology_.linked(membership_.rank, peer)) {
    return error(Code::NotSupported, "rank %d and rank %d share no link of the imposed topology %s", membership_.rank,
                 peer, config_.topology.c_str())
        .with_peers({peer});
  }
  CCOM_TRY_ASSIGN(Channel* const channel, plans_->channel(peer, index));
  return ChannelRef{channel, static_cast<uint16_t>(plans_->transport_of(peer)), peer};
}

Result<std::optional<MessageRoutes>> CommSetup::message_routes() {
  if (!messages_) return std::optional<MessageRoutes>();
  MessageRoutes routes{membership_.rank, messages_->transports(), {}};
  for (Rank peer = 0; peer < membership_.nranks; ++peer) {
    MessageRoutes::Way way;
    way.transport = messages_->transport_of(peer);
    if (way.transport >= 0) {
      CCOM_TRY_ASSIGN(way.headers, messages_->channel(peer, 0));
      CCOM_TRY_ASSIGN(way.payload, messages_->channel(peer, 1));
    }
    routes.ways.push_back(way);
  }
  return std::optional(std::move(routes));
}

std::string CommSetup::transport_names() const {
  std::string names;
  for (const std::string& name : routes_.names) names += (names.empty() ? "" : ",") + name;
  return names.empty() ? "none" : names;
}

uint64_t CommSetup::memory_bytes() const {
  return (shares_memory() && is_leader() ? board_bytes() : private_board_.size()) + plans_->memory_bytes();
}

}  // namespace ccom
