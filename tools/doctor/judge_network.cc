// SPDX-License-Identifier: Apache-2.0
//
// Findings about connections: which hosts can connect, and whether frames of all sizes arrive.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tools/doctor/verdict.h"

namespace ccom::doctor {
namespace {

constexpr const char* kOpenThePorts =
    "allow TCP connections between all hosts of the job on this network, in both directions (on EC2: a security "
    "group that allows all traffic from itself), or select another interface by CCOM_SOCKET_IFNAME";

class Network {
 public:
  Network(const Report& report, std::vector<Finding>& findings) : report_(report), findings_(findings) {
    for (const Reach& reach : report.reaches) {
      if (reach.address == 0) first_[{reach.from, reach.to}] = &reach;
    }
  }

  void judge() {
    judge_loopback();
    for (int host = 0; host < hosts(); ++host) judge_blocked_host(host);
    for (int a = 0; a < hosts(); ++a) {
      for (int b = a + 1; b < hosts(); ++b) judge_pair(a, b);
    }
    for (const Reach& reach : report_.reaches) judge_size(reach);
    judge_further_addresses();
    judge_mtus();
  }

 private:
  int hosts() const { return static_cast<int>(report_.hosts.size()); }
  const HostEntry& entry(int host) const { return report_.hosts[static_cast<size_t>(host)]; }
  const std::string& label(int host) const { return entry(host).label; }

  std::string place(int host, int address = 0) const {
    const auto& addresses = entry(host).report.addresses;
    if (static_cast<size_t>(address) >= addresses.size()) return "no address";
    const DataAddress& where = addresses[static_cast<size_t>(address)];
    return where.address + " (" + where.interface + ")";
  }

  // No connection, or one that transfers nothing.
  bool fails(int from, int to) const {
    const auto found = first_.find({from, to});
    return found != first_.end() && !found->second->answers;
  }
  std::string reason(int from, int to) const {
    const Reach& reach = *first_.at({from, to});
    return (reach.connects ? "connected, then: " : "") + reach.failure;
  }

  void add(std::vector<int> concerned, std::string text, std::string cure) {
    findings_.push_back({Level::Trouble, std::move(concerned), std::move(text), std::move(cure)});
  }

  // Two hosts with loopback only are emulated ones in a test, and can connect.
  void judge_loopback() {
    for (int host = 0; host < hosts(); ++host) {
      const auto& addresses = entry(host).report.addresses;
      if (addresses.empty()) continue;
      const std::string& address = addresses.front().address;
      const bool is_loopback = address.starts_with("127.") || address == "::1";
      bool matters = false;
      for (int other = 0; other < hosts(); ++other) matters |= fails(other, host);
      if (!is_loopback || !matters) continue;
      std::string others;
      for (const std::string& interface : entry(host).report.interfaces)
        others += (others.empty() ? "" : ", ") + interface;
      add({host}, label(host) + " would carry data on loopback, where no other host can reach it. It has: " + others,
          "set CCOM_SOCKET_IFNAME to an interface with a route to the other hosts");
      explain(host);
    }
  }

  // Further failures to and from this host are not reported.
  void explain(int host) {
    for (int other = 0; other < hosts(); ++other) {
      explained_.insert({host, other});
      explained_.insert({other, host});
    }
  }

  bool is_open(int from, int to) const { return fails(from, to) && !explained_.contains({from, to}); }

  // If one host cannot be reached by all others, it is the likely cause.
  void judge_blocked_host(int host) {
    if (hosts() < 3) return;
    int others = 0, incoming = 0, outgoing = 0;
    for (int other = 0; other < hosts(); ++other) {
      if (other == host || entry(other).report.addresses.empty()) continue;
      ++others;
      incoming += is_open(other, host) ? 1 : 0;
      outgoing += is_open(host, other) ? 1 : 0;
    }
    if (others < 2 || (incoming < others && outgoing < others)) return;
    const int other = host == 0 ? 1 : 0;
    if (incoming == others && outgoing == others) {
      add({host},
          label(host) + " and the others cannot reach each other on the data network: from " + label(other) + " to " +
              place(host) + ": " + reason(other, host),
          kOpenThePorts);
    } else if (incoming == others) {
      add({host},
          "No other host can connect to " + label(host) + " at " + place(host) + ": " + reason(other, host) +
              ". It can connect to them: a firewall on it or in front of it blocks incoming connections",
          kOpenThePorts);
    } else {
      add({host},
          label(host) + " can connect to no other host, " + label(other) + " at " + place(other) +
              ", for example: " + reason(host, other) +
              ". They can connect to it: a firewall on it or in front of it "
              "blocks outgoing connections",
          kOpenThePorts);
    }
    explain(host);
  }

