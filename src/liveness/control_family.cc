// SPDX-License-Identifier: Apache-2.0
#include "liveness/control_family.h"

#include <algorithm>
#include <utility>

#include "liveness/agreement_port.h"

namespace ccom {

// Two may have been made at once, by parts that started at the same time: the one with the smallest number.
std::optional<uint64_t> common_connection(Rank self, const std::vector<HeldConnection>& ours, Rank peer,
                                          const std::vector<HeldConnection>& theirs) {
  std::optional<uint64_t> common;
  for (const HeldConnection& held : ours) {
    if (held.peer != peer || std::ranges::find(theirs, HeldConnection{self, held.number}) == theirs.end()) continue;
    if (!common || held.number < *common) common = held.number;
  }
  return common;
}

ControlFamily::ControlFamily(const Secret& key, uint64_t communicator, Rank self, LivenessThread& thread)
    : key_(key), communicator_(communicator), self_(self), thread_(thread) {}

ControlFamily::~ControlFamily() = default;

std::vector<HeldConnection> ControlFamily::held(bool encrypted) const {
  const Lock lock(mutex_);
  std::vector<HeldConnection> found;
  for (const auto& [peer, connection] : connections_)
    if (connection->is_encrypted() == encrypted && !connection->has_ended())
      found.push_back({peer, connection->number()});
  return found;
}

std::shared_ptr<ControlConnection> ControlFamily::find(Rank peer, uint64_t number) const {
  const Lock lock(mutex_);
  for (const auto& [rank, connection] : connections_)
    if (rank == peer && connection->number() == number) return connection;
  return nullptr;
}

Result<AgreementPort*> ControlFamily::agreement_port(const std::string& bind_address, const PortRange& ports,
                                                     bool tls) {
  const Lock lock(mutex_);
  for (const Port& known : ports_)
    if (known.bind_address == bind_address && known.tls == tls) return known.port.get();
  CCOM_TRY_ASSIGN(std::unique_ptr<AgreementPort> port, AgreementPort::create(*this, bind_address, ports, tls, thread_));
  ports_.push_back({bind_address, tls, std::move(port)});
  return ports_.back().port.get();
}

// Those that have ended are of no more use.
void ControlFamily::add(Rank peer, std::shared_ptr<ControlConnection> connection) {
  const Lock lock(mutex_);
  std::erase_if(connections_, [](const auto& known) { return known.second->has_ended(); });
  connections_.emplace_back(peer, std::move(connection));
}

}  // namespace ccom
