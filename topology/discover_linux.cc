// SPDX-License-Identifier: Apache-2.0
//
// Discovery: Linux's sys and proc below a root directory -> Host. All fields are independent; those that cannot be read
// keep their default. The calling process (CPU affinity, namespaces) is considered only under "/".
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "base/text.h"
#include "topology/affinity.h"
#include "topology/cpus.h"
#include "topology/discover_neuron.h"
#include "topology/pci.h"
#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr size_t kLabelBytes = 256;

// A one-line name; "" if the file does not exist.
std::string label(const SysfsRoot& tree, const std::string& path) {
  const auto text = tree.text(path);
  if (!text) return {};
  std::string line = text->substr(0, std::min(text->find_first_of("\n\t"), kLabelBytes));
  return std::string(trimmed(line));
}

// The value of the first line "key : value".
std::string value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon)) != key) continue;
    std::string value(trimmed(line.substr(colon + 1)).substr(0, kLabelBytes));
    std::ranges::replace(value, '\t', ' ');
    return value;
  }
  return {};
}

std::string read_cpu_model(const SysfsRoot& tree) {
  const std::string text = tree.text("proc/cpuinfo").value_or("");
  if (std::string model = value_of(text, "model name"); !model.empty()) return model;
  const std::string implementer = value_of(text, "CPU implementer");  // Arm has no model name there
  if (implementer.empty()) return {};
  return "arm implementer " + implementer + " part " + value_of(text, "CPU part");
}

int count_numa_nodes(const SysfsRoot& tree) {
  const auto names = tree.list("sys/devices/system/node");
  const auto is_node = [](const std::string& name) { return numbered(name, "node").has_value(); };
  return std::max(1, static_cast<int>(std::ranges::count_if(names, is_node)));
}

uint64_t read_memory(const SysfsRoot& tree) {
  const std::string total = value_of(tree.text("proc/meminfo").value_or(""), "MemTotal");  // "527988224 kB"
  const auto kib = integer_from(std::string_view(total).substr(0, total.find(' ')));
  if (!kib || *kib < 0 || *kib > (int64_t{1} << 50)) return 0;
  return static_cast<uint64_t>(*kib) << 10;
}

// "48K", "2M" -> bytes; 0 if malformed.
uint64_t parse_size(std::string_view text) {
  if (text.empty()) return 0;
  const size_t at = std::string_view("KMG").find(text.back());
  if (at != std::string_view::npos) text.remove_suffix(1);
  const auto number = integer_from(text);
  if (!number || *number < 0 || *number > (int64_t{1} << 20)) return 0;
  return static_cast<uint64_t>(*number) << (at == std::string_view::npos ? 0 : 10 * (at + 1));
}

std::vector<Cache> read_caches(const SysfsRoot& tree) {
  std::vector<Cache> caches;
  const std::string folder = "sys/devices/system/cpu/cpu0/cache";
  for (const std::string& name : tree.list(folder)) {
    const std::string at = std::string(folder).append("/").append(name);
    const std::string type = label(tree, at + "/type");
    const int64_t level = tree.integer(at + "/level").value_or(0);
    if (!numbered(name, "index") || (type != "Data" && type != "Unified") || level < 1 || level > 16) continue;
    caches.push_back({.level = static_cast<int>(level),
                      .size_bytes = parse_size(label(tree, at + "/size")),
                      .shared_by_cpus = std::max(1, count_cpu_list(label(tree, at + "/shared_cpu_list")))});
  }
  std::ranges::sort(caches, {}, [](const Cache& cache) { return std::tuple(cache.level, cache.size_bytes); });
  return caches;
}

int numa_node_of(const SysfsRoot& tree, const std::string& device) {
  const int64_t node = tree.integer(device + "/numa_node").value_or(-1);
  return node >= 0 && node < (1 << 20) ? static_cast<int>(node) : -1;
}

// The last component of the link target is its address.
std::string pci_of(const SysfsRoot& tree, const std::string& device) {
  const std::string target = tree.link_target(device).value_or("");
  return normalised_pci(std::string_view(target).substr(target.rfind('/') + 1));
}

constexpr char kAmazon[] = "0x1d0f";  // PCI vendor id

// Interfaces with a device: excludes lo, bridges, veth pairs etc.
void read_ethernet(const SysfsRoot& tree, std::vector<Nic>& nics) {
  constexpr int64_t kEthernet = 1;           // ARPHRD_ETHER
  constexpr int64_t kMostMbits = 100000000;  // larger values are invalid
  for (const std::string& name : tree.list("sys/class/net")) {
    const std::string folder = "sys/class/net/" + name;
    if (!tree.exists(folder + "/device") || tree.integer(folder + "/type").value_or(kEthernet) != kEthernet) continue;
    const int64_t mbits = tree.integer(folder + "/speed").value_or(-1);  // -1 or no file: unknown
    nics.push_back({.name = name.substr(0, kLabelBytes),
                    .kind = label(tree, folder + "/device/vendor") == kAmazon ? "ena" : "ethernet",
                    .bytes_per_second = mbits > 0 && mbits <= kMostMbits ? static_cast<double>(mbits) * 1e6 / 8 : 0,
                    .numa_node = numa_node_of(tree, folder + "/device"),
                    .pci = pci_of(tree, folder + "/device")});
  }
}

