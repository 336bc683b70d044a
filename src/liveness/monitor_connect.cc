// SPDX-License-Identifier: Apache-2.0
//
// How a Monitor comes by its control connections: those of the family that both ends have, and new ones.
#include <map>
#include <utility>

#include "liveness/monitor_config.h"
#include "liveness/monitor_impl.h"

namespace ccom {

Status MonitorImpl::start_family() {
  if (family_ == nullptr) {
    family_ = std::make_shared<ControlFamily>(config_.key.derive("ccom liveness"), config_.communicator, config_.rank,
                                              *thread_);
  }
  CCOM_TRY_ASSIGN(AgreementPort* const port, family_->agreement_port(config_.bind_address, config_.ports, config_.tls));
  LivenessTask& task = *this;
  agreement_ = std::make_unique<AgreementLinks>(config_, board_, *port, *thread_, task);
  return {};
}

// Streams are open before anybody can know that this rank has come so far: what others say is kept.
Status MonitorImpl::prepare(const std::vector<std::vector<HeldConnection>>& held) {
  if (family_ == nullptr) return {};
  const auto held_by = [&](Rank rank) {
    return static_cast<size_t>(rank) < held.size() ? held[static_cast<size_t>(rank)] : std::vector<HeldConnection>();
  };
  bool listens = false;
  for (const TreeEdge& edge : tree_edges(config_)) {
    const Rank member = config_.members[static_cast<size_t>(edge.rank)];
    const std::optional<uint64_t> common =
        common_connection(family_->self(), held_by(config_.rank), member, held_by(edge.rank));
    edges_.push_back({edge, common.has_value(), nullptr});
    if (common) {
      std::shared_ptr<ControlConnection> connection = family_->find(member, *common);
      // One that this rank has dropped, having seen its end, since it said that it held it.
      if (connection == nullptr)
        return error(ErrorKey::RankDied, "rank %d died: its control connection to rank %d ended", edge.rank,
                     config_.rank)
            .with_peers({edge.rank});
      edges_.back().link = open_stream(edge, std::move(connection));
    } else {
      listens |= !edge.is_parent;
    }
  }
  return listens ? listen() : Status();
}

Status MonitorImpl::listen() {
  CCOM_TRY_ASSIGN(listener_socket_, listen_on(config_.bind_address, config_.ports));
  CCOM_TRY_ASSIGN(address_, address_of(listener_socket_));
  return {};
}

std::unique_ptr<ControlLink> MonitorImpl::open_stream(const TreeEdge& edge,
                                                      std::shared_ptr<ControlConnection> connection) {
  const StreamId id{config_.communicator, static_cast<uint8_t>(edge.tree)};
  LivenessTask* const reader = this;
  return std::make_unique<ControlLink>(std::move(connection), id, reader);
}

Status MonitorImpl::connect(const std::vector<Addresses>& addresses, const WaitLimit& limit) {
  if (thread_->in_forked_child()) return forked_error();
  if (family_ == nullptr) return check();
  std::vector<std::string> agreement;
  for (const Addresses& each : addresses) agreement.push_back(each.agreement);
  thread_->run([&] {
    agreement_->set_addresses(std::move(agreement));
    attach_links();
  });
  CCOM_TRY(join(addresses, limit));
  return check();
}

// Of the trees those whose connections there are.
void MonitorImpl::attach_links() {
  for (Edge& edge : edges_) {
    if (edge.link == nullptr) continue;
    // The TreeState's timeouts come first; these cover connections that it never hears from.
    edge.link->connection().allow_silence(std::chrono::milliseconds(2 * config_.dead_ms));
    trees_[static_cast<size_t>(edge.to.tree)]->attach(edge.to.host, std::move(edge.link), monotonic_ns());
  }
  thread_->enqueue(this);
}

// Makes the connections that are missing, one for each rank.
Status MonitorImpl::join(const std::vector<Addresses>& addresses, const WaitLimit& limit) {
  const Descriptor listener = std::move(listener_socket_);  // closed on every path
  std::map<Rank, JoinPeer> peers;
  for (const Edge& edge : edges_) {
    if (edge.is_shared) continue;
    const auto place = static_cast<size_t>(edge.to.rank);
    JoinPeer peer{.rank = edge.to.rank, .member = config_.members[place]};
    if (edge.to.is_parent) {
      if (place >= addresses.size() || addresses[place].control.empty())
        return error(Code::InvalidArgument, "rank %d has published no control address", edge.to.rank)
            .with_peers({edge.to.rank});
      peer.address = addresses[place].control;
    }
    peers.emplace(edge.to.rank, std::move(peer));
  }
  if (peers.empty()) return {};
  ControlIdentity identity{.key = family_->key(), .communicator = family_->communicator(), .self = family_->self()};
  if (config_.tls) {
    CCOM_TRY_ASSIGN(identity.tls, TlsContext::create(identity.key.derive("ccom liveness tls")));
  }
  std::vector<JoinPeer> missing;
  for (auto& [rank, peer] : peers) missing.push_back(std::move(peer));
  Status failed;
  const auto attach = [&](const JoinPeer& peer, std::shared_ptr<ControlConnection> connection) {
    const Status added = add_connection(peer, std::move(connection));
    if (failed.is_ok()) failed = added;
  };
  const auto look = [&] { return failed.is_ok() ? check() : failed; };
  return join_control_trees(identity, config_.communicator, missing, listener, {attach, look}, limit);
}

Status MonitorImpl::add_connection(const JoinPeer& peer, std::shared_ptr<ControlConnection> connection) {
  Status run;
  thread_->run([&] {
    for (Edge& edge : edges_)
      if (edge.to.rank == peer.rank) edge.link = open_stream(edge.to, connection);
    run = connection->run_on(*thread_);
    if (!run.is_ok()) return;
    family_->add(peer.member, std::move(connection));
    attach_links();
  });
  return run;
}

}  // namespace ccom
