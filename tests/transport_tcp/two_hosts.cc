// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_tcp/two_hosts.h"

#include <gtest/gtest.h>

#include <array>
#include <future>

#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {

void TwoHosts::run(const Adapt& adapt, const Body& body) {
  const Secret key = Secret::random();
  std::array<std::promise<std::string>, 2> addresses;
  std::array<std::shared_future<std::string>, 2> known{addresses[0].get_future(), addresses[1].get_future()};
  run_hosts([&](int host) {
    TcpConfig config = config_of(host, key);
    config.bind_addresses = {ipv4(host, 0)};
    if (adapt) adapt(config, host);
    const auto transport = make(config);
    addresses[static_cast<size_t>(host)].set_value(transport != nullptr ? transport->address() : "");
    const std::string other = known[static_cast<size_t>(1 - host)].get();
    if (transport == nullptr || other.empty()) return;
    ASSERT_EQ(transport->connect(std::vector<Peer>{{1 - host, other, 1}}, Deadline::after(kPatience)).message(), "");
    body(host, *transport, **transport->channel(1 - host, 0));
  });
}

}  // namespace ccom::tcp
