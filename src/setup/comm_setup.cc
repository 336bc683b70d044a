// SPDX-License-Identifier: Apache-2.0
#include "setup/comm_setup.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/assert.h"
#include "base/log.h"
#include "memory/process_segments.h"
#include "setup/emulation.h"

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
                                                      const Topology& topology, std::vector<int> channels,
                                                      Rendezvous& rendezvous, Deadline deadline) {
  CCOM_ASSERT(channels.size() == static_cast<size_t>(membership.nranks));
  std::unique_ptr<CommSetup> links(new CommSetup(membership, config, topology, std::move(channels)));
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

Status CommSetup::choose_transports() {
  CCOM_TRY_ASSIGN(routes_, choose_routes(config_, topology_, membership_.rank));
  const bool uses_network = routes_.names.size() > (uses_shm() ? 1U : 0U) || topology_.hosts.size() > 1;
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

// What the rings of shm are laid out for: the most that plans use between two ranks of this host.
int CommSetup::shm_channels() const {
  int most = 1;
  for (const Rank peer : local_ranks_) most = std::max(most, channels_[static_cast<size_t>(peer)]);
  return most;
}

// Opens what choose_transports() found necessary; returns all addresses, by set.
Result<nlohmann::json> CommSetup::make_transports() {
  nlohmann::json addresses;
  const ShmFabric* const fabric = fabric_ ? &*fabric_ : nullptr;
  plans_.emplace(membership_, routes_, channels_);
  CCOM_TRY(plans_->open(config_,
                        {local_ranks_, segment_.get(), rings_offset(), ring_bytes_, shm_channels(), fabric}, network_));
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
