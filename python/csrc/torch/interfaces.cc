// SPDX-License-Identifier: Apache-2.0
//
// Finds the interface with the route to the job's master: by the routing table, not by resolving the host's own name.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "communicator.h"

namespace ccom_torch {
namespace {

bool same_address(const sockaddr& a, const sockaddr& b) {
  if (a.sa_family != b.sa_family) return false;
  if (a.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return a.sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, sizeof(in6_addr)) == 0;
}

std::string interface_with(const sockaddr& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr != nullptr && same_address(*each->ifa_addr, address)) return each->ifa_name;
  }
  return "";
}

// The local address from which a packet to `target` would be sent. Sends nothing.
bool source_towards(const addrinfo& target, sockaddr_storage& source) {
  const int socket_fd = socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return false;
  socklen_t length = sizeof(source);
  const bool found = connect(socket_fd, target.ai_addr, target.ai_addrlen) == 0 &&
                     getsockname(socket_fd, reinterpret_cast<sockaddr*>(&source), &length) == 0;
  ::close(socket_fd);
  return found;
}

}  // namespace

std::string interface_towards_master() {
  for (const char* name :
       {"CCOM_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "SM_NETWORK_INTERFACE_NAME"}) {
    const char* chosen = std::getenv(name);
    if (chosen != nullptr && *chosen != '\0') return "";  // libccom reads it
  }
  const char* master = std::getenv("MASTER_ADDR");
  if (master == nullptr) return "";
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* targets = nullptr;
  if (getaddrinfo(master, "9", &hints, &targets) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(targets, freeaddrinfo);
  sockaddr_storage source{};
  for (const addrinfo* target = targets; target != nullptr; target = target->ai_next) {
    if (source_towards(*target, source)) return interface_with(reinterpret_cast<const sockaddr&>(source));
  }
  return "";
}

}  // namespace ccom_torch
