// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/namespaces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "tests/harness/threads.h"

namespace ccom {

Namespaces::Namespaces(const std::vector<int>& link_mbits) : suffix_(std::to_string(::getpid())) {
  for (const int host : {0, 1}) {
    if (!command("ip netns add " + name(host))) return;
    made_.push_back(host);
    if (!command("ip -n " + name(host) + " link set lo up")) return;
  }
  for (size_t link = 0; link < link_mbits.size(); ++link) {
    if (!add_link(static_cast<int>(link), link_mbits[link])) return;
  }
}

Namespaces::~Namespaces() {
  for (const int host : made_) command("ip netns del " + name(host));
}

bool Namespaces::command(const std::string& text) {
  FILE* const pipe = ::popen((text + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return false;
  std::string said;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) said.push_back(static_cast<char>(c));
  if (::pclose(pipe) == 0) return true;
  if (trouble_.empty()) trouble_ = "network namespaces need root and iproute2: " + text + ": " + said;
  return false;
}

bool Namespaces::add_link(int link, int mbits) {
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

void Namespaces::silence_host_1(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " route add blackhole " + ipv4(0, link) + "/32")) << trouble_;
}

void Namespaces::end_silence_of_host_1(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " route del blackhole " + ipv4(0, link) + "/32")) << trouble_;
}

void Namespaces::cut(int link) {
  EXPECT_TRUE(command("ip -n " + name(1) + " link set l" + std::to_string(link) + " down")) << trouble_;
}

void Namespaces::enter(int host) const {
  const int fd = ::open(("/run/netns/" + name(host)).c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0) << "enter " << name(host);
  if (fd >= 0) ::close(fd);
}

void Namespaces::run_hosts(const std::function<void(int)>& body) {
  run_ranks(2, [&](int host) {
    enter(host);
    body(host);
  });
}

}  // namespace ccom
