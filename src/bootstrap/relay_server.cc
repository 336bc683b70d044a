// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "base/mutex.h"
#include "bootstrap/connection_intake.h"
#include "bootstrap/grpc_server.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// For answers that are under way.
constexpr auto kRelayShutdownGrace = 500ms;

}  // namespace

class RelayServer::Impl {
 public:
  ~Impl();
  Status start(const Secret& secret);
  Status listen(const std::string& address, uint16_t port, const Secret& secret);
  const std::string& endpoint() const { return endpoint_; }
  std::vector<RelayRequest> take() {
    const Lock lock(mutex_);
    return std::exchange(arrived_, {});
  }
  std::vector<RelayRequest> end() {
    const Lock lock(mutex_);
    has_ended_ = true;
    return std::exchange(arrived_, {});
  }

 private:
  void arrive(wire::Request& request, PendingCall* call);
  void cancel(const PendingCall* call);

  std::string endpoint_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<ConnectionIntake> intake_;
  Mutex mutex_;
  bool has_ended_ CCOM_GUARDED_BY(mutex_) = false;
  std::vector<RelayRequest> arrived_ CCOM_GUARDED_BY(mutex_);
};

Status RelayServer::Impl::start(const Secret& secret) {
  CCOM_TRY_ASSIGN(server_, GrpcServer::start(secret, {[this](auto& request, auto* call) { arrive(request, call); },
                                                      [this](const auto* call) { cancel(call); }}));
  return {};
}

Status RelayServer::Impl::listen(const std::string& address, uint16_t port, const Secret& secret) {
  const auto take = [this](Descriptor connection, int listener) { server_->take(std::move(connection), listener); };
  CCOM_TRY_ASSIGN(intake_, ConnectionIntake::listen(address, port, secret, take));
  endpoint_ = endpoint_text(address, intake_->port());
  return intake_->start();
}

void RelayServer::Impl::arrive(wire::Request& request, PendingCall* call) {
  FinishedCalls finished;
  try {
    const Lock lock(mutex_);
    if (has_ended_) return finished.add(call, Refusal::RelayHasEnded);
    arrived_.push_back({.number = call->number(), .request = std::move(request), .call = call});
  } catch (const std::bad_alloc&) {
    finished.add(call, Refusal::NoMemory);
  }
}

void RelayServer::Impl::cancel(const PendingCall* call) {
  try {
    const Lock lock(mutex_);
    arrived_.push_back({.number = call->number(), .request = {}, .call = nullptr});
  } catch (const std::bad_alloc&) {  // the ranks that wait for those of that relay are told at their deadline
  }
}

RelayServer::Impl::~Impl() {
  if (intake_ != nullptr) intake_->stop();
  if (server_ != nullptr) server_->shut_down(kRelayShutdownGrace);
}

Result<std::unique_ptr<RelayServer>> RelayServer::start(const std::string& address, const PortRange& ports,
                                                        const Secret& secret) {
  try {
    auto impl = std::make_unique<Impl>();
    CCOM_TRY(impl->start(secret));
    Status failure;
    for (int port = ports.low; port <= ports.high; ++port) {
      failure = impl->listen(address, static_cast<uint16_t>(port), secret);
      if (failure.is_ok()) return std::unique_ptr<RelayServer>(new RelayServer(std::move(impl)));
      if (failure.sys_errno() != EADDRINUSE) break;
    }
    return failure;
  } catch (const std::exception& thrown) {
    return error(Code::OutOfMemory, "listen for relays at %s: %s", address.c_str(), thrown.what());
  }
}

RelayServer::RelayServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RelayServer::~RelayServer() = default;
const std::string& RelayServer::endpoint() const { return impl_->endpoint(); }
std::vector<RelayRequest> RelayServer::take() { return impl_->take(); }
std::vector<RelayRequest> RelayServer::end() { return impl_->end(); }

std::string address_towards(const std::string& address) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  sockaddr_storage place{};
  place.ss_family = is_ipv6 ? AF_INET6 : AF_INET;
  auto& six = reinterpret_cast<sockaddr_in6&>(place);
  auto& four = reinterpret_cast<sockaddr_in&>(place);
  four.sin_port = htons(9);  // where it lies in both
  void* const number = is_ipv6 ? static_cast<void*>(&six.sin6_addr) : &four.sin_addr;
  if (::inet_pton(place.ss_family, address.c_str(), number) != 1) return {};
  socklen_t length = is_ipv6 ? sizeof six : sizeof four;
  const Descriptor socket(::socket(place.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));  // which sends nothing
  auto* const generic = reinterpret_cast<sockaddr*>(&place);
  if (!socket.is_open() || ::connect(socket.get(), generic, length) != 0) return {};
  if (::getsockname(socket.get(), generic, &length) != 0) return {};
  char text[INET6_ADDRSTRLEN] = "";
  (void)::inet_ntop(place.ss_family, number, text, sizeof text);
  return text;
}

}  // namespace ccom
