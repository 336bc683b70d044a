// SPDX-License-Identifier: Apache-2.0
//
// The machine as a value: hosts, their devices and links, and the place of every rank.
//
// Pure except for discover(), which reads a given directory. A Topology can be copied, compared and converted to text
// and JSON, so that bug reports can contain one. Every rank of a communicator has an equal Topology (a hash is compared
// at start-up); from it the planner derives which algorithms are valid and their cost.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/measured_costs.h"
#include "base/memory_costs.h"
#include "base/network_costs.h"
#include "base/status.h"
#include "base/types.h"
#include "topology/learned_ways.h"

namespace ccom {

// The cost of a message of m bytes: latency_ns + m / bytes_per_second, separately per direction.
struct LinkSpeed {
  double latency_ns = 0;
  double bytes_per_second = 0;
  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

// Processor costs of a rank. Model input, like every speed.
struct Costs {
  double post_ns = 0;                  // to start a message; messages start one after another
  double reduce_bytes_per_second = 0;  // bytes read by reductions; 0: as fast as messages arrive
  // Protocols. A message of at least rendezvous_bytes (0: none) asks its receiver and moves once that has come to the
  // receive and answered: two latencies of its way, and rendezvous_ns of the sender's processor, as post_ns. Shorter
  // ones (eager) are copied at both ends.
  double receive_ns = 0;  // to take a message in; one after another, like reductions
  double reduce_ns = 0;   // of a reduction, besides its bytes
  double rendezvous_bytes = 0;
  double rendezvous_ns = 0;
  double copy_bytes_per_second = 0;  // of eager messages; 0: nothing is copied
  bool is_rendezvous(double message_bytes) const { return rendezvous_bytes > 0 && message_bytes >= rendezvous_bytes; }
  friend bool operator==(const Costs&, const Costs&) = default;
};

// A directed link between two devices of a fabric, or between a device and a switch.
struct Link {
  int from = 0;
  int to = 0;
  LinkSpeed speed;
  friend bool operator==(const Link&, const Link&) = default;
};

// A path from some devices to other hosts: the aggregate of the nearest network cards. Separately per direction.
struct Uplink {
  std::vector<int> devices;  // ascending
  LinkSpeed speed;
  double post_ns = 0;  // the cards' time per message, independent of its length
  friend bool operator==(const Uplink&, const Uplink&) = default;
};

// Devices connected by dedicated links such as NeuronLink: a graph of devices 0..devices-1 followed by switches. Cores
// of one device are fully connected.
struct Fabric {
  enum class Shape { Single, Ring, Chain, Torus, Full, Switch, Other };
  std::string name;  // "trn1.32xlarge", "torus:4x4"
  Shape shape = Shape::Single;
  // Torus: {rows, columns} or {layers, rows, columns}, the last varying fastest; Ring, Chain, Full, Switch: {n}.
  std::vector<int> dims;
  int devices = 1;
  int switches = 0;
  int cores_per_device = 1;     // visible (logical) cores; one rank per core
  std::vector<Link> links;      // sorted by (from, to), both directions listed
  LinkSpeed inside_device;      // from one core to others of its device
  bool routed = false;          // devices forward messages: all pairs can communicate
  std::vector<Uplink> uplinks;  // each device in at most one
  Costs costs;

