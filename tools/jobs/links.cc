// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/links.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/descriptor.h"

namespace ccom {
namespace {

constexpr uint8_t kEstablished = 1;
constexpr time_t kPatienceSeconds = 2;

struct Connection {
  std::string local, remote;
  uint64_t inode = 0;
  tcp_info info{};
};

std::string address_text(uint8_t family, const __be32* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

Connection connection_in(const nlmsghdr& header) {
  const auto& found = *static_cast<const inet_diag_msg*>(NLMSG_DATA(&header));
  Connection connection;
  connection.local = address_text(found.idiag_family, found.id.idiag_src);
  connection.remote = address_text(found.idiag_family, found.id.idiag_dst);
  connection.inode = found.idiag_inode;
  size_t left = header.nlmsg_len - NLMSG_LENGTH(sizeof found);
  const auto* at = reinterpret_cast<const std::byte*>(&found) + NLMSG_ALIGN(sizeof found);
  while (left >= sizeof(nlattr)) {
    nlattr attribute{};
    std::memcpy(&attribute, at, sizeof attribute);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > left) break;
    if (attribute.nla_type == INET_DIAG_INFO)
      std::memcpy(&connection.info, at + NLA_HDRLEN,
                  std::min<size_t>(attribute.nla_len - NLA_HDRLEN, sizeof(tcp_info)));
    const size_t step = std::min<size_t>(NLA_ALIGN(attribute.nla_len), left);
    at += step;
    left -= step;
  }
  return connection;
}

// False at the end, or at an error.
template <typename Fn>
bool read_answers(const Descriptor& socket, Fn use) {
  alignas(nlmsghdr) std::array<std::byte, 1 << 16> buffer;
  const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  auto left = static_cast<unsigned>(got);
  for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); NLMSG_OK(header, left);
       header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
      return false;
    use(connection_in(*header));
  }
  return true;
}

template <typename Fn>
void for_each_connection(uint8_t family, Fn use) {
  const Descriptor socket =
      Descriptor::from([] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); });
  if (!socket.is_open()) return;
  const timeval patience{kPatienceSeconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 request{};
  } asked;
  asked.header.nlmsg_len = sizeof asked;
  asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  asked.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  asked.request.sdiag_family = family;
  asked.request.sdiag_protocol = IPPROTO_TCP;
  asked.request.idiag_ext = 1U << (INET_DIAG_INFO - 1);
  asked.request.idiag_states = 1U << kEstablished;
  if (::send(socket.get(), &asked, sizeof asked, 0) != static_cast<ssize_t>(sizeof asked)) return;
  while (read_answers(socket, use)) {
  }
}

void add(const Connection& connection, LinkSeen& link) {
  ++link.connections;
  link.sent += connection.info.tcpi_bytes_acked;
  link.received += connection.info.tcpi_bytes_received;
  link.retransmits += connection.info.tcpi_total_retrans;
  link.rtt = std::max(link.rtt, connection.info.tcpi_rtt * 1e-6);
  const uint64_t busy_us = connection.info.tcpi_busy_time, full_us = connection.info.tcpi_rwnd_limited;
  link.sending = std::max(link.sending, static_cast<double>(busy_us - std::min(busy_us, full_us)) * 1e-6);
}

}  // namespace

std::vector<LinkSeen> links_of(const std::vector<ProcessSockets>& processes) {
  std::unordered_map<uint64_t, const ProcessSockets*> owners;
  for (const ProcessSockets& process : processes)
    for (const uint64_t inode : process.sockets) owners.emplace(inode, &process);
  std::map<std::tuple<int32_t, std::string, std::string>, LinkSeen> links;
  const auto note = [&](const Connection& connection) {
    const auto owner = owners.find(connection.inode);
    if (owner == owners.end()) return;
    const ProcessSockets& process = *owner->second;
    LinkSeen& link = links[{process.pid, connection.local, connection.remote}];
    if (link.connections == 0) {
      link.pid = process.pid;
      link.ranks = process.ranks;
      link.local = connection.local;
      link.remote = connection.remote;
    }
    add(connection, link);
  };
  if (!owners.empty()) {
    for_each_connection(AF_INET, note);
    for_each_connection(AF_INET6, note);
  }
  std::vector<LinkSeen> all;
  for (auto& [key, link] : links) all.push_back(std::move(link));
  return all;
}

}  // namespace ccom
