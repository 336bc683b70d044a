// SPDX-License-Identifier: Apache-2.0
//
// What the communicators of a family - one start, its parts and theirs - share on a rank: control connections to other
// ranks of the family, ports for agreement, and the key of both. All of them hold it, so it ends with the last; a part
// that needs a connection which exists makes none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/secret.h"
#include "base/tcp_socket.h"
#include "base/types.h"
#include "liveness/control_connection.h"
#include "liveness/held_connection.h"

namespace ccom {

class AgreementPort;

// The connection that two ranks of a family both hold, and both choose, of what each of them has said.
std::optional<uint64_t> common_connection(Rank self, const std::vector<HeldConnection>& ours, Rank peer,
                                          const std::vector<HeldConnection>& theirs);

class ControlFamily {
 public:
  // Of a start: its key of control connections, its number, and the rank.
  ControlFamily(const Secret& key, uint64_t communicator, Rank self, LivenessThread& thread);
  ~ControlFamily();  // on the liveness thread, if it has connections or ports

  // Any thread; constant.
  const Secret& key() const { return key_; }
  uint64_t communicator() const { return communicator_; }
  Rank self() const { return self_; }

  // Any thread. Of those that have not ended, as far as this end knows.
  std::vector<HeldConnection> held(bool encrypted) const;
  std::shared_ptr<ControlConnection> find(Rank peer, uint64_t number) const;
  // Where ranks of the family listen once they have to agree. The same for all communicators that ask alike.
  Result<AgreementPort*> agreement_port(const std::string& bind_address, const PortRange& ports, bool tls);

  // On the liveness thread.
  void add(Rank peer, std::shared_ptr<ControlConnection> connection);

 private:
  struct Port {
    std::string bind_address;
    bool tls = false;
    std::unique_ptr<AgreementPort> port;
  };
  const Secret key_;
  const uint64_t communicator_;
  const Rank self_;
  LivenessThread& thread_;
  mutable Mutex mutex_;
  std::vector<std::pair<Rank, std::shared_ptr<ControlConnection>>> connections_ CCOM_GUARDED_BY(mutex_);
  std::vector<Port> ports_ CCOM_GUARDED_BY(mutex_);
};

}  // namespace ccom
