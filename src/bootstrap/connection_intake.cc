// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/connection_intake.h"

#include <grpcpp/security/server_credentials.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/tls_identity.h"
#include "bootstrap/unique_id.h"

namespace ccom {
namespace {

constexpr int kTlsTimeoutMs = 5000;

// With the certificate derived from the secret, on both sides.
Result<std::shared_ptr<grpc::ServerCredentials>> credentials_of(const Secret& secret) {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(secret));
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = identity.certificate;
  tls.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  return grpc::SslServerCredentials(tls);
}

Result<uint16_t> port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return system_error(errno, "read the port");
  const bool is_ipv6 = address.ss_family == AF_INET6;
  return ntohs(is_ipv6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                       : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<std::unique_ptr<ConnectionIntake>> ConnectionIntake::listen(const std::string& address, uint16_t port,
                                                                   const Secret& secret, grpc::ServerBuilder& server) {
  const std::string endpoint = endpoint_text(address, port);
  if (is_wildcard_address(address)) {
    return error(Code::ConfigError, "rendezvous server %s: ccom does not listen on wildcard addresses",
                 endpoint.c_str())
        .with_cure("use one address of this host");
  }
  CCOM_TRY_ASSIGN(auto credentials, credentials_of(secret));
  CCOM_TRY_ASSIGN(UnprovedConnections arriving, UnprovedConnections::create(&measure_client_hello));
  std::unique_ptr<ConnectionIntake> intake(new ConnectionIntake(std::move(arriving)));
  Result<Descriptor> listener = listen_at_port(address, port, SOMAXCONN);
  if (!listener) return std::move(listener).error().in("listen for the ranks at " + endpoint);
  intake->listener_ = *std::move(listener);
  CCOM_TRY_ASSIGN(intake->port_, port_of(intake->listener_));
  CCOM_TRY(intake->arriving_.add_listener(intake->listener_.get()));
  intake->stop_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!intake->stop_.is_open()) return system_error(errno, "open an eventfd");
  server.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kTlsTimeoutMs);
  using grpc::ServerBuilder;
  intake->server_ = server.experimental().AddExternalConnectionAcceptor(
      ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, std::move(credentials));
  return intake;
}

Status ConnectionIntake::start() {
  const int refused = start_thread(thread_, "ccom-accept", [this] { run(); });
  return refused == 0 ? Status::ok() : system_error(refused, "start the thread that accepts connections");
}

void ConnectionIntake::stop() {
  if (thread_.joinable()) {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  arriving_.remove_listeners();
  listener_ = Descriptor();
}

void ConnectionIntake::hand_over(Descriptor connection) {
  disable_nagle(connection.get());
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener_.get();
  parameters.fd = connection.release();
  server_->HandleNewConnection(&parameters);
}

void ConnectionIntake::run() {
  while (true) {
    std::array<pollfd, 2> events{{{arriving_.fd(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    (void)::poll(events.data(), events.size(), arriving_.wait_ms());
    if (events[1].revents != 0) return;
    try {
      for (Descriptor next = arriving_.next(); next.is_open(); next = arriving_.next()) hand_over(std::move(next));
    } catch (const std::bad_alloc&) {  // that connection is lost; its rank tries again
      log(LogLevel::Warn, "the rendezvous server has no memory for a connection");
    }
  }
}

}  // namespace ccom
