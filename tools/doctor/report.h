// SPDX-License-Identifier: Apache-2.0
//
// The ranks' results as values: gathered from all of them, judged by verdict.h, printed by print.h. A Report is equal
// on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ccom::doctor {

// An address on which this rank's host would transfer data.
struct DataAddress {
  std::string interface {};
  std::string address{};
  uint16_t port = 0;            // where other hosts try to connect; 0: not listening
  int mtu = 0;                  // 0: unknown
  double bytes_per_second = 0;  // of the interface, from its driver; 0: unknown
};

// What one rank finds on its host.
struct RankReport {
  int rank = 0;
  std::string host_id{};  // equal on ranks of one host
  std::string host_name{};
  std::string instance_type{};  // "" if unknown
  std::string kernel{};
  std::string ccom_version{};
  std::string libfabric{};                // version; "" if not installed
  std::vector<std::string> providers{};   // of libfabric
  std::string providers_failure{};        // why they could not be listed
  std::vector<std::string> interfaces{};  // all, "eth0 10.0.0.7"
  std::string filter{};                   // grammar of CCOM_SOCKET_IFNAME
  std::string filter_origin{};            // the variable, "" if the choice is automatic
  std::string filter_failure{};           // why it matches none
  std::vector<DataAddress> addresses{};   // selected, in order of preference
  int efa_devices = 0;
  int cpus = 0;            // available to the job on this rank's host
  int64_t open_files = 0;  // soft limits; -1: unlimited
  int64_t locked_bytes = 0;
  int64_t shm_bytes = -1;  // size of /dev/shm; -1: missing
  int ptrace_scope = 0;
  int64_t free_hugepages = 0;
  int64_t available_bytes = 0;  // memory
};

// Connects from one host to an address of another, sends a small message and one larger than a frame.
struct Reach {
  int from = 0;  // host
  int to = 0;
  int address = 0;  // index into RankReport::addresses of `to`
  bool connects = false;
  bool answers = false;  // small messages arrive, in both directions
  bool carries = false;  // large ones too
  int path_mtu = 0;      // as the kernel knows it; 0: unknown
  double connect_ms = 0;
  std::string failure{};  // the system's reason, "" on success
};

// ccom between two hosts; neither is in another pair at the same time.
struct Speed {
  int a = 0;  // host
  int b = 0;
  double latency_ns = 0;  // half a round trip of 8 bytes
  double there_bytes_per_second = 0;
  double back_bytes_per_second = 0;
  std::string transports{};
  std::string failure{};
};

// The unique id of a communicator that is to be started, or why there is none.
struct Offer {
  std::string id{};
  std::string failure{};
};

// A communicator of all ranks.
struct Job {
  bool tried = false;
  std::string failure{};
  std::string transports{};
  double start_ms = 0;
  double small_us = 0;  // allreduce of 8 bytes
  double large_us = 0;  // allreduce of 1 MiB, verified
};

struct HostEntry {
  std::string label{};  // unique
  std::vector<int> ranks{};
  RankReport report{};   // of its lowest rank, which also ran the probes
  int64_t clock_ms = 0;  // since the epoch, taken on all hosts at the same time
};

struct Report {
  int nranks = 0;
  std::string rendezvous{};  // "10.0.0.1:21000 (MASTER_ADDR and MASTER_PORT)"
  std::vector<HostEntry> hosts{};
  std::vector<std::string> versions{};  // of ccom, by rank
  std::vector<Reach> reaches{};
  std::vector<Speed> speeds{};
  Job job{};
  // Why the examination ended early: who did not answer, and in which phase.
  std::string ended{};
  std::vector<int> missing{};
};

// Ranks with equal host_id form a host, in the order of their lowest ranks; labels are made unique.
std::vector<HostEntry> group_hosts(const std::vector<RankReport>& ranks);

}  // namespace ccom::doctor
