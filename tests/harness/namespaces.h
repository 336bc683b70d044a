// SPDX-License-Identifier: Apache-2.0
//
// Two hosts as network namespaces, joined by pairs of virtual interfaces whose speed may be limited. A thread enters
// one of them and stays there, so both ranks of a test live in its process. Link i of host h (0 or 1) has the addresses
// 10.77.<i>.<h + 1> and fd00:77:<i>::<h + 1>.
#pragma once

#include <functional>
#include <string>
#include <vector>

#define SKIP_WITHOUT(hosts) \
  if (!hosts.trouble().empty()) GTEST_SKIP() << hosts.trouble()

namespace ccom {

class Namespaces {
 public:
  // Megabits per second by link; 0: as fast as it can.
  explicit Namespaces(const std::vector<int>& link_mbits);
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;
  ~Namespaces();

  // Why there are none; empty if there are.
  const std::string& trouble() const { return trouble_; }
  static std::string ipv4(int host, int link) {
    return "10.77." + std::to_string(link) + "." + std::to_string(host + 1);
  }
  static std::string ipv6(int host, int link) {
    return "fd00:77:" + std::to_string(link) + "::" + std::to_string(host + 1);
  }
  // Nothing that host 1 sends to host 0's address on this link arrives any more; host 0 is told nothing.
  void silence_host_1(int link);
  void end_silence_of_host_1(int link);
  // The cable is pulled: neither host sees a carrier.
  void cut(int link);

  // Calls body(host) in a thread on each host; returns when both have ended.
  void run_hosts(const std::function<void(int host)>& body);

 private:
  bool command(const std::string& text);
  bool add_link(int link, int mbits);
  std::string name(int host) const { return "ccom-" + std::string(1, static_cast<char>('a' + host)) + suffix_; }
  void enter(int host) const;

  const std::string suffix_;
  std::string trouble_;
  std::vector<int> made_;  // hosts that exist
};

}  // namespace ccom
