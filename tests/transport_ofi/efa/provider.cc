// SPDX-License-Identifier: Apache-2.0
//
// libfabric's entry points over the emulated network: what transports/ofi calls, and nothing else. A program that links
// this file has no libfabric (transports/ofi/lazy_libfabric.cc is then left out by the linker).
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tests/transport_ofi/efa/network.h"

namespace ccom::efa {
namespace {

// Options of libfabric 1.21 and later, whose numbers 1.17's headers lack.
constexpr int kOptMaxMessageSize = 12, kOptMaxRmaSize = 14;

template <typename T>
int close_as(fid* object) {
  delete reinterpret_cast<T*>(object);
  return 0;
}

template <typename T>
fi_ops make_ops(int (*close)(fid*)) {
  fi_ops ops{};
  ops.size = sizeof(fi_ops);
  ops.close = close;
  return ops;
}

int close_region(fid* object) {
  auto* region = reinterpret_cast<MemoryRegion*>(object);
  const std::lock_guard lock(network().mutex);
  region->domain->regions.erase(region);
  delete region;
  return 0;
}

int close_device(fid* object) {
  auto* device = reinterpret_cast<Device*>(object);
  {
    const std::lock_guard lock(network().mutex);
    network().close(*device);
  }
  delete device;
  return 0;
}

int bind_region(fid* object, fid*, uint64_t) {
  reinterpret_cast<MemoryRegion*>(object)->is_bound = true;
  return 0;
}

int control_region(fid* object, int command, void*) {
  auto* region = reinterpret_cast<MemoryRegion*>(object);
  const std::lock_guard lock(network().mutex);
  if (command != FI_ENABLE || !region->is_bound) return -FI_EINVAL;
  region->is_usable = true;
  return 0;
}

int register_memory(fid* object, const void* data, size_t size_bytes, uint64_t access, uint64_t offset,
                    uint64_t requested_key, uint64_t, fid_mr** out, void*) {
  static fi_ops ops = [] {
    fi_ops made = make_ops<MemoryRegion>(close_region);
    made.bind = bind_region;
    made.control = control_region;
    return made;
  }();
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto* domain = reinterpret_cast<Domain*>(object);
  if (offset != 0 || size_bytes == 0) return -FI_EINVAL;
  if (net.chance(net.personality.refuse_registration_one_in)) return -FI_ENOMEM;
  const bool chooses = (net.personality.mr_mode & FI_MR_PROV_KEY) != 0;
  const uint64_t key = chooses ? net.draw() & 0xffffffff : requested_key;
  const auto has_key = [key](const MemoryRegion* region) { return region->fid.key == key; };
  if (!chooses && std::ranges::any_of(domain->regions, has_key)) return -FI_ENOKEY;
  auto* region = new MemoryRegion;
  region->fid.fid = {FI_CLASS_MR, nullptr, &ops};
  region->fid.mem_desc = region;
  region->fid.key = key;
  region->domain = domain;
  region->begin = static_cast<const std::byte*>(data);
  region->size_bytes = size_bytes;
  region->access = access;
  region->is_usable = (net.personality.mr_mode & FI_MR_ENDPOINT) == 0;
  domain->regions.insert(region);
  ++net.registered;
  *out = &region->fid;
  return 0;
}

// ---- completion queues

ssize_t read_queue(fid_cq* cq, void* buffer, size_t count) {
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto& queue = *reinterpret_cast<Queue*>(cq);
  net.advance();
  for (size_t i = 0; i < queue.late.size();) {
    if (net.chance(net.personality.hold_back_one_in)) {
      ++i;
      continue;
    }
    std::swap(queue.late[i], queue.late.back());
    (queue.late.back().efa_errno != 0 ? queue.failed : queue.ready).push_back(queue.late.back());
    queue.late.pop_back();
  }
  if (!queue.failed.empty()) return -FI_EAVAIL;
  if (queue.ready.empty()) return -FI_EAGAIN;
  count = std::min(count, 1 + net.draw() % queue.ready.size());
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = queue.ready.front();
    static_cast<fi_cq_data_entry*>(buffer)[i] = entry.good;
    if (entry.sender != nullptr) --entry.sender->sends_under_way;
    queue.ready.pop_front();
  }
  return static_cast<ssize_t>(count);
}

ssize_t read_failure(fid_cq* cq, fi_cq_err_entry* out, uint64_t) {
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto& queue = *reinterpret_cast<Queue*>(cq);
  if (queue.failed.empty() || net.chance(4)) return -FI_EAGAIN;
  const Entry entry = queue.failed.front();
  queue.failed.pop_front();
  if (entry.sender != nullptr) --entry.sender->sends_under_way;
  *out = {};
  out->op_context = entry.good.op_context;
  out->flags = entry.good.flags;
  out->err = to_fi_errno(entry.efa_errno);
  out->prov_errno = entry.efa_errno;
  return 1;
}

const char* describe_failure(fid_cq*, int efa_errno, const void*, char*, size_t) { return words_for(efa_errno); }

int open_queue(fid_domain*, fi_cq_attr* attributes, fid_cq** out, void*) {
  static fi_ops ops = make_ops<Queue>(close_as<Queue>);
  static fi_ops_cq queue_ops = [] {
    fi_ops_cq made{};
    made.size = sizeof(made);
    made.read = read_queue;
    made.readerr = read_failure;
    made.strerror = describe_failure;
    return made;
  }();
  if (attributes->wait_obj != FI_WAIT_NONE) return -FI_ENOSYS;  // as libfabric 1.17's efa
  if (attributes->format != FI_CQ_FORMAT_DATA) return -FI_ENOSYS;
  auto* queue = new Queue;
  queue->fid.fid = {FI_CLASS_CQ, nullptr, &ops};
  queue->fid.ops = &queue_ops;
  queue->size = attributes->size;
  *out = &queue->fid;
  return 0;
}

// ---- address vectors

int insert_address(fid_av* av, const void* address, size_t count, fi_addr_t* number, uint64_t, void*) {
  auto& vector = *reinterpret_cast<Vector*>(av);
  const std::lock_guard lock(network().mutex);
  if (count != 1) return -FI_EINVAL;
  *number = vector.addresses.size();
  vector.addresses.emplace_back(static_cast<const char*>(address), 32);
  return 1;
}

int open_vector(fid_domain*, fi_av_attr*, fid_av** out, void*) {
  static fi_ops ops = make_ops<Vector>(close_as<Vector>);
  static fi_ops_av vector_ops = [] {
    fi_ops_av made{};
    made.size = sizeof(made);
    made.insert = insert_address;
    return made;
  }();
  auto* vector = new Vector;
  vector->fid.fid = {FI_CLASS_AV, nullptr, &ops};
  vector->fid.ops = &vector_ops;
  *out = &vector->fid;
  return 0;
}

// ---- endpoints

// 0 if it may be posted, else what to answer.
ssize_t check_post(Network& net, const Device& device, size_t posted, fi_addr_t to) {
  if (!device.is_enabled) return -FI_EOPBADSTATE;
  if (to != FI_ADDR_UNSPEC && to >= device.vector->addresses.size()) return -FI_EINVAL;
  if (posted >= net.personality.queue || net.chance(net.personality.refuse_one_in)) return -FI_EAGAIN;
  return 0;
}

ssize_t post_receive(fid_ep* ep, void* data, size_t size_bytes, void* descriptor, fi_addr_t, void* context) {
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto& device = *reinterpret_cast<Device*>(ep);
  if (const ssize_t answer = check_post(net, device, device.receives.size(), FI_ADDR_UNSPEC); answer != 0)
    return answer;
  net.is_registered(device, data, size_bytes, descriptor, FI_RECV);
  device.receives.push_back({static_cast<std::byte*>(data), size_bytes, descriptor, context});
  return 0;
}

ssize_t post_send(fid_ep* ep, const void* data, size_t size_bytes, void* descriptor, fi_addr_t to, void* context) {
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto& device = *reinterpret_cast<Device*>(ep);
  if (const ssize_t answer = check_post(net, device, device.sends_under_way, to); answer != 0) return answer;
  if (size_bytes > net.personality.message_bytes) net.violate("a message is longer than the limit");
  net.is_registered(device, data, size_bytes, descriptor, FI_SEND);
  net.launch({.from = &device,
              .to = device.vector->addresses[to],
              .data = static_cast<const std::byte*>(data),
              .size_bytes = size_bytes,
              .descriptor = descriptor,
              .context = context});
  return 0;
}

ssize_t post_write(fid_ep* ep, const void* data, size_t size_bytes, void* descriptor, uint64_t immediate, fi_addr_t to,
                   uint64_t remote_address, uint64_t key, void* context) {
  Network& net = network();
  const std::lock_guard lock(net.mutex);
  auto& device = *reinterpret_cast<Device*>(ep);
  if (const ssize_t answer = check_post(net, device, device.sends_under_way, to); answer != 0) return answer;
  if (size_bytes > net.personality.write_bytes) net.violate("a write is longer than the limit");
  if (immediate > UINT32_MAX) net.violate("an immediate has more than 4 bytes");
  net.is_registered(device, data, size_bytes, descriptor, FI_WRITE);
  net.launch({.from = &device,
              .to = device.vector->addresses[to],
              .is_write = true,
              .data = static_cast<const std::byte*>(data),
              .size_bytes = size_bytes,
              .descriptor = descriptor,
              .context = context,
              .immediate = immediate,
              .remote_address = remote_address,
              .key = key});
  return 0;
}

int bind_device(fid* object, fid* other, uint64_t) {
  auto& device = *reinterpret_cast<Device*>(object);
  if (other->fclass == FI_CLASS_AV) device.vector = reinterpret_cast<Vector*>(other);
  if (other->fclass == FI_CLASS_CQ) device.queue = reinterpret_cast<Queue*>(other);
  return 0;
}

int control_device(fid* object, int command, void*) {
  auto& device = *reinterpret_cast<Device*>(object);
  const std::lock_guard lock(network().mutex);
  if (command != FI_ENABLE || device.vector == nullptr || device.queue == nullptr) return -FI_EINVAL;
  device.is_enabled = true;
  return 0;
}

int get_option(fid* /*object*/, int, int name, void* value, size_t* size_bytes) {
  const Personality& personality = network().personality;
  if (*size_bytes < sizeof(size_t) || (name != kOptMaxMessageSize && name != kOptMaxRmaSize)) return -FI_ENOPROTOOPT;
  const size_t limit = name == kOptMaxMessageSize ? personality.message_bytes : personality.write_bytes;
  std::memcpy(value, &limit, sizeof(limit));
  return 0;
}

int get_name(fid* object, void* buffer, size_t* size_bytes) {
  const auto& device = *reinterpret_cast<Device*>(object);
  if (*size_bytes < device.address.size()) return -FI_ETOOSMALL;
  std::memcpy(buffer, device.address.data(), device.address.size());
  *size_bytes = device.address.size();
  return 0;
}

struct DeviceOps {
  fi_ops base = make_ops<Device>(close_device);
  fi_ops_ep endpoint{};
  fi_ops_cm connection{};
  fi_ops_msg message{};
  fi_ops_rma rma{};
  DeviceOps() {
    base.bind = bind_device;
    base.control = control_device;
    endpoint.size = sizeof(endpoint);
    endpoint.getopt = get_option;
    connection.size = sizeof(connection);
    connection.getname = get_name;
    message.size = sizeof(message);
    message.recv = post_receive;
    message.send = post_send;
    rma.size = sizeof(rma);
    rma.writedata = post_write;
  }
};

int open_device(fid_domain* domain, fi_info*, fid_ep** out, void*) {
  static DeviceOps ops;
  auto* device = new Device;
  device->fid.fid = {FI_CLASS_EP, nullptr, &ops.base};
  device->fid.ops = &ops.endpoint;
  device->fid.cm = &ops.connection;
  device->fid.msg = &ops.message;
  device->fid.rma = &ops.rma;
  device->domain = reinterpret_cast<Domain*>(domain);
  const std::lock_guard lock(network().mutex);
  network().open(*device);
  *out = &device->fid;
  return 0;
}

int close_domain(fid* object) {
  const auto& domain = *reinterpret_cast<Domain*>(object);
  if (!domain.regions.empty()) network().violate("a domain was closed before its memory");
  return close_as<Domain>(object);
}

int open_domain(fid_fabric*, fi_info*, fid_domain** out, void*) {
  static fi_ops ops = make_ops<Domain>(close_domain);
  static fi_ops_domain domain_ops = [] {
    fi_ops_domain made{};
    made.size = sizeof(made);
    made.av_open = open_vector;
    made.cq_open = open_queue;
    made.endpoint = open_device;
    return made;
  }();
  static fi_ops_mr memory_ops = [] {
    fi_ops_mr made{};
    made.size = sizeof(made);
    made.reg = register_memory;
    return made;
  }();
  auto* domain = new Domain;
  domain->fid.fid = {FI_CLASS_DOMAIN, nullptr, &ops};
  domain->fid.ops = &domain_ops;
  domain->fid.mr = &memory_ops;
  *out = &domain->fid;
  return 0;
}

}  // namespace
}  // namespace ccom::efa