  void judge_pair(int a, int b) {
    const bool there = is_open(a, b), back = is_open(b, a);
    if (there && back) {
      add({a, b},
          label(a) + " and " + label(b) + " cannot reach each other: at " + place(b) + ": " + reason(a, b) + "; at " +
              place(a) + ": " + reason(b, a),
          kOpenThePorts);
    } else if (there || back) {
      const int from = there ? a : b, to = there ? b : a;
      add({from, to},
          label(from) + " cannot connect to " + label(to) + " at " + place(to) + ": " + reason(from, to) +
              ", although " + label(to) + " can connect to " + label(from) + ": connections work in one direction only",
          kOpenThePorts);
    }
  }

  void judge_size(const Reach& reach) {
    if (!reach.answers || reach.carries) return;
    const auto mtu = [this](int host) {
      const auto& addresses = entry(host).report.addresses;
      return addresses.empty() ? std::string("unknown") : std::to_string(addresses.front().mtu);
    };
    add({reach.from, reach.to},
        "Small messages pass from " + label(reach.from) + " to " + label(reach.to) + " at " +
            place(reach.to, reach.address) + ", 64 KiB do not: " + reach.failure +
            ". A device on the path drops large frames. MTUs: " + mtu(reach.from) + " on " + label(reach.from) + ", " +
            mtu(reach.to) + " on " + label(reach.to) + ", known for the path: " + std::to_string(reach.path_mtu),
        "set the same MTU on all interfaces of this network, and allow ICMP 'fragmentation needed' messages");
  }

  // ccom uses all interfaces listed in CCOM_SOCKET_IFNAME.
  void judge_further_addresses() {
    for (const Reach& reach : report_.reaches) {
      if (reach.address == 0 || reach.answers) continue;
      add({reach.from, reach.to},
          label(reach.from) + " cannot connect to " + label(reach.to) + " at " + place(reach.to, reach.address) +
              ", which " + entry(reach.to).report.filter_origin + " lists as well: " + reach.failure,
          kOpenThePorts);
    }
  }

  void judge_mtus() {
    std::map<int, std::vector<int>> groups;
    for (int host = 0; host < hosts(); ++host) {
      const auto& addresses = entry(host).report.addresses;
      if (!addresses.empty() && addresses.front().mtu > 0) groups[addresses.front().mtu].push_back(host);
    }
    if (groups.size() < 2) return;
    const auto most = std::ranges::max_element(groups, {}, [](const auto& group) { return group.second.size(); });
    Finding finding{.level = Level::Note, .text = "MTUs of the data interfaces differ: "};
    for (const auto& [mtu, of_hosts] : groups) {
      finding.text +=
          (mtu == groups.begin()->first ? "" : ", ") + std::to_string(mtu) + " on " + name_hosts(report_, of_hosts);
      if (mtu == most->first && most->second.size() * 2 > report_.hosts.size()) continue;
      finding.hosts.insert(finding.hosts.end(), of_hosts.begin(), of_hosts.end());
    }
    finding.cure = "set the same MTU on all of them: the larger one costs less CPU";
    findings_.push_back(std::move(finding));
  }

  const Report& report_;
  std::vector<Finding>& findings_;
  std::map<std::pair<int, int>, const Reach*> first_;  // of the preferred address
  std::set<std::pair<int, int>> explained_;
};

}  // namespace

void judge_network(const Report& report, std::vector<Finding>& findings) { Network(report, findings).judge(); }

}  // namespace ccom::doctor
