// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads of the test, on pretended hosts: a board per host in private memory, control connections over
// loopback.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "liveness/control_family.h"
#include "liveness/monitor.h"
#include "tests/harness/folder.h"

namespace ccom::test {

class Cluster {
 public:
  // layout[h] ranks on host h, numbered in order. Creates all monitors.
  explicit Cluster(std::vector<int> layout, int64_t dead_ms = 3000, bool tls = false);
  // A part of it: of these ranks, ascending.
  Cluster(Cluster& whole, const std::vector<Rank>& ranks);
  ~Cluster();

  MonitorConfig config_of(Rank rank) const;
  // Connects all ranks, in parallel; the first error.
  Status connect(int64_t timeout_ms = 10000) { return connect(addresses(), timeout_ms); }
  // Where the ranks accept connections, or whoever stands in between.
  Status connect(const std::vector<Monitor::Addresses>& addresses, int64_t timeout_ms = 10000);
  std::vector<Monitor::Addresses> addresses() const;
  Monitor& operator[](Rank rank) { return *monitors_[static_cast<size_t>(rank)]; }
  Bytes board(int host) { return std::as_writable_bytes(std::span(boards_[static_cast<size_t>(host)])); }
  int ranks() const { return static_cast<int>(monitors_.size()); }
  void destroy(Rank rank) { monitors_[static_cast<size_t>(rank)].reset(); }
  // Whether all remaining monitors fail within the time.
  bool all_fail(int64_t within_ms);

 private:
  void create();
  struct alignas(64) Line {
    std::byte bytes[64]{};
  };
  std::vector<HostMembers> hosts_;
  Secret key_ = Secret::random();
  int64_t dead_ms_;
  bool tls_;
  uint64_t communicator_ = 42;
  std::vector<std::shared_ptr<ControlFamily>> families_;  // of a part, by rank; until it is created
  std::vector<Rank> members_;                             // of a part
  std::vector<std::vector<Line>> boards_;
  std::vector<std::unique_ptr<Monitor>> monitors_;
};

class ConnectedCluster : public Cluster {
 public:
  using Cluster::Cluster;

 private:
  bool connect_or_throw() {
    const Status connected = connect();
    if (!connected.is_ok()) throw std::runtime_error(connected.message());
    return true;
  }
  const bool is_connected_ = connect_or_throw();
};

}  // namespace ccom::test