bool is_efa(const SysfsRoot& tree, const std::string& device) {
  if (const auto driver = tree.link_target(device + "/driver")) return driver->ends_with("/efa") || *driver == "efa";
  return label(tree, device + "/vendor") == kAmazon;  // its other devices are not in this class
}

void read_efa(const SysfsRoot& tree, std::vector<Nic>& nics) {
  for (const std::string& name : tree.list("sys/class/infiniband")) {
    const std::string folder = "sys/class/infiniband/" + name;
    if (!is_efa(tree, folder + "/device")) continue;
    const std::string rate = label(tree, folder + "/ports/1/rate");  // "100 Gb/sec (4X EDR)"
    std::string_view text = rate;
    const double gbits = take_number(text).value_or(0);
    nics.push_back({.name = name.substr(0, kLabelBytes),
                    .kind = "efa",
                    .bytes_per_second = std::isfinite(gbits) && gbits > 0 && gbits < 1e5 ? gbits * 1e9 / 8 : 0,
                    .numa_node = numa_node_of(tree, folder + "/device"),
                    .pci = pci_of(tree, folder + "/device")});
  }
}

// EC2 stores the instance type as the product name; other vendors store anything there.
std::string read_instance_type(const SysfsRoot& tree) {
  const std::string folder = "sys/devices/virtual/dmi/id";
  if (label(tree, folder + "/sys_vendor").find("Amazon EC2") == std::string::npos) return {};
  return label(tree, folder + "/product_name");
}

std::string read_name(const SysfsRoot& tree) {
  std::string name = label(tree, "proc/sys/kernel/hostname");
  if (!name.empty() || !tree.is_live()) return name;
  char text[256] = "";
  return gethostname(text, sizeof text - 1) == 0 ? text : "";
}

// Equal for processes that can exchange file descriptors through a socket in the file system and share futexes.
// Containers of one machine have the same boot id, but different mount and IPC namespaces. Virtual machines have
// different boot ids.
std::string read_id(const SysfsRoot& tree, const std::string& name) {
  std::string id = label(tree, "proc/sys/kernel/random/boot_id");
  if (id.empty()) id = "host " + (name.empty() ? "without a name" : name);
  if (!tree.is_live()) return id;
  for (const char* space : {"mnt", "ipc"}) {
    id += " " + tree.link_target(std::string("proc/self/ns/") + space).value_or(std::string(space) + ":unknown");
  }
  return id;
}

Status check_host_id(std::string_view host_id) {
  constexpr size_t kMaxBytes = 256;
  const bool is_plain = std::ranges::all_of(host_id, [](char c) { return c >= ' ' && c <= '~'; });
  if (is_plain && host_id.size() <= kMaxBytes) return Status::ok();
  return error(ErrorKey::VariableValue, "host id: must be at most %zu printable ASCII characters", kMaxBytes)
      .with_cure("Use a short name for CCOM_HOSTID.");
}

}  // namespace

Result<Host> discover(const std::string& root, std::string_view host_id, const NeuronHints& hints) {
  CCOM_TRY(check_host_id(host_id));
  struct stat info {};
  if (stat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return error(ErrorKey::VariableValue, "discover the machine under \"%s\": not a folder", root.c_str());
  }
  const SysfsRoot tree(root);
  Host host;
  host.name = read_name(tree);
  host.id = host_id.empty() ? read_id(tree, host.name) : std::string(host_id);
  if (tree.is_live()) host.machine = label(tree, "proc/sys/kernel/random/boot_id");
  host.instance_type = read_instance_type(tree);
  host.cpu_model = read_cpu_model(tree);
  host.cpus = count_allowed_cpus(tree);
  host.numa_nodes = count_numa_nodes(tree);
  host.memory_bytes = read_memory(tree);
  host.caches = read_caches(tree);
  read_ethernet(tree, host.nics);
  read_efa(tree, host.nics);
  if (auto found = discover_neuron(tree, host.instance_type, hints)) {
    host.instance_type = std::move(found->instance_type);
    host.notes = std::move(found->notes);
    host.neuron_devices = std::move(found->devices);
    host.neuron = std::move(found->fabric);
    find_nearest_nics(tree, found->own_numbers, host);
  }
  return host;
}

}  // namespace ccom
