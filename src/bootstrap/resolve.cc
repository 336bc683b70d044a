// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <memory>
#include <system_error>
#include <thread>

#include "base/mutex.h"
#include "base/thread.h"

namespace ccom {
namespace {

// Shared by the caller and the resolver thread, which may be the last to use it.
struct Query {
  explicit Query(std::string name) : host(std::move(name)) {}
  ~Query() {
    if (list != nullptr) ::freeaddrinfo(list);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  const std::string host;
  Mutex mutex;
  std::condition_variable changed;
  bool is_answered CCOM_GUARDED_BY(mutex) = false;  // then nobody writes to what follows
  int failure = 0;
  int sys_errno = 0;
  addrinfo* list = nullptr;
};

void ask(Query& query) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failure = ::getaddrinfo(query.host.c_str(), nullptr, &hints, &list);
  const int sys_errno = errno;
  const Lock lock(query.mutex);
  query.failure = failure;
  query.sys_errno = sys_errno;
  query.list = list;
  query.is_answered = true;
  query.changed.notify_all();
}

Result<std::string> first_address(const std::string& host, const addrinfo* list) {
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family != family) continue;
      char text[INET6_ADDRSTRLEN];
      const void* address =
          family == AF_INET ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry->ai_addr)->sin_addr)
                            : &reinterpret_cast<const sockaddr_in6*>(entry->ai_addr)->sin6_addr;
      if (::inet_ntop(family, address, text, sizeof text) != nullptr) return std::string(text);
    }
  }
  return error(Code::ConfigError, "host '%s' has no IP address", host.c_str());
}

}  // namespace

Result<std::string> resolve_host(const std::string& host, Deadline deadline) {
  in6_addr numeric{};
  if (::inet_pton(AF_INET, host.c_str(), &numeric) == 1 || ::inet_pton(AF_INET6, host.c_str(), &numeric) == 1)
    return host;
  const auto query = std::make_shared<Query>(host);
  std::thread resolver;
  if (const int refused = start_thread(resolver, "ccom-resolver", [query] { ask(*query); }); refused != 0) {
    return error(Code::OutOfMemory, "look up host '%s': start a thread: %s", host.c_str(),
                 std::generic_category().message(refused).c_str());
  }
  Lock lock(query->mutex);
  const auto is_answered = [&query]() CCOM_REQUIRES(query->mutex) { return query->is_answered; };
  if (!lock.wait_until(query->changed, deadline.when(), is_answered)) {
    resolver.detach();  // getaddrinfo cannot be cancelled; it ends by the timeouts in resolv.conf
    return error(ErrorKey::NameLookup, "look up host '%s': no answer from the name server", host.c_str());
  }
  lock.unlock();
  resolver.join();
  if (query->failure == EAI_SYSTEM) return system_error(query->sys_errno, "look up host '%s'", host.c_str());
  if (query->failure != 0) {
    return error(Code::ConfigError, "look up host '%s': %s", host.c_str(), ::gai_strerror(query->failure));
  }
  return first_address(host, query->list);
}

}  // namespace ccom