extern "C" {

struct fi_info* fi_dupinfo(const struct fi_info* info) {
  // Enough for hints, which are empty, and for what fi_getinfo() below returns.
  auto* copy = static_cast<fi_info*>(std::calloc(1, sizeof(fi_info)));
  const auto duplicate = [](const auto* attributes, auto*& into) {
    into = static_cast<std::remove_reference_t<decltype(into)>>(std::calloc(1, sizeof(*into)));
    if (attributes != nullptr) std::memcpy(into, attributes, sizeof(*into));
  };
  if (info != nullptr) *copy = *info;
  copy->next = nullptr;
  duplicate(info != nullptr ? info->tx_attr : nullptr, copy->tx_attr);
  duplicate(info != nullptr ? info->rx_attr : nullptr, copy->rx_attr);
  duplicate(info != nullptr ? info->ep_attr : nullptr, copy->ep_attr);
  duplicate(info != nullptr ? info->domain_attr : nullptr, copy->domain_attr);
  duplicate(info != nullptr ? info->fabric_attr : nullptr, copy->fabric_attr);
  if (info != nullptr) {
    const auto copy_text = [](char*& text) { text = text != nullptr ? strdup(text) : nullptr; };
    copy_text(copy->domain_attr->name);
    copy_text(copy->fabric_attr->name);
    copy_text(copy->fabric_attr->prov_name);
  }
  return copy;
}

void fi_freeinfo(struct fi_info* info) {
  while (info != nullptr) {
    fi_info* next = info->next;
    std::free(info->domain_attr->name);
    std::free(info->fabric_attr->name);
    std::free(info->fabric_attr->prov_name);
    for (void* part :
         {static_cast<void*>(info->tx_attr), static_cast<void*>(info->rx_attr), static_cast<void*>(info->ep_attr),
          static_cast<void*>(info->domain_attr), static_cast<void*>(info->fabric_attr), static_cast<void*>(info)}) {
      std::free(part);
    }
    info = next;
  }
}

// Sixteen devices, as a trn2.48xlarge has. What was not offered is refused, as libfabric does.
int fi_getinfo(uint32_t, const char*, const char*, uint64_t, const struct fi_info* hints, struct fi_info** out) {
  const ccom::efa::Personality& personality = ccom::efa::network().personality;
  if ((hints->caps & FI_RMA) != 0 && !personality.has_rma) return -FI_ENODATA;
  if ((personality.mr_mode & ~hints->domain_attr->mr_mode) != 0) return -FI_ENODATA;
  *out = nullptr;
  for (int device = 15; device >= 0; --device) {
    const std::string name = "rdmap" + std::to_string(device) + "s6-rdm";
    if (hints->domain_attr->name != nullptr && name != hints->domain_attr->name) continue;
    fi_info* info = fi_allocinfo();
    info->caps = hints->caps;
    info->mode = FI_CONTEXT2;
    info->addr_format = FI_ADDR_EFA;
    info->ep_attr->type = FI_EP_RDM;
    info->ep_attr->max_msg_size = personality.write_bytes;
    info->tx_attr->size = info->rx_attr->size = personality.queue;
    info->domain_attr->mr_mode = personality.mr_mode;
    info->domain_attr->mr_key_size = 4;
    info->domain_attr->cq_data_size = 4;
    info->domain_attr->name = strdup(name.c_str());
    info->fabric_attr->name = strdup("efa");
    info->fabric_attr->prov_name = strdup("efa");
    info->next = *out;
    *out = info;
  }
  return *out != nullptr ? 0 : -FI_ENODATA;
}

int fi_fabric(struct fi_fabric_attr*, struct fid_fabric** out, void*) {
  static fi_ops ops = ccom::efa::make_ops<fid_fabric>(ccom::efa::close_as<fid_fabric>);
  static fi_ops_fabric fabric_ops = [] {
    fi_ops_fabric made{};
    made.size = sizeof(made);
    made.domain = ccom::efa::open_domain;
    return made;
  }();
  *out = new fid_fabric{{FI_CLASS_FABRIC, nullptr, &ops}, &fabric_ops, 0};
  return 0;
}

const char* fi_strerror(int number) {
  switch (number) {
    case FI_ENORX: return "Receiver not ready, no receive buffers available";
    case FI_EOTHER: return "Unspecified error";
    default: return std::strerror(number);
  }
}

}  // extern "C"
