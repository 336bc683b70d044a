// SPDX-License-Identifier: Apache-2.0
//
// The machine as a value: hosts, their devices and the links between them, and the place of every rank.
//
// Pure but for discover(), which reads a folder that it is given. A Topology copies, compares and has a text and a JSON
// form, so that a bug report can carry one. Every rank of a communicator holds an equal Topology (a hash is compared at
// start-up); the planner derives from it which algorithms are legal and what they cost.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/types.h"

namespace ccom {

// Cost of a message of m bytes: latency_ns + m / bytes_per_second, each direction on its own.
struct LinkSpeed {
  double latency_ns = 0;
  double bytes_per_second = 0;
  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

// What a rank itself takes. Both are model input, like every speed.
struct Costs {
  double post_ns = 0;                  // to start a message, one after another
  double reduce_bytes_per_second = 0;  // that its reductions read; 0: as fast as messages arrive
  friend bool operator==(const Costs&, const Costs&) = default;
};

// A directed link between two devices of a fabric, or a device and a switch.
struct Link {
  int from = 0;
  int to = 0;
  LinkSpeed speed;
  friend bool operator==(const Link&, const Link&) = default;
};

// A way from some devices to other hosts: the network cards nearest to them, added up. Each direction on its own.
struct Uplink {
  std::vector<int> devices;  // ascending
  LinkSpeed speed;
  double post_ns = 0;  // that the cards take for one message, whatever its length
  friend bool operator==(const Uplink&, const Uplink&) = default;
};

// Devices joined by links of their own, e.g. NeuronLink: a graph of devices 0..devices-1 and, after them, switches.
// Cores of one device are joined all to all.
struct Fabric {
  enum class Shape { Single, Ring, Chain, Torus, Full, Switch, Other };
  std::string name;  // "trn1.32xlarge", "torus:4x4"
  Shape shape = Shape::Single;
  // Torus: {rows, columns} or {layers, rows, columns}, the last one running fastest; Ring, Chain, Full, Switch: {n}.
  std::vector<int> dims;
  int devices = 1;
  int switches = 0;
  int cores_per_device = 1;     // visible (logical) cores, each of which a rank may take
  std::vector<Link> links;      // sorted by (from, to), both directions listed
  LinkSpeed inside_device;      // out of one core to others of its device
  bool routed = false;          // devices pass on what is not for them: everybody reaches everybody
  std::vector<Uplink> uplinks;  // each device in at most one
  Costs costs;

  bool linked(int a, int b) const;  // one device, neighbours, at one switch, or routed
  bool joined(int a, int b) const;  // is there a link between two vertices?
  friend bool operator==(const Fabric&, const Fabric&) = default;
};

struct Nic {
  std::string name;             // "eth0", "rdmap16s27"
  std::string kind;             // "ethernet", "ena" (EC2's ethernet), "efa"
  double bytes_per_second = 0;  // 0 = unknown
  int numa_node = -1;
  std::string pci = {};  // "0000:59:00.0", "" unknown
  friend bool operator==(const Nic&, const Nic&) = default;
};

// What is known of a Neuron device beside its links.
struct NeuronDevice {
  int number = 0;        // N of /dev/neuronN
  std::string pci = {};  // "0000:cc:00.0", "" unknown
  int numa_node = -1;
  std::vector<std::string> nics = {};  // nearest ones, by name; the first is its own where each has one
  friend bool operator==(const NeuronDevice&, const NeuronDevice&) = default;
};

struct Cache {
  int level = 0;
  uint64_t size_bytes = 0;
  int shared_by_cpus = 1;
  friend bool operator==(const Cache&, const Cache&) = default;
};

struct Host {
  std::string id;             // equal ids share memory; from CCOM_HOSTID or boot id and namespaces
  std::string machine;        // boot id: hosts with equal ones (containers, CCOM_HOSTID) share processors; "" unknown
  std::string name;           // for people
  std::string instance_type;  // "trn1.32xlarge" from DMI, "" if unknown
  std::string cpu_model;
  int cpus = 1;  // allowed for this job: affinity and cgroup quota, at least 1
  int numa_nodes = 1;
  uint64_t memory_bytes = 0;
  std::vector<Cache> caches;  // data and unified, of cpu 0
  std::vector<Nic> nics;
  std::optional<Fabric> neuron;   // Neuron devices found on the machine; information, never a restriction
  std::optional<Fabric> imposed;  // CCOM_TOPOLOGY: ranks of this host may use only these links
  std::vector<NeuronDevice> neuron_devices = {};  // by place in `neuron`, whose numbers may be others than the driver's
  std::vector<std::string> notes = {};            // sentences: what discovery had to guess, and what it misses
  friend bool operator==(const Host&, const Host&) = default;
};

struct Place {
  int host = 0;
  int local = 0;         // position among the host's ranks, ascending by rank
  int device = -1;       // in the imposed fabric; -1 without one
  int numa_node = -1;    // that the rank is bound to; -1: several, or unknown
  int cache_group = -1;  // last-level cache that the rank is bound to, named by its lowest CPU; -1 as above
  friend bool operator==(const Place&, const Place&) = default;
};

struct Topology {
  std::vector<Host> hosts;   // in the order of their lowest rank
  std::vector<Place> ranks;  // by rank
  LinkSpeed memory;          // between ranks of a host through shared memory, per pair; see without_shared_memory()
  LinkSpeed network;         // between hosts, per host and direction, where no fabric's uplinks say more
  Costs costs;               // of ranks that are in no imposed fabric

