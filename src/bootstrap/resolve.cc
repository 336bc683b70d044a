// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <memory>

namespace ccom {
namespace {

// What glibc's resolver thread reads and writes: must stay until it is through.
struct Query {
  std::string host;
  addrinfo hints{};
  gaicb request{};
  Query(std::string name) : host(std::move(name)) {  // NOLINT(google-explicit-constructor)
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    request.ar_name = host.c_str();
    request.ar_request = &hints;
  }
  ~Query() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
};

Result<std::string> first_address(const std::string& host, const addrinfo* list) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != family) continue;
      char text[INET6_ADDRSTRLEN];
      const void* address = family == AF_INET
                                ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr)
                                : &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
      if (::inet_ntop(family, address, text, sizeof text) != nullptr) return std::string(text);
    }
  }
  return error(Code::ConfigError, "host '%s' has no IP address", host.c_str());
}

}  // namespace

Result<std::string> resolve_host(const std::string& host, Deadline deadline) {
  in6_addr numeric{};
  if (::inet_pton(AF_INET, host.c_str(), &numeric) == 1 || ::inet_pton(AF_INET6, host.c_str(), &numeric) == 1) return host;
  auto query = std::make_unique<Query>(host);
  gaicb* list[] = {&query->request};
  if (const int failure = ::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); failure != 0) {
    return error(Code::ConfigError, "look up host '%s': %s", host.c_str(), ::gai_strerror(failure));
  }
  while (::gai_error(&query->request) == EAI_INPROGRESS) {
    const auto left = deadline.left();
    if (left.count() == 0) {
      if (::gai_cancel(&query->request) != EAI_CANCELED) (void)query.release();  // the resolver still uses it: leaked
      return error(Code::Timeout, "look up host '%s': no answer from the name server", host.c_str());
    }
    const timespec wait{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                        .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    (void)::gai_suspend(list, 1, &wait);
  }
  if (const int failure = ::gai_error(&query->request); failure != 0) {
    return error(Code::ConfigError, "look up host '%s': %s", host.c_str(), ::gai_strerror(failure));
  }
  return first_address(host, query->request.ar_result);
}

}  // namespace ccom
