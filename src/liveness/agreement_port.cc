// SPDX-License-Identifier: Apache-2.0
#include "liveness/agreement_port.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/time.h"
#include "liveness/control_family.h"
#include "liveness/sockets.h"

namespace ccom {
namespace {

constexpr int64_t kHandshakeSliceNs = kNsPerMs;  // between looks at handshakes in progress

}  // namespace

Result<std::unique_ptr<AgreementPort>> AgreementPort::create(const ControlFamily& family,
                                                             const std::string& bind_address, const PortRange& ports,
                                                             bool tls, LivenessThread& thread) {
  Result<Descriptor> socket = keep_port_at(bind_address, ports);
  if (!socket) return std::move(socket).error().in("connections for agreement");
  CCOM_TRY_ASSIGN(std::string address, address_of(*socket));
  return std::unique_ptr<AgreementPort>(new AgreementPort(family, *std::move(socket), std::move(address), tls, thread));
}

AgreementPort::AgreementPort(const ControlFamily& family, Descriptor socket, std::string address, bool tls,
                             LivenessThread& thread)
    : thread_(thread),
      socket_(std::move(socket)),
      address_(std::move(address)),
      tls_(tls),
      identity_{
          .key = family.key().derive("ccom agreement"), .communicator = family.communicator(), .self = family.self()} {
  arrives_.task = this;
}

AgreementPort::~AgreementPort() {
  if (acceptor_ == nullptr || thread_.in_forked_child()) return;
  thread_.unwatch(acceptor_->fd());
  thread_.remove(this);
}

Status AgreementPort::listen() {
  if (acceptor_ != nullptr) return {};
  if (tls_ && identity_.tls == nullptr) {
    CCOM_TRY_ASSIGN(identity_.tls, TlsContext::create(identity_.key.derive("ccom agreement tls")));
  }
  CCOM_TRY_ASSIGN(std::unique_ptr<ControlAcceptor> acceptor, ControlAcceptor::create(identity_));
  if (::listen(socket_.get(), SOMAXCONN) != 0) return system_error(errno, "listen at %s", address_.c_str());
  CCOM_TRY(acceptor->listen_at(socket_));
  CCOM_TRY(thread_.watch(acceptor->fd(), &arrives_));
  acceptor_ = std::move(acceptor);
  thread_.add(this);
  return {};
}

Status AgreementPort::open(uint64_t communicator, Arrived arrived) {
  CCOM_TRY(listen());
  open_[communicator] = std::move(arrived);
  return {};
}

int64_t AgreementPort::poll(int64_t now_ns) {
  arrives_.now = false;
  acceptor_->step([this](Rank, uint64_t use) { return open_.contains(use); },
                  [this](Rank member, uint64_t use, std::shared_ptr<ControlConnection> connection) {
                    open_.at(use)(member, std::move(connection));
                  });
  return acceptor_->is_idle() ? INT64_MAX : now_ns + kHandshakeSliceNs;
}

}  // namespace ccom