  int nranks() const { return static_cast<int>(ranks.size()); }
  std::vector<Rank> ranks_of(int host) const;  // ascending
  int ranks_on_machine_of(int host) const;     // that compete for its processors
  // May a byte go straight from a to b? False only between devices of an imposed fabric that share no link.
  bool linked(Rank a, Rank b) const;
  friend bool operator==(const Topology&, const Topology&) = default;
};

// A preset by name (trn1.32xlarge, trn2.48xlarge, trn2-ultraserver, inf2.48xlarge, p5.48xlarge, ...), a generic shape
// (single, ring:N, chain:N, torus:RxC, torus:LxRxC, full:N, switch:N), or the path of a JSON file (it has a '/' or ends
// in .json). "+routed" behind it sets Fabric::routed. A fabric of several instances (an UltraServer) counts as one
// host. ConfigError with the names there are.
Result<Fabric> make_fabric(std::string_view name);
std::vector<std::string> preset_names();

// A whole machine that need not exist, by the path of a file with a topology's JSON or by name, hosts joined by '+':
//   trn2.48xlarge          a host of that fabric, every core taken by a rank; trn2.48xlarge/2: two ranks per device
//   host:4                 a host of 4 ranks and 4 CPUs without a fabric; host:4/2: of 2 CPUs
//   host:4@25Gbit          with a network card of that speed
//   640*trn2.48xlarge      so many of them; host:3+2*host:5: hosts of 3, 5 and 5 ranks
// Speeds that nothing says are those of merge().
Result<Topology> make_topology(std::string_view name);
// Whether a name is one of make_topology() alone, and no fabric's.
bool names_cluster(std::string_view name);

// ConfigError, naming the fabric, if the links of an imposed one leave some of its devices apart.
Status check_connected(const Topology& topology);

// What the caller and the environment of the Neuron runtime add to what the machine shows.
struct NeuronHints {
  // The program neuron-ls, run where the driver's files cannot be read. "": where it is installed, under "/" only.
  std::string tool;
  int64_t tool_timeout_ms = 5000;
  int cores_per_logical = 0;  // physical cores that the runtime joins into one: 1 or 2; 0: not said
};
// cores_per_logical from NEURON_LOGICAL_NC_CONFIG or its older name NEURON_RT_VIRTUAL_CORE_SIZE; other values than 1
// and 2 count as none. `environment` gives nullptr for a variable that is not set.
NeuronHints neuron_hints(const std::function<const char*(const char* name)>& environment);

// Reads the machine from `root`: "/" or a recorded tree with sys, proc and, if it was recorded, the output of neuron-ls
// as neuron-ls.json (or .txt). A missing file is no error: the field keeps its default. `host_id` overrides Host::id
// unless empty. Blocks for as long as neuron-ls runs, if it has to.
Result<Host> discover(const std::string& root, std::string_view host_id, const NeuronHints& hints = {});

// Sets Host::imposed, what CCOM_TOPOLOGY asks for: a name as of make_fabric(), or "neuron" for the devices that were
// found here. ConfigError if there are none, or if their links leave some of them apart.
Status impose(Host& host, std::string_view name);

// Where the calling thread may run, by its CPU affinity.
struct Locality {
  std::vector<int> cpus;  // allowed, ascending, each once; empty: unknown
  int cpu_quota = 0;      // of the cgroup, 0: none
  int numa_node = -1;     // as in Place
  int cache_group = -1;
  friend bool operator==(const Locality&, const Locality&) = default;
};
// Under "/" the calling thread's affinity, in a recorded tree that of proc/self/status. Nothing is an error.
Locality discover_locality(const std::string& root);

// Speeds that were measured where a job is to run (ccom-bench --tune); what is not set keeps its default.
struct Calibration {
  std::optional<LinkSpeed> memory;
  std::optional<LinkSpeed> network;
  std::optional<double> post_ns;  // of Costs, as the next one
  std::optional<double> reduce_bytes_per_second;
  std::string measured_on = {};  // for people
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// One rank's contribution; what ranks exchange at start-up.
struct RankView {
  Host host;
  Locality locality = {};
  std::optional<Calibration> calibration = {};  // CCOM_TUNING; the same of all ranks
  friend bool operator==(const RankView&, const RankView&) = default;
};
// All ranks' views, by rank -> the topology that all agree on. Ranks with equal Host::id share a host; the lowest
// rank's view of it wins, but of Neuron devices, of which a container may see some, the view with the most. `cpus` are
// those that any of its ranks may use, within the quota; if a rank's are unknown, the largest Host::cpus seen.
// Speeds are those of the calibration, else defaults. ConfigError if a host has more ranks than its imposed fabric has
// cores, its ranks impose different ones, or calibrations differ.
Result<Topology> merge(const std::vector<RankView>& views);

// Puts measured speeds in the place of defaults.
void calibrate(Topology& topology, const Calibration& measured);

// The same machine for ranks that send messages over sockets inside a host too.
Topology without_shared_memory(Topology topology);

// JSON, one stable form: equal values give equal text. from_json checks types, ranges and that links join existing
// devices.
std::string to_json(const Host& host);
std::string to_json(const Fabric& fabric);
std::string to_json(const Topology& topology);
std::string to_json(const Locality& locality);
std::string to_json(const Calibration& calibration);
Result<Host> host_from_json(std::string_view text);
Result<Locality> locality_from_json(std::string_view text);
Result<Calibration> calibration_from_json(std::string_view text);
// From a file with such a text. ConfigError with the file's name.
Result<Calibration> read_calibration(const std::string& path);
Result<Fabric> fabric_from_json(std::string_view text);
Result<Topology> topology_from_json(std::string_view text);
uint64_t hash_of(const Topology& topology);

// For people: hosts, caches, NICs, devices with neighbours, ranks with places.
std::string to_text(const Topology& topology);
std::string to_text(const Host& host);
std::string to_text(const Fabric& fabric);

}  // namespace ccom
