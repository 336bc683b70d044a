// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/relay_server.h"

#include <arpa/inet.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "base/mutex.h"
#include "base/thread.h"
#include "bootstrap/connection_intake.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_service.h"
#include "bootstrap/grpc_use.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// For answers that are under way.
constexpr auto kRelayShutdownGrace = 500ms;
constexpr int kRelayRequestBytes = static_cast<int>(kMaxRelayedBytes) + (1 << 16);

const grpc::Status kUnreadable(grpc::StatusCode::INVALID_ARGUMENT, "the request cannot be read");
const grpc::Status kRelayLacksMemory(grpc::StatusCode::RESOURCE_EXHAUSTED, "the relay has no memory");

}  // namespace

const grpc::Status kRelayHasEnded(grpc::StatusCode::UNAVAILABLE, "the relay has ended");

class RelayServer::Impl {
 public:
  ~Impl();
  Status open(const std::string& address, uint16_t port, const Secret& secret);
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
  ServerCall* arrive(grpc::ByteBuffer bytes, grpc::ByteBuffer& answer);
  void cancel(uint64_t number);

  const GrpcUse grpc_;
  RendezvousCalls service_{
      [this](const grpc::ByteBuffer& request, grpc::ByteBuffer& answer) { return arrive(request, answer); }};
  std::string endpoint_;
  std::unique_ptr<ConnectionIntake> intake_;
  std::unique_ptr<grpc::Server> server_;
  Mutex mutex_;
  bool has_ended_ CCOM_GUARDED_BY(mutex_) = false;
  uint64_t last_number_ CCOM_GUARDED_BY(mutex_) = 0;
  std::vector<RelayRequest> arrived_ CCOM_GUARDED_BY(mutex_);
};

Status RelayServer::Impl::open(const std::string& address, uint16_t port, const Secret& secret) {
  grpc::ServerBuilder builder;
  CCOM_TRY_ASSIGN(intake_, ConnectionIntake::listen(address, port, secret, builder));
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kRelayRequestBytes);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return error(Code::InternalError, "start a gRPC server for relays at %s", address.c_str());
  endpoint_ = endpoint_text(address, intake_->port());
  return intake_->start();
}

ServerCall* RelayServer::Impl::arrive(grpc::ByteBuffer bytes, grpc::ByteBuffer& answer) {
  FinishedCalls finished;
  uint64_t number = 0;
  {
    const Lock lock(mutex_);
    number = ++last_number_;
  }
  auto* const call = new ServerCall(answer, [this, number](ServerCall*) { cancel(number); });
  try {
    RelayRequest arrived{.number = number, .request = {}, .call = call};
    if (!grpc::SerializationTraits<wire::Request>::Deserialize(&bytes, &arrived.request).ok()) {
      finished.add(call, kUnreadable);
      return call;
    }
    const Lock lock(mutex_);
    if (has_ended_) {
      finished.add(call, kRelayHasEnded);
    } else {
      arrived_.push_back(std::move(arrived));
    }
  } catch (const std::bad_alloc&) {
    finished.add(call, kRelayLacksMemory);
  }
  return call;
}

void RelayServer::Impl::cancel(uint64_t number) {
  try {
    const Lock lock(mutex_);
    arrived_.push_back({.number = number, .request = {}, .call = nullptr});
  } catch (const std::bad_alloc&) {  // the ranks that wait for those of that relay are told at their deadline
  }
}

RelayServer::Impl::~Impl() {
  if (intake_ != nullptr) intake_->stop();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kRelayShutdownGrace);
  server_.reset();
}

Result<std::unique_ptr<RelayServer>> RelayServer::start(const std::string& address, const PortRange& ports,
                                                        const Secret& secret) {
  try {
    const SignalsBlocked blocked;  // gRPC's threads leave them to the application's
    Status failure;
    for (int port = ports.low; port <= ports.high; ++port) {
      auto impl = std::make_unique<Impl>();
      failure = impl->open(address, static_cast<uint16_t>(port), secret);
      if (failure.is_ok()) return std::unique_ptr<RelayServer>(new RelayServer(std::move(impl)));
      if (failure.sys_errno() != EADDRINUSE) break;
    }
    return failure;
  } catch (const std::exception& thrown) {
    return error(Code::OutOfMemory, "listen for relays at %s: %s", address.c_str(), thrown.what());
  }
}

RelayServer::RelayServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RelayServer::~RelayServer() {
  const SignalsBlocked blocked;
  impl_.reset();
}
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