  bool linked(int a, int b) const;  // one device, neighbours, at one switch, or routed
  bool joined(int a, int b) const;  // whether two vertices share a link
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

// Information on a Neuron device apart from its links.
struct NeuronDevice {
  int number = 0;        // N of /dev/neuronN
  std::string pci = {};  // "0000:cc:00.0", "" unknown
  int numa_node = -1;
  std::vector<std::string> nics = {};  // nearest ones, by name; the first is its own if each device has one
  friend bool operator==(const NeuronDevice&, const NeuronDevice&) = default;
};

struct Cache {
  int level = 0;
  uint64_t size_bytes = 0;
  int shared_by_cpus = 1;
  friend bool operator==(const Cache&, const Cache&) = default;
};

// Of a network of two levels: hosts that name the same rack are behind one switch, and share what joins it to others.
// A rack may be a site, far from others.
struct Rack {
  std::string name = {};       // "": none, nothing between this host's cards and the network's core is shared
  double taper = 1;            // bandwidth of the hosts' cards by that of the rack's uplinks, 1 or more
  LinkSpeed uplinks = {0, 0};  // of all together, one way, if they are known: then there is no taper
  bool has_speed() const { return uplinks.bytes_per_second > 0; }
  friend bool operator==(const Rack&, const Rack&) = default;
};

// What joins a rack to others, for one job: a share of the cards of the job's hosts there, or what it is said to be.
struct RackUplinks {
  double cards_bytes_per_second = 0;  // of these hosts together
  LinkSpeed speed;                    // half of the way to another rack is this one's: half of the latency
  double taper() const { return cards_bytes_per_second / speed.bytes_per_second; }
};

struct Host {
  std::string id;             // equal ids share memory; from CCOM_HOSTID or boot id and namespaces
  std::string machine;        // boot id: hosts with equal ones (containers, CCOM_HOSTID) share CPUs; "" unknown
  std::string name;           // for display
  std::string instance_type;  // "trn1.32xlarge" from DMI, "" if unknown
  std::string cpu_model;
  int cpus = 1;  // available to this job: affinity and cgroup quota, at least 1
  int numa_nodes = 1;
  uint64_t memory_bytes = 0;
  std::vector<Cache> caches;  // data and unified, of cpu 0
  std::vector<Nic> nics;
  std::optional<Fabric> neuron;                   // Neuron devices found on the machine; advisory
  std::optional<Fabric> imposed;                  // CCOM_TOPOLOGY: ranks of this host may use only these links
  std::vector<NeuronDevice> neuron_devices = {};  // by place in `neuron`; numbers may differ from the driver's
  std::vector<std::string> notes = {};            // what discovery assumed, and what is missing
  Rack rack = {};
  size_t cache_bytes(int level) const;  // 0: not known
  friend bool operator==(const Host&, const Host&) = default;
};

struct Place {
  int host = 0;
  int local = 0;         // local rank: position among the host's ranks, ascending by rank
  int device = -1;       // in the imposed fabric; -1 without one
  int numa_node = -1;    // of the rank's binding; -1: several, or unknown
  int cache_group = -1;  // last-level cache of the rank's binding, identified by its lowest CPU; -1 as above
  friend bool operator==(const Place&, const Place&) = default;
};

struct Topology {
  std::vector<Host> hosts;   // in the order of their lowest rank
  std::vector<Place> ranks;  // by rank
  LinkSpeed memory;          // between ranks of a host through shared memory, per pair; see without_shared_memory()
  LinkSpeed network;         // between hosts, per host and direction, unless a fabric has uplinks
  Costs costs;               // of ranks without an imposed fabric
  MemoryCosts memory_costs = {};    // of their work in memory that they share
  NetworkCosts network_costs = {};  // of messages between hosts

