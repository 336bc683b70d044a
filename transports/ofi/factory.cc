// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/factory.h"

#include "transports/ofi/fabric.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::ofi {

namespace {

// Up to this number of connections, polling all of them is cheaper than the provider's descriptor signalling.
constexpr int kPolledPeers = 4;

// None if the provider lacks the required kind of writes: then everything is sent by messages.
Result<std::vector<std::unique_ptr<Endpoint>>> open_rails(const OfiConfig& config) {
  std::vector<std::string> places = config.rails;
  if (places.empty()) places.push_back(config.bind_address);
  if (places.size() > kMaxRails) {
    return error(Code::ConfigError, "ofi: %zu rails requested, the maximum is %zu", places.size(), kMaxRails);
  }
  std::vector<std::unique_ptr<Endpoint>> rails;
  for (const std::string& place : places) {
    const bool are_few = config.peers > 0 && config.peers <= kPolledPeers;
    auto endpoint = open_fabric(config.provider, place, are_few ? Purpose::PolledWrites : Purpose::Writes);
    if (!endpoint && config.rails.empty() && endpoint.error().code() == Code::NotSupported) break;
    if (!endpoint) return std::move(endpoint).error();
    rails.push_back(*std::move(endpoint));
  }
  return rails;
}

}  // namespace

Result<std::unique_ptr<Transport>> make_ofi_transport(OfiConfig config) {
  CCOM_TRY_ASSIGN(std::unique_ptr<Endpoint> endpoint, open_fabric(config.provider, config.bind_address));
  CCOM_TRY_ASSIGN(std::vector<std::unique_ptr<Endpoint>> rails, open_rails(config));
  CCOM_TRY_ASSIGN(std::unique_ptr<Transport> transport,
                  OfiTransport::create(config, std::move(endpoint), std::move(rails)));
  return transport;
}

}  // namespace ccom::ofi
