// SPDX-License-Identifier: Apache-2.0
//
// Where a rank is reached by others of its family that have to agree on who is left: a port that it keeps from the
// start, and where it listens from the time when a communicator of the family needs it. Connections for others of its
// communicators are dropped, as if nobody listened.
//
// Belongs to the liveness thread, but for what is constant.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/tcp_socket.h"
#include "liveness/control_handshake.h"
#include "liveness/liveness_thread.h"

namespace ccom {

class ControlFamily;

class AgreementPort final : public LivenessTask {
 public:
  // From that rank of the family.
  using Arrived = std::function<void(Rank member, std::shared_ptr<ControlConnection>)>;

  // Keeps a port. The family and the thread outlive it. Any thread.
  static Result<std::unique_ptr<AgreementPort>> create(const ControlFamily& family, const std::string& bind_address,
                                                       const PortRange& ports, bool tls, LivenessThread& thread);
  ~AgreementPort() override;

  const std::string& address() const { return address_; }  // any thread
  // Of connections to other ranks' ports, too. After the first open().
  const ControlIdentity& identity() const { return identity_; }
  // From now on connections for that communicator arrive there, until close(). In an error: to be tried again.
  Status open(uint64_t communicator, Arrived arrived);
  void close(uint64_t communicator) { open_.erase(communicator); }

  int64_t poll(int64_t now_ns) override;
  bool has_work() const override { return false; }
  void run_out_of_memory() noexcept override {}
  const std::atomic<uint32_t>* awaited_word() const override { return nullptr; }

 private:
  AgreementPort(const ControlFamily& family, Descriptor socket, std::string address, bool tls, LivenessThread& thread);
  Status listen();

  LivenessThread& thread_;
  Descriptor socket_;
  const std::string address_;
  const bool tls_;
  ControlIdentity identity_;
  std::unique_ptr<ControlAcceptor> acceptor_;  // null: it does not listen yet
  Readable arrives_;
  std::map<uint64_t, Arrived> open_;  // by communicator
};

}  // namespace ccom