  int nranks() const { return static_cast<int>(ranks.size()); }
  std::vector<Rank> ranks_of(int host) const;  // ascending
  int ranks_on_machine_of(int host) const;     // that compete for its CPUs
  // Whether a message can go directly from a to b. False only between devices of an imposed fabric without a link.
  bool linked(Rank a, Rank b) const;
  // The number of each host's rack, in the order of their first hosts; -1: none.
  std::vector<int> rack_numbers() const;
  std::vector<RackUplinks> rack_uplinks() const;  // by these numbers
  double latency_between_racks_ns() const;        // one way, of those two that are farthest apart
  // What is on its way between these two while their uplinks are busy; 0 where no speeds of racks are known.
  double bytes_between_racks() const;
  // All that a host's cards send, or receive, at a time.
  double host_bytes_per_second(int host) const;
  friend bool operator==(const Topology&, const Topology&) = default;
};

// A preset by name (trn1.32xlarge, trn2.48xlarge, trn2-ultraserver, inf2.48xlarge, p5.48xlarge, ...), a generic shape
// (single, ring:N, chain:N, torus:RxC, torus:LxRxC, full:N, switch:N), or the path of a JSON file (contains a '/' or
// ends in .json). The suffix "+routed" sets Fabric::routed. A fabric of several instances (an UltraServer) counts as
// one host. ConfigError listing the known names.
Result<Fabric> make_fabric(std::string_view name);
std::vector<std::string> preset_names();

// A hypothetical machine, as the path of a file with a topology's JSON or by name, with hosts joined by '+':
//   trn2.48xlarge          a host of that fabric with a rank on every core; trn2.48xlarge/2: two ranks per device
//   host:4                 a host of 4 ranks and 4 CPUs without a fabric; host:4/2: with 2 CPUs
//   host:4@25Gbit          with a network card of that speed
//   640*trn2.48xlarge      as many of them; host:3+2*host:5: hosts of 3, 5 and 5 ranks
//   64*host:1+racks:16/4   racks of 16 hosts, in order, whose uplinks carry a quarter of what the hosts' cards do;
//                          racks:12,20/4: racks of 12 and 20 hosts in turn
//   4*host:2+racks:2@200Mbit,25ms   sites of two hosts: their uplinks carry 200 Mbit/s each way, and take 25 ms one way
// Unspecified speeds are those of merge().
Result<Topology> make_topology(std::string_view name);
// Whether a name is one of make_topology() alone, and no fabric's.
bool names_cluster(std::string_view name);

// ConfigError naming the fabric if an imposed one is not connected.
Status check_connected(const Topology& topology);

// Settings of the caller and of the Neuron runtime that complement discovery.
struct NeuronHints {
  // Path of neuron-ls, run if the driver's files cannot be read. "": the installed one, under "/" only.
  std::string tool;
  int64_t tool_timeout_ms = 5000;
  int cores_per_logical = 0;  // physical cores per logical core of the runtime: 1 or 2; 0: unknown
};
// cores_per_logical from NEURON_LOGICAL_NC_CONFIG or its older name NEURON_RT_VIRTUAL_CORE_SIZE; values other than 1
// and 2 are ignored. `environment` returns nullptr for a variable that is not set.
NeuronHints neuron_hints(const std::function<const char*(const char* name)>& environment);

// Discovers the machine below `root`: "/" or a recorded tree with sys, proc and optionally the output of neuron-ls as
// neuron-ls.json (or .txt). A missing file is not an error: the field keeps its default. `host_id` overrides Host::id
// unless empty. Blocks while neuron-ls runs, if it is needed.
Result<Host> discover(const std::string& root, std::string_view host_id, const NeuronHints& hints = {});

// Sets Host::imposed from CCOM_TOPOLOGY: a name as of make_fabric(), "neuron" for the discovered devices, or hosts with
// fabrics that this one imitates, as of make_topology(): then a switch with that name and as many devices as they have
// ranks. ConfigError if there are no devices, or if they are not connected.
Status impose(Host& host, std::string_view name);

// CCOM_HOST_RACK: "NAME", "NAME/TAPER" or "NAME@SPEED,LATENCY" (north@200Mbit,25ms). ConfigError for an empty name, or
// where what follows is none of these.
Result<Rack> rack_from(std::string_view text);

// The CPUs on which the calling thread may run.
struct Locality {
  std::vector<int> cpus;  // allowed, ascending, unique; empty: unknown
  int cpu_quota = 0;      // of the cgroup, 0: none
  int numa_node = -1;     // as in Place
  int cache_group = -1;
  friend bool operator==(const Locality&, const Locality&) = default;
};
// Under "/" the calling thread's affinity, in a recorded tree that of proc/self/status. Never fails.
Locality discover_locality(const std::string& root);

// Speeds measured on the job's machine (ccom-bench --tune); unset values keep their default.
struct Calibration {
  std::optional<LinkSpeed> memory = {};
  std::optional<LinkSpeed> network = {};
  std::optional<double> post_ns = {};  // of Costs, like the next one
  std::optional<double> reduce_bytes_per_second = {};
  std::optional<MemoryCosts> memory_costs = {};
  std::optional<NetworkCosts> network_costs = {};
  std::string measured_on = {};  // for display
  LearnedWays ways = {};         // of calls; not exchanged by ranks, and in no topology
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// One rank's contribution, exchanged at start-up.
struct RankView {
  Host host;
  Locality locality = {};
  std::optional<Calibration> calibration = {};  // CCOM_TUNING; equal on all ranks
  friend bool operator==(const RankView&, const RankView&) = default;
};
// Merges all ranks' views, by rank, into the topology that all agree on. Ranks with equal Host::id share a host,
// described by its lowest rank's view, except for Neuron devices, of which a container may see only some: there the
// view with the most is used. `cpus` are those that any of its ranks may use, within the quota; if a rank's are
// unknown, the largest Host::cpus. Speeds are those of the calibration, else defaults. ConfigError if a host has more
// ranks than its imposed fabric has cores, if its ranks impose different ones, or if calibrations differ.
Result<Topology> merge(const std::vector<RankView>& views);
// The same of parts that belong to others: what many ranks see alike is there once.
struct BorrowedView {
  const Host* host = nullptr;
  const Locality* locality = nullptr;
  const Calibration* calibration = nullptr;  // null: none
};
Result<Topology> merge_borrowed(std::span<const BorrowedView> views);

// Replaces default speeds by measured ones.
void calibrate(Topology& topology, const Calibration& measured);

// The same machine if ranks communicate by sockets within a host too.
Topology without_shared_memory(Topology topology);

// The ranks `members` alone, renumbered in this order, with what they have of the machine: all speeds, the devices that
// they occupy, and of the CPUs of a host their share.
Topology part_of(const Topology& topology, std::span<const Rank> members);

// JSON in one stable form: equal values give equal text. from_json checks types, ranges, and that links connect
// existing devices.
std::string to_json(const Host& host);
std::string to_json(const Fabric& fabric);
std::string to_json(const Topology& topology);
std::string to_json(const Locality& locality);
std::string to_json(const Calibration& calibration);
std::string to_json(const MeasuredCosts& costs);
Result<Host> host_from_json(std::string_view text);
Result<Locality> locality_from_json(std::string_view text);
Result<Calibration> calibration_from_json(std::string_view text);
Result<MeasuredCosts> measured_costs_from_json(std::string_view text);
// Reads a file with such a text. ConfigError with the file's name.
Result<Calibration> read_calibration(const std::string& path);
Result<Fabric> fabric_from_json(std::string_view text);
Result<Topology> topology_from_json(std::string_view text);
uint64_t hash_of(const Topology& topology);

}  // namespace ccom
