// SPDX-License-Identifier: Apache-2.0
//
// What the ranks found, as values: gathered from all of them, judged by verdict.h, printed by print.h. A Report is the
// same on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ccom::doctor {

// An address on which this rank's host would carry data.
struct DataAddress {
  std::string interface {};
  std::string address{};
  uint16_t port = 0;            // where the others try to connect; 0: nobody listens
  int mtu = 0;                  // 0: unknown
  double bytes_per_second = 0;  // of the interface, as its driver says; 0: unknown
};

// What one rank sees of its host.
struct RankReport {
  int rank = 0;
  std::string host_id{};  // equal: one host
  std::string host_name{};
  std::string instance_type{};  // "" unless known
  std::string kernel{};
  std::string ccom_version{};
  std::string libfabric{};                // version; "" if there is none
  std::vector<std::string> providers{};   // of libfabric
  std::string providers_failure{};        // why they could not be listed
  std::vector<std::string> interfaces{};  // all, "eth0 10.0.0.7"
  std::string filter{};                   // grammar of CCOM_SOCKET_IFNAME
  std::string filter_origin{};            // the variable, "" if the choice is automatic
  std::string filter_failure{};           // why it names none
  std::vector<DataAddress> addresses{};   // chosen, the one that ccom prefers first
  int efa_devices = 0;
  int cpus = 0;            // that this rank's host lets the job use
  int64_t open_files = 0;  // soft limits; -1: unlimited
  int64_t locked_bytes = 0;
  int64_t shm_bytes = -1;  // size of /dev/shm; -1: there is none
  int ptrace_scope = 0;
  int64_t free_hugepages = 0;
  int64_t available_bytes = 0;  // memory
};

// One host tried to connect to an address of another one, say a few words, and send more than fits a frame.
struct Reach {
  int from = 0;  // host
  int to = 0;
  int address = 0;  // index into RankReport::addresses of `to`
  bool connects = false;
  bool answers = false;  // small messages pass, both ways
  bool carries = false;  // large ones too
  int path_mtu = 0;      // as the kernel knows it; 0: unknown
  double connect_ms = 0;
  std::string failure{};  // the system's reason, "" if all is well
};

// ccom itself between two hosts, nobody else's pair at the same time on either of them.
struct Speed {
  int a = 0;  // host
  int b = 0;
  double latency_ns = 0;  // half a round trip of 8 bytes
  double there_bytes_per_second = 0;
  double back_bytes_per_second = 0;
  std::string transports{};
  std::string failure{};
};

// One communicator of all ranks.
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
  RankReport report{};   // of its lowest rank, which also made the probes
  int64_t clock_ms = 0;  // since the epoch, taken by all hosts at one moment
};

struct Report {
  int nranks = 0;
  std::string meeting{};  // "10.0.0.1:21000 (MASTER_ADDR and MASTER_PORT)"
  std::vector<HostEntry> hosts{};
  std::vector<std::string> versions{};  // of ccom, by rank
  std::vector<Reach> reaches{};
  std::vector<Speed> speeds{};
  Job job{};
  // The examination could not go on: who did not answer, and in which part.
  std::string ended{};
  std::vector<int> missing{};
};

// Ranks with one host_id become a host, in the order of their lowest ranks; labels are made unique.
std::vector<HostEntry> group_hosts(const std::vector<RankReport>& ranks);

}  // namespace ccom::doctor
