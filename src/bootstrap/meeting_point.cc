// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/meeting_point.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/network.h"
#include "bootstrap/grpc_rendezvous.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// A meeting point outlives the deadline of its ranks, so that each of them can still be told why it failed.
constexpr auto kLifeMargin = 5s;
// How long a port may be in use by a process that is on its way out.
constexpr auto kPortPatience = 3s;

Deadline life_after(Deadline init_deadline) { return Deadline(init_deadline.when() + kLifeMargin); }

// What to do when a meeting point ends. Shared by its server's thread and the registry.
class Cleanups {
 public:
  void add(std::function<void()> cleanup) {
    {
      const std::lock_guard lock(mutex_);
      if (!has_run_) return cleanups_.push_back(std::move(cleanup));
    }
    cleanup();
  }
  void run() {
    const std::lock_guard lock(mutex_);
    has_run_ = true;
    for (const auto& cleanup : cleanups_) cleanup();
    cleanups_.clear();
  }

 private:
  std::mutex mutex_;
  bool has_run_ = false;
  std::vector<std::function<void()>> cleanups_;
};

struct Held {
  std::string endpoint;
  std::shared_ptr<Cleanups> cleanups;
  std::shared_ptr<RendezvousServer> server;  // shared with those who wait for its end
};

// Thread-safe. In a child made by fork the parent's servers do not exist, only their memory, which is left alone.
class MeetingPoints {
 public:
  ~MeetingPoints() { forget_the_parents(); }  // ends and joins what is left: at exit

  Result<uint16_t> start(RendezvousServer::Options options) {
    auto cleanups = std::make_shared<Cleanups>();
    options.on_end = [cleanups] { cleanups->run(); };
    const std::string address = options.address;
    CCOM_TRY_ASSIGN(std::shared_ptr<RendezvousServer> server, RendezvousServer::start(std::move(options)));
    const uint16_t port = server->port();
    const std::lock_guard lock(mutex_);
    forget_the_parents();
    std::erase_if(held_, [](const Held& held) { return held.server->has_ended(); });
    held_.push_back({endpoint_text(address, port), std::move(cleanups), std::move(server)});
    return port;
  }

  // nullptrs if there is none at this address.
  Held find(const std::string& endpoint) {
    const std::lock_guard lock(mutex_);
    forget_the_parents();
    const auto found = std::ranges::find(held_, endpoint, &Held::endpoint);
    return found == held_.end() ? Held{} : *found;
  }

 private:
  void forget_the_parents() {
    if (::getpid() == owner_) return;
    static auto* const never_destroyed = new std::vector<Held>;  // their threads cannot be joined
    std::ranges::move(held_, std::back_inserter(*never_destroyed));
    held_.clear();
    owner_ = ::getpid();
  }

  std::mutex mutex_;
  pid_t owner_ = ::getpid();
  std::vector<Held> held_;
};

// The one deliberate global of ccom. ccomGetUniqueId returns bytes, not a handle: nobody else could own the server that
// it started, and the server must be stopped before the process's libraries are taken down.
MeetingPoints& meeting_points() {
  static MeetingPoints instance;
  return instance;
}

// On the first free port.
Result<uint16_t> start_within(const PortRange& ports, const UniqueId& id, Deadline init_deadline) {
  for (int port = ports.low; port <= ports.high; ++port) {
    const auto number = static_cast<uint16_t>(port);
    const bool is_taken = !ports.is_any() && !listen_at(id.address, {number, number}, 1);
    if (is_taken) continue;
    Result<uint16_t> started = meeting_points().start(
        {.address = id.address, .port = number, .secret = id.secret, .life = life_after(init_deadline)});
    if (started || started.error().sys_errno() != EADDRINUSE) return started;
  }
  Result<Descriptor> none = listen_at(id.address, ports, 1);
  return none ? error(Code::SystemError, "listen at %s: ports come and go", id.address.c_str()) : none.error();
}

}  // namespace

Result<UniqueId> create_unique_id(std::string_view interface_filter, const PortRange& ports, Deadline init_deadline) {
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

Status host_meeting_point(const UniqueId& id, Deadline init_deadline) {
  if (const Held earlier = meeting_points().find(id.endpoint()); earlier.server != nullptr) {
    if (!earlier.server->wait_until_ended(init_deadline)) {
      return error(Code::Timeout, "the previous meeting at %s is not over: some rank has not left it",
                   id.endpoint().c_str());
    }
  }
  const Deadline give_up = init_deadline.earlier(Deadline::after(kPortPatience));
  while (true) {
    const Result<uint16_t> port = meeting_points().start(
        {.address = id.address, .port = id.port, .secret = id.secret, .life = life_after(init_deadline)});
    if (port) return Status::ok();
    if (port.error().sys_errno() != EADDRINUSE || give_up.passed()) return port.error();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(50ms, give_up.left()));
  }
}

void when_meeting_ends(const UniqueId& id, std::function<void()> cleanup) {
  const Held held = meeting_points().find(id.endpoint());
  if (held.cleanups == nullptr) return cleanup();
  held.cleanups->add(std::move(cleanup));
}

}  // namespace ccom
