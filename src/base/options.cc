// SPDX-License-Identifier: Apache-2.0
#include "base/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace ccom {
namespace {

#ifdef NDEBUG
constexpr const char* kVerifies = "0";
#else
constexpr const char* kVerifies = "1";
#endif

constexpr std::array kTable = {
    OptionInfo{"CCOM_ALGO", "",
               "Algorithm to use where it is valid: a name (ring), or collective:name pairs "
               "(allreduce:ring,broadcast:tree). ccom-bench --explain lists the names."},
    OptionInfo{"CCOM_ARENA_BYTES", "68719476736",
               "Address space reserved for memory that other ranks of the host can map (ccomMemAlloc, "
               "ccomCommRegister). Memory is used only for what is allocated. 0: none; calls on such buffers "
               "copy."},
    OptionInfo{"CCOM_CALL_SITES", "1",
               "1: errors and tools say from which line of the program a rank made its call; 0: they do not."},
    OptionInfo{
        "CCOM_CONNECT", "auto",
        "When tcp connects a pair of ranks: start, at the start; use, when a call first needs the pair, so that a "
        "rank has the connections that its calls use. auto: start up to 32 ranks, use above; the same on all ranks. "
        "Communicators with messages connect those at the start."},
    OptionInfo{"CCOM_CRC", "1", "1: data sent by ofi, and by tcp between hosts, is protected by CRC32C; 0: it is not."},
    OptionInfo{"CCOM_CROSSING", "auto",
               "Which ranks of a host communicate with other hosts in hierarchical collectives on vectors: one "
               "(a leader), all (each its share), or auto: a leader for short calls and where it can saturate "
               "the network."},
    OptionInfo{"CCOM_DEAD_MS", "3000",
               "Heartbeat timeout: a host that is silent for this many milliseconds is declared dead."},
    OptionInfo{"CCOM_DETERMINISM", "shape",
               "What the bits of sums of floating types depend on besides the inputs: shape (which ranks share a host, "
               "the size, the algorithm), or full: nothing, at a cost between hosts; the same on all ranks."},
    OptionInfo{"CCOM_EMULATE_SCALE", "",
               "Emulates the link speeds of CCOM_TOPOLOGY between the ranks of one host: bandwidths are "
               "multiplied and latencies divided by this factor, above 0 and up to 1 (1e-3); the same on all "
               "ranks. Unset: no emulation."},
    OptionInfo{"CCOM_HOSTID", "",
               "Overrides the identity of the host. Ranks with different values do not use shared memory between "
               "them, which splits one machine into several hosts."},
    OptionInfo{"CCOM_HOST_RACK", "",
               "The rack that the host is in, and by how much its uplinks carry less than the cards of the job's hosts "
               "there together, or what they carry and how far they lead one way: NAME, NAME/TAPER (row3/4) or "
               "NAME@SPEED,LATENCY (north@200Mbit,25ms). Ranks of one host say the same. Unset: nothing between "
               "hosts is shared but their own cards (docs/topology.md)."},
    OptionInfo{"CCOM_INIT_TIMEOUT_MS", "60000", "Timeout of communicator start-up."},
    OptionInfo{"CCOM_LOCAL_NRANKS", "",
               "Ranks per host, for launchers that only number hosts (Kubernetes, Kubeflow Trainer, SageMaker); "
               "1 if unset."},
    OptionInfo{"CCOM_LOCAL_RANK", "", "Local rank of this process on its host, from 0; see CCOM_LOCAL_NRANKS."},
    OptionInfo{
        "CCOM_LOG", "warn",
        "Level of lines written to stderr without a log callback: error, warn, info or debug; after commas those of "
        "rooms of the library (docs/observing.md): warn,bootstrap=debug,tcp=info."},
    OptionInfo{"CCOM_LOG_FORMAT", "text",
               "Form of these lines: text, or json: each is a JSON object (docs/observing.md)."},
    OptionInfo{"CCOM_MAX_MEMORY", "268435456",
               "Bytes that the rings, and that the scratch, of a communicator and rank may take; messages up to a "
               "quarter more, staging an eighth. Sockets and libfabric have their own."},
    OptionInfo{"CCOM_MESSAGES", "0",
               "1: communicators support point-to-point messages (ccomMessageSend); the same on all ranks."},
    OptionInfo{"CCOM_METRICS", "",
               "OpenMetrics text of this process's ranks: a file that is replaced every two seconds, with %r for the "
               "rank, or a loopback port, as tcp://127.0.0.1:9400 for the host's first rank, 9401 for the next one."},
    OptionInfo{"CCOM_NEURON_LS", "",
               "Path of neuron-ls, which is run where the Neuron driver's files cannot be read. Unset: "
               "/opt/aws/neuron/bin/neuron-ls, for this machine only (CCOM_SYSFS_ROOT)."},
    OptionInfo{"CCOM_NRANKS", "",
               "Number of ranks, for tools started by hand, by an unknown launcher, or in the pods of a "
               "Kubernetes job."},
    OptionInfo{"CCOM_OFI_PROVIDER", "",
               "libfabric provider of the ofi transport. Unset: efa if all ranks have it, else tcp;ofi_rxm."},
    OptionInfo{"CCOM_OFI_RAILS", "",
               "What the ofi transport binds to, up to 16 rails that share large messages: a list of addresses, "
               "or of domains for efa (rdmap0s6-rdm). Unset: the address of CCOM_SOCKET_IFNAME; for efa a rank's "
               "share of the domains."},
    OptionInfo{"CCOM_PLAN", "",
               "Plan file with programs to use for collectives and sizes (docs/plans.md); each is proved before it "
               "runs; the same contents on all ranks."},
    OptionInfo{"CCOM_PORT_RANGE", "",
               "Listening ports, LOW-HIGH, of tcp, control connections and rendezvous servers without a given "
               "port. Unset: any."},
    OptionInfo{"CCOM_RANK", "", "Rank of this process, see CCOM_NRANKS."},
    OptionInfo{
        "CCOM_RECORD", "",
        "Folder into which every process records its last calls, in a file of its own that outlives it however it "
        "ends; for ccom-trace and ccom-sim replay. The folder is made if it is missing, for this user alone. A file "
        "that cannot be made is logged, and nothing is recorded."},
    OptionInfo{"CCOM_RECORD_BYTES", "4194304",
               "Size of each of these files, 262144 or more: 4 MiB hold the last 56000 calls."},
    OptionInfo{"CCOM_REPORT", "0",
               "1: when a communicator ends, its rank 0 writes to stderr which ranks of its host made the others wait, "
               "how long and where (docs/observing.md); 0: it does not."},
    OptionInfo{"CCOM_ROUNDING", "nearest",
               "How sums of 16- and 8-bit floating types are rounded: nearest (ties to even; between hosts several "
               "times), once (to nearest, once wherever the ranks are), or stochastic (once, at random, unbiased)."},
    OptionInfo{"CCOM_ROUNDING_SEED", "0", "Seed of stochastic rounding, 0 or more; the same on all ranks."},
    OptionInfo{"CCOM_SECRET", "",
               "Job secret for rendezvous addresses given as host:port: 16 bytes or more, 8 of them different. Prefer "
               "CCOM_SECRET_FILE: the environment of a process is easier to read than a file of mode 0600."},
    OptionInfo{"CCOM_SECRET_FILE", "",
               "File with the job secret; must be a regular file owned by the user, of mode 0600, and not a "
               "symbolic link."},
    OptionInfo{"CCOM_SOCKET_IFNAME", "",
               "Interfaces for bootstrap, control connections and tcp: a list of exact names (eth0,eth1), or ^ "
               "followed by a list of names to exclude (^docker0,lo). tcp uses all interfaces of a list, the "
               "others the first. Unset: the first of NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and "
               "SM_NETWORK_INTERFACE_NAME that is set."},
    OptionInfo{"CCOM_SYSFS_ROOT", "/", "Directory in which topology discovery looks for sys, proc and dev."},
    OptionInfo{
        "CCOM_TCP_RAILS", "",
        "Interfaces that tcp uses for data, a list of exact names (eth1,eth2); all ranks list equally many. With "
        "several, the loss of one is no error (docs/tcp.md). Unset: those of CCOM_SOCKET_IFNAME."},
    OptionInfo{"CCOM_TCP_STREAMS", "auto",
               "TCP connections per channel between two ranks, 1 to 16; at least one per interface. auto: 8 "
               "between hosts on EC2, otherwise 1."},
    OptionInfo{"CCOM_TIMEOUT_MS", "300000", "Timeout of every operation."},
    OptionInfo{
        "CCOM_TLS", "0",
        "1: all that hosts send each other, data and control messages, is encrypted and authenticated by TLS 1.3; the "
        "same on all ranks. ofi is refused."},
    OptionInfo{
        "CCOM_TOPOLOGY", "",
        "Topology imposed on the ranks of each host: a preset (trn1.32xlarge), ring:N, chain:N, "
        "torus:RxC, torus:LxRxC, full:N, switch:N, a JSON file, or neuron: the devices of this machine; "
        "or several hosts that one imitates (2*torus:2x2, docs/emulation.md). Ranks are placed on its cores in order."},
    OptionInfo{"CCOM_TRANSPORT", "",
               "Transports to use, in order of preference: shm,tcp,ofi. A transport that is listed is required. "
               "Unset: shm within a host; between hosts ofi if all ranks have EFA, else tcp."},
    OptionInfo{
        "CCOM_TUNING", "auto",
        "auto: calls through shared memory find out which of several ways to compute the same bits is the "
        "fastest; off: each takes the one that is expected to be the fastest by what was measured at the start; or a "
        "file with measured speeds of memory, network and reductions (written by ccom-bench --tune), by which "
        "algorithms are chosen, with the ways that calls begin with (CCOM_TUNING_SAVE), or with both, and then as "
        "auto. The same on all ranks."},
    OptionInfo{
        "CCOM_TUNING_SAVE", "auto",
        "Where which ways calls through shared memory have found to be the fastest is kept when a communicator is "
        "finalized or destroyed. auto: in a file for this processor, kernel and version in the user's cache "
        "($XDG_CACHE_HOME/ccom/ways, else ~/.cache/ccom/ways), by the first rank of each host; the next communicators "
        "of this user begin with it; only while CCOM_TUNING is auto. off: nowhere. Or a file for CCOM_TUNING, by the "
        "first rank alone: what else is in the file stays, and a file that cannot be written is logged."},
    OptionInfo{"CCOM_URL", "", "Rendezvous URL for tools: file:///path or tcp://host:port. See ccomUniqueIdFromUrl."},
    OptionInfo{"CCOM_VERIFY", kVerifies,
               "1: every program is proved for all ranks before it first runs, and a wrong one is refused before a "
               "byte moves; takes some milliseconds for each kind and size class of call. Default 0; 1 in debug "
               "builds."},
    OptionInfo{
        "CCOM_WARN_MS", "30000",
        "Waiting time in milliseconds after which a rank logs a warning that names the ranks that have not come; "
        "again after twice that time, and so on. At the start after 5 s, or this if it is shorter. 0: never."},
    OptionInfo{"CCOM_WIRE", "off",
               "As what sums of hosts cross between hosts in allreduces of float32 and bfloat16 of more than 16 KiB: "
               "off (in the call's type), or fp8 or int8: as blocks of 64 elements of 8 bits with a scale, rounded "
               "twice to that; the same on all ranks."},
    OptionInfo{"CCOM_WITNESS", "0",
               "1: compares the results of allreduces, allgathers and broadcasts between all ranks; a rank whose bits "
               "differ from those of most is named by the next call (CCOM-E069). Reads up to 2 KiB of each result. The "
               "same on all ranks."},
};
static_assert(std::ranges::is_sorted(kTable, {}, [](const OptionInfo& info) { return std::string_view(info.key); }));

const OptionInfo& find(std::string_view key) {
  const auto found = std::ranges::find(kTable, key, [](const OptionInfo& info) { return std::string_view(info.key); });
  CCOM_ASSERT(found != kTable.end());
  return *found;
}

}  // namespace

std::span<const OptionInfo> option_table() { return kTable; }

std::string option(std::string_view key) {
  const OptionInfo& info = find(key);
  const char* value = std::getenv(info.key);
  return value != nullptr && *value != '\0' ? value : info.default_value;
}

bool option_is_set(std::string_view key) {
  const char* value = std::getenv(find(key).key);
  return value != nullptr && *value != '\0';
}

Result<int64_t> integer_option(std::string_view key, int64_t low, int64_t high) {
  const std::string text = option(key);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return error(ErrorKey::VariableValue, "%s=%s: expected an integer from %lld to %lld", std::string(key).c_str(),
                 text.c_str(), static_cast<long long>(low), static_cast<long long>(high));
  }
  return value;
}

}  // namespace ccom
