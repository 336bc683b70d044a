// SPDX-License-Identifier: Apache-2.0
//
// Selects a provider and evaluates its requirements.
#include "transports/ofi/fabric.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "transports/ofi/factory.h"

namespace ccom::ofi {
namespace {

constexpr uint32_t kApiVersion = FI_VERSION(1, 17);
constexpr int kOfferedMemoryModes = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

bool is_efa(const std::string& provider) { return provider.starts_with("efa"); }
// All other providers are bound to an address; shm names its endpoints by process.
bool takes_address(const std::string& provider) { return !is_efa(provider) && provider != "shm"; }

// Before the first fi_getinfo(), which reads them, and only where the user has said nothing.
// - efa: its shared-memory path duplicates our shm transport and would load a provider that installs signal handlers.
// - efa: fork() after initialisation aborts the process unless fork support was requested, and its huge pages do not
//   survive a fork.
// - tcp: up to 9000 bytes that a full socket did not take are kept and called sent. Only a later poll sends them, and a
//   rank whose sends are complete may wait for its node-mates, or compute, while a peer waits for those bytes.
// - tcp: rxm fills pools of 16 KiB buffers for 4,096 messages of each kind, 340 MB in a process; ccom has no more than
//   tens under way (docs/ofi.md). 1,024 is the most that libfabric 1.17's tcp takes.
void set_provider_variables(const std::string& provider) {
  if (is_efa(provider)) {
    setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 0);
    setenv("FI_EFA_FORK_SAFE", "1", 0);
    setenv("FI_EFA_USE_HUGE_PAGE", "0", 0);
  } else if (provider.starts_with("tcp")) {
    setenv("FI_TCP_STAGING_SBUF_SIZE", "0", 0);
    setenv("FI_OFI_RXM_MSG_RX_SIZE", "256", 0);
    setenv("FI_OFI_RXM_MSG_TX_SIZE", "256", 0);
  }
}

bool is_ip_address(const std::string& text) {
  in6_addr address;
  return inet_pton(AF_INET, text.c_str(), &address) == 1 || inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

bool is_wildcard(const std::string& text) {
  in6_addr v6;
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

// Ordering, progress mode and overrun behaviour do not matter: nothing here relies on them.
Result<Info> make_hints(const std::string& provider, Purpose purpose) {
  Info hints(fi_allocinfo());
  if (hints == nullptr) {
    return error(Code::NotSupported, "libfabric.so.1 cannot be loaded").with_cure("install libfabric1, or use tcp");
  }
  hints->caps = purpose != Purpose::Messages ? FI_MSG | FI_RMA : FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = kOfferedMemoryModes;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
  hints->fabric_attr->prov_name = strdup(provider.c_str());  // fi_freeinfo() frees it
  return hints;
}

Result<Info> find_info(const std::string& provider, const std::string& bind_address, Purpose purpose) {
  if (is_wildcard(bind_address)) {
    return error(Code::InvalidArgument, "libfabric endpoint: %s would listen on all interfaces", bind_address.c_str());
  }
  const bool is_ip = takes_address(provider) && is_ip_address(bind_address);
  if (!is_ip && takes_address(provider)) {
    return error(Code::InvalidArgument, "libfabric endpoint: \"%s\" is not a valid bind address", bind_address.c_str());
  }
  CCOM_TRY_ASSIGN(Info hints, make_hints(provider, purpose));
  if (is_efa(provider) && !bind_address.empty()) hints->domain_attr->name = strdup(bind_address.c_str());
  fi_info* found = nullptr;
  const int rc = fi_getinfo(kApiVersion, is_ip ? bind_address.c_str() : nullptr, nullptr, is_ip ? FI_SOURCE : 0,
                            hints.get(), &found);
  if (rc == 0) return Info(found);
  return error(Code::NotSupported, "libfabric provider \"%s\" at \"%s\": %s", provider.c_str(), bind_address.c_str(),
               fi_strerror(-rc))
      .with_cure("Compare with the output of fi_info -t FI_EP_RDM; CCOM_OFI_PROVIDER selects the provider.");
}

}  // namespace

bool has_efa_device(const std::string& sysfs_root) {
  const std::string devices = sysfs_root + "/sys/class/infiniband";
  bool is_there = false;
  for_each_entry(devices, [&](const std::string& name) {
    std::error_code ignored;
    is_there |= std::filesystem::read_symlink(devices + "/" + name + "/device/driver", ignored).filename() == "efa";
  });
  return is_there;
}

std::vector<std::string> list_domains(const std::string& provider) {
  set_provider_variables(provider);
  std::vector<std::string> domains;
  const auto hints = make_hints(provider, Purpose::Messages);
  fi_info* found = nullptr;
  if (!hints || fi_getinfo(kApiVersion, nullptr, nullptr, 0, hints->get(), &found) != 0) return domains;
  const Info all(found);
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    const std::string name = info->domain_attr->name != nullptr ? info->domain_attr->name : "";
    if (std::ranges::find(domains, name) == domains.end()) domains.push_back(name);
  }
  return domains;
}

void FidClose::operator()(fid* object) const {
  if (const int rc = fi_close(object); rc != 0) log(LogLevel::Warn, "libfabric: close: %s", fi_strerror(-rc));
}

Result<MemoryRules> memory_rules(int mr_mode) {
  if ((mr_mode & FI_MR_RAW) != 0) {
    return error(Code::NotSupported, "libfabric provider requires raw memory keys (FI_MR_RAW)");
  }
  if (const int unknown = mr_mode & ~kOfferedMemoryModes; unknown != 0) {
    return error(Code::NotSupported, "libfabric provider requires unsupported memory modes 0x%x", unknown);
  }
  return MemoryRules{.register_buffers = (mr_mode & FI_MR_LOCAL) != 0,
                     .choose_keys = (mr_mode & FI_MR_PROV_KEY) == 0,
                     .bind_to_endpoint = (mr_mode & FI_MR_ENDPOINT) != 0,
                     .back_with_pages = (mr_mode & FI_MR_ALLOCATED) != 0,
                     .has_virtual_addresses = (mr_mode & FI_MR_VIRT_ADDR) != 0};
}

Result<std::unique_ptr<Endpoint>> open_fabric(const std::string& provider, const std::string& bind_address,
                                              Purpose purpose) {
  set_provider_variables(provider);
  CCOM_TRY_ASSIGN(Info info, find_info(provider, bind_address, purpose));
  CCOM_TRY_ASSIGN(const MemoryRules rules, memory_rules(info->domain_attr->mr_mode));
  if (purpose != Purpose::Messages && (info->domain_attr->cq_data_size < 4 || info->domain_attr->mr_key_size > 8)) {
    return error(Code::NotSupported,
                 "libfabric provider %s: writes do not support 4 bytes of data, or its keys have %zu", provider.c_str(),
                 info->domain_attr->mr_key_size);
  }
  auto endpoint = make_fabric_endpoint(std::move(info), rules, purpose);
  if (!endpoint) return std::move(endpoint).error().in("libfabric provider " + provider + " at " + bind_address);
  return endpoint;
}

}  // namespace ccom::ofi
