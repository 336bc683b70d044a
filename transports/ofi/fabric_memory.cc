// SPDX-License-Identifier: Apache-2.0
//
// Memory registration as the provider requires it: what is registered, under which key, how peers address it.
#include <sys/mman.h>
#include <unistd.h>

#include "base/secret.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/fabric_endpoint.h"

namespace ccom::ofi {

Mapping::~Mapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Result<Mapping> Mapping::create(size_t size_bytes, bool populate) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (populate ? MAP_POPULATE : 0);
  void* address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (address == MAP_FAILED) return system_error(errno, "map %zu bytes of message buffers", size_bytes);
  Mapping mapping;
  mapping.bytes_ = {static_cast<std::byte*>(address), size_bytes};
  return mapping;
}

FabricEndpoint::Registered::Registered(FabricEndpoint& endpoint, Fid<fid_mr> region, RemotePlace place)
    : endpoint_(endpoint), region_(std::move(region)), place_(place) {
  endpoint_.registrations_.insert(this);
}

FabricEndpoint::Registered::~Registered() { endpoint_.registrations_.erase(this); }

Result<Region> FabricEndpoint::allocate(size_t size_bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_bytes = (size_bytes + page - 1) / page * page;
  CCOM_TRY_ASSIGN(Mapping mapping, Mapping::create(size_bytes, rules_.back_with_pages));
  const Bytes bytes = mapping.bytes();
  memory_.push_back({std::move(mapping), nullptr});
  const bool has_writes = purpose_ != Purpose::Messages;
  if (!rules_.register_buffers && !has_writes) return Region{bytes};
  const uint64_t access = FI_SEND | FI_RECV | (has_writes ? FI_WRITE | FI_REMOTE_WRITE : 0);
  CCOM_TRY_ASSIGN(memory_.back().registered, register_memory(bytes, access));
  const Registered& registered = *memory_.back().registered;
  return Region{bytes, registered.descriptor(), registered.place()};
}

Result<std::unique_ptr<Registration>> FabricEndpoint::enroll(Bytes bytes, Use use) {
  CCOM_TRY_ASSIGN(std::unique_ptr<Registration> made,
                  register_memory(bytes, use == Use::Source ? FI_WRITE : FI_REMOTE_WRITE));
  return made;
}

// Keys that we choose are random: without knowing a key nobody can write, even where anyone can connect.
Result<std::unique_ptr<FabricEndpoint::Registered>> FabricEndpoint::register_memory(Bytes bytes, uint64_t access) {
  uint64_t wanted = 0;
  if (rules_.choose_keys) {
    fill_random(std::as_writable_bytes(std::span(&wanted, 1)));
    if (const size_t key_bytes = info_->domain_attr->mr_key_size; key_bytes > 0 && key_bytes < sizeof(wanted)) {
      wanted &= (uint64_t{1} << (8 * key_bytes)) - 1;
    }
  }
  fid_mr* region = nullptr;
  if (const int rc = fi_mr_reg(domain_.get(), bytes.data(), bytes.size(), access, 0, wanted, 0, &region, nullptr);
      rc != 0) {
    return fabric_error(-rc, "register " + std::to_string(bytes.size()) + " bytes of memory");
  }
  Fid<fid_mr> owned(region);
  if (rules_.bind_to_endpoint) {
    int rc = fi_mr_bind(region, &endpoint_->fid, 0);
    if (rc == 0) rc = fi_mr_enable(region);
    if (rc != 0) return fabric_error(-rc, "bind memory to the endpoint");
  }
  const auto address = rules_.has_virtual_addresses ? reinterpret_cast<uint64_t>(bytes.data()) : uint64_t{0};
  return std::make_unique<Registered>(*this, std::move(owned), RemotePlace{address, fi_mr_key(region)});
}

// A region bound to the endpoint is closed before it; any other after it, when no operation can use it.
void FabricEndpoint::shut() {
  if (rules_.bind_to_endpoint) {
    for (Registered* registered : registrations_) registered->close();
  }
  endpoint_.reset();
}

FabricEndpoint::~FabricEndpoint() {
  shut();
  memory_.clear();
}

}  // namespace ccom::ofi
