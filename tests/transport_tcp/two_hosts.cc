// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_tcp/two_hosts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <future>
#include <thread>

#include "tests/transport_tcp/raw.h"

namespace ccom::tcp {

TwoHosts::TwoHosts(const std::vector<int>& link_mbits) : suffix_(std::to_string(::getpid())) {
  for (const int host : {0, 1}) {
    if (!command("ip netns add " + name(host))) return;
    made_.push_back(host);
    if (!command("ip -n " + name(host) + " link set lo up")) return;
  }
  for (size_t link = 0; link < link_mbits.size(); ++link) {
    if (!add_link(static_cast<int>(link), link_mbits[link])) return;
  }
}

TwoHosts::~TwoHosts() {
  for (const int host : made_) command("ip netns del " + name(host));
}

bool TwoHosts::command(const std::string& text) {
  FILE* const pipe = ::popen((text + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return false;
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said.push_back(static_cast<char>(c));
  if (::pclose(pipe) == 0) return true;
  if (trouble_.empty()) trouble_ = "network namespaces need root and iproute2: " + text + ": " + said;
  return false;
}

bool TwoHosts::add_link(int link, int mbits) {
  const std::string device = "l" + std::to_string(link);
  bool is_good =
      command("ip link add " + device + " netns " + name(0) + " type veth peer name " + device + " netns " + name(1));
  for (const int host : {0, 1}) {
    const std::string on = " " + name(host) + " ";
    is_good = is_good && command("ip -n" + on + "addr add " + ipv4(host, link) + "/24 dev " + device) &&
              command("ip -n" + on + "addr add " + ipv6(host, link) + "/64 dev " + device + " nodad") &&
              command("ip -n" + on + "link set " + device + " up");
    if (mbits > 0) {
      is_good = is_good && command("tc -n" + on + "qdisc add dev " + device + " root tbf rate " +
                                   std::to_string(mbits) + "mbit burst 64kb latency 20ms");
    }
  }
  return is_good;
}

void TwoHosts::silence_host_1(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " route add blackhole " + ipv4(0, link) + "/32")) << trouble_;
}

void TwoHosts::end_silence_of_host_1(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " route del blackhole " + ipv4(0, link) + "/32")) << trouble_;
}

void TwoHosts::cut(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " link set l" + std::to_string(link) + " down")) << trouble_;
}

void TwoHosts::enter(int host) const {
  const int fd = ::open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0) << "enter " << name(host);
  if (fd >= 0) ::close(fd);
}

void TwoHosts::run(const Adapt& adapt, const Body& body) {
  const Secret key = Secret::random();
  std::array<std::promise<std::string>, 2> addresses;
  std::array<std::shared_future<std::string>, 2> known{addresses[0].get_future(), addresses[1].get_future()};
  const auto live = [&](int host) {
    enter(host);
    TcpConfig config = config_of(host, key);
    config.bind_addresses = {ipv4(host, 0)};
    if (adapt) adapt(config, host);
    const auto transport = make(config);
    addresses[static_cast<size_t>(host)].set_value(transport != nullptr ? transport->address() : "");
    const std::string other = known[static_cast<size_t>(1 - host)].get();
    if (transport == nullptr || other.empty()) return;
    const Status status = transport->connect(std::vector<Peer>{{1 - host, other, 1}}, Deadline::after(kPatience));
    ASSERT_TRUE(status.is_ok()) << status.message();
    body(host, *transport, **transport->channel(1 - host, 0));
  };
  std::thread second(live, 1);
  std::thread first(live, 0);
  first.join();
  second.join();
}

}  // namespace ccom::tcp
