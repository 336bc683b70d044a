// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rendezvous_servers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/network.h"
#include "bootstrap/rendezvous_server.h"
#include "bootstrap/start_resources.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// The server outlives the deadline of its ranks, so that each can be told why it failed.
constexpr auto kLifeMargin = 5s;
// How long to wait for a port used by a process that is shutting down.
constexpr auto kPortTimeout = 3s;

Deadline life_after(Deadline init_deadline) { return Deadline(init_deadline.when() + kLifeMargin); }

// Callbacks for the end of a server. Shared by the server's thread and the registry.
class Cleanups {
 public:
  void add(std::function<void()> cleanup) {
    {
      const Lock lock(mutex_);
      if (!has_run_) return cleanups_.push_back(std::move(cleanup));
    }
    cleanup();
  }
  void run() {
    const Lock lock(mutex_);
    has_run_ = true;
    for (const auto& cleanup : cleanups_) {
      try {
        cleanup();
      } catch (const std::bad_alloc&) {
        log(LogLevel::Error, "the rendezvous server ran out of memory while it cleaned up");
      }
    }
    cleanups_.clear();
  }

 private:
  Mutex mutex_;
  bool has_run_ CCOM_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> cleanups_ CCOM_GUARDED_BY(mutex_);
};

struct HostedServer {
  std::string endpoint;
  std::shared_ptr<Cleanups> cleanups;
  std::shared_ptr<RendezvousServer> server;  // shared with threads that wait for its end
};

// Thread-safe. After a fork the child has the parent's server objects without their threads; they are left alone.
class RendezvousServers {
 public:
  Result<uint16_t> start(RendezvousServer::Options options) {
    auto cleanups = std::make_shared<Cleanups>();
    options.on_end = [cleanups] { cleanups->run(); };
    const std::string address = options.address;
    CCOM_TRY_ASSIGN(std::shared_ptr<RendezvousServer> server, RendezvousServer::start(std::move(options)));
    const uint16_t port = server->port();
    const Lock lock(mutex_);
    drop_after_fork();
    std::erase_if(servers_, [](const HostedServer& held) { return held.server->has_ended(); });
    servers_.push_back({endpoint_text(address, port), std::move(cleanups), std::move(server)});
    return port;
  }

  // Ends and joins the remaining servers.
  void end_all() {
    std::vector<HostedServer> ending;
    const Lock lock(mutex_);
    drop_after_fork();
    ending.swap(servers_);
  }

  // Null pointers if there is none at this address.
  HostedServer find(const std::string& endpoint) {
    const Lock lock(mutex_);
    drop_after_fork();
    const auto found = std::ranges::find(servers_, endpoint, &HostedServer::endpoint);
    return found == servers_.end() ? HostedServer{} : *found;
  }

 private:
  void drop_after_fork() CCOM_REQUIRES(mutex_) {
    if (::getpid() == owner_) return;
    std::ranges::move(servers_, std::back_inserter(of_parents_));
    servers_.clear();
    owner_ = ::getpid();
  }

  Mutex mutex_;
  pid_t owner_ CCOM_GUARDED_BY(mutex_) = ::getpid();
  std::vector<HostedServer> servers_ CCOM_GUARDED_BY(mutex_);
  std::vector<HostedServer> of_parents_ CCOM_GUARDED_BY(mutex_);  // never destroyed: their threads cannot be joined
};

// The one deliberate global of ccom: ccomGetUniqueId returns bytes, not a handle, so nothing else can own the server
// that it starts, and the server must stop before the process's libraries are unloaded.
RendezvousServers& rendezvous_servers() {
  static constinit MadeOnce<RendezvousServers> all;
  return all.get([] {
    if (std::atexit([] { rendezvous_servers().end_all(); }) != 0) throw std::bad_alloc();
    return RendezvousServers();
  });
}

// Uses the first free port.
Result<uint16_t> start_within(const PortRange& ports, const UniqueId& id, Deadline init_deadline) {
  for (int port = ports.low; port <= ports.high; ++port) {
    const auto number = static_cast<uint16_t>(port);
    const bool is_taken = !ports.is_any() && !listen_at(id.address, {number, number}, 1);
    if (is_taken) continue;
    Result<uint16_t> started = rendezvous_servers().start({.address = id.address,
                                                           .port = number,
                                                           .secret = id.secret,
                                                           .communicator = id.communicator,
                                                           .life = life_after(init_deadline)});
    if (started || started.error().sys_errno() != EADDRINUSE) return started;
  }
  Result<Descriptor> none = listen_at(id.address, ports, 1);
  return none ? error(ErrorKey::CannotListen, "listen at %s: all free ports were taken in the meantime",
                      id.address.c_str())
              : none.error();
}

}  // namespace

Result<UniqueId> create_unique_id(std::string_view interface_filter, const PortRange& ports, Deadline init_deadline) {
  CCOM_TRY(check_start_descriptors());
  CCOM_TRY_ASSIGN(const std::vector<Interface> interfaces, choose_interfaces(interface_filter));
  Status failure;
  for (const Interface& interface : interfaces) {
    UniqueId id{.address = interface.address, .communicator = random_u64(), .secret = Secret::random()};
    const Result<uint16_t> port = start_within(ports, id, init_deadline);
    if (port) {
      id.port = *port;
      return id;
    }
    if (failure.is_ok()) failure = Status(port.error()).in("interface " + interface.name);
  }
  return failure;
}

Status host_rendezvous(const UniqueId& id, Deadline init_deadline) {
  if (const HostedServer earlier = rendezvous_servers().find(id.endpoint()); earlier.server != nullptr) {
    if (!earlier.server->wait_until_ended(init_deadline)) {
      return error(ErrorKey::RendezvousInUse, "the previous rendezvous at %s has not ended: some rank has not left it",
                   id.endpoint().c_str());
    }
  }
  const Deadline port_deadline = init_deadline.earlier(Deadline::after(kPortTimeout));
  while (true) {
    const Result<uint16_t> port = rendezvous_servers().start({.address = id.address,
                                                              .port = id.port,
                                                              .secret = id.secret,
                                                              .communicator = id.communicator,
                                                              .life = life_after(init_deadline)});
    if (port) return Status::ok();
    if (port.error().sys_errno() != EADDRINUSE || port_deadline.passed()) return port.error();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(50ms, port_deadline.left()));
  }
}

void when_rendezvous_ends(const UniqueId& id, std::function<void()> cleanup) {
  const HostedServer held = rendezvous_servers().find(id.endpoint());
  if (held.cleanups == nullptr) return cleanup();
  held.cleanups->add(std::move(cleanup));
}

}  // namespace ccom
