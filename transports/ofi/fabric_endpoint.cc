// SPDX-License-Identifier: Apache-2.0
//
// Opening a provider's endpoint, posting and polling.
#include "transports/ofi/fabric_endpoint.h"

#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/greeting.h"
#include "transports/ofi/efa_errors.h"
#include "transports/ofi/errors.h"

namespace ccom::ofi {
namespace {

constexpr size_t kEntriesPerRead = 16;
constexpr int kReadsPerPoll = 32;  // then return to the caller

// From libfabric 1.21; missing in the headers of 1.17. Older libraries reject them as unknown.
constexpr int kOptMaxMessageSize = 12, kOptMaxRmaSize = 14;

// EFA's packet size, whatever the provider reports: above it, the provider would have to segment messages.
constexpr size_t kEfaMessageBytes = 8192;

// Writes are split into pieces far below this limit.
constexpr size_t kMostWriteBytes = size_t{1} << 30;

// As long as the kernel lets it be, some hours.
constexpr std::chrono::hours kSilence{9};

// The listening socket at `address`, a sockaddr, as libfabric names no descriptor; -1: none.
int find_listener(const std::string& address) {
  std::error_code failure;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const int fd = std::atoi(entry->path().filename().c_str());
    int is_listening = 0;
    socklen_t size = sizeof is_listening;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) != 0 || is_listening == 0) continue;
    sockaddr_storage bound{};
    size = sizeof bound;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) continue;
    if (size <= address.size() && std::memcmp(&bound, address.data(), size) == 0) return fd;
  }
  return -1;
}

size_t read_option(fid_ep* endpoint, int name, size_t otherwise) {
  size_t value = 0, size_bytes = sizeof(value);
  if (fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, name, &value, &size_bytes) != 0) return otherwise;
  return size_bytes == sizeof(value) && value > 0 ? std::min(value, otherwise) : otherwise;
}

}  // namespace

Status FabricEndpoint::open() {
  fid_fabric* fabric = nullptr;
  if (const int rc = fi_fabric(info_->fabric_attr, &fabric, nullptr); rc != 0) return fabric_error(-rc, "open fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  if (const int rc = fi_domain(fabric, info_.get(), &domain, nullptr); rc != 0) return fabric_error(-rc, "open domain");
  domain_.reset(domain);
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fid_av* addresses = nullptr;
  if (const int rc = fi_av_open(domain, &av_attr, &addresses, nullptr); rc != 0) {
    return fabric_error(-rc, "open address vector");
  }
  addresses_.reset(addresses);
  CCOM_TRY(open_queue());
  CCOM_TRY(open_endpoint());
  read_limits();
  CCOM_TRY(read_address());
  // libfabric would keep a descriptor for everybody who connects, until he says something or leaves.
  if (const int listener = is_efa() ? -1 : find_listener(address_); listener >= 0) keep_silent_ones(listener, kSilence);
  return Status::ok();
}

Status FabricEndpoint::open_endpoint() {
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(domain_.get(), info_.get(), &endpoint, nullptr); rc != 0) {
    return fabric_error(-rc, "open endpoint");
  }
  endpoint_.reset(endpoint);
  if (const int rc = fi_ep_bind(endpoint, &addresses_->fid, 0); rc != 0)
    return fabric_error(-rc, "bind address vector");
  if (const int rc = fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV); rc != 0) {
    return fabric_error(-rc, "bind completion queue");
  }
  if (const int rc = fi_enable(endpoint); rc != 0) return fabric_error(-rc, "enable endpoint");
  return Status::ok();
}

// Capacity for every operation that can be outstanding: some providers do not check for overrun.
Status FabricEndpoint::open_queue() {
  fi_cq_attr attr{};
  attr.size = info_->tx_attr->size + info_->rx_attr->size;
  attr.format = FI_CQ_FORMAT_DATA;
  attr.wait_obj = purpose_ == Purpose::PolledWrites ? FI_WAIT_NONE : FI_WAIT_FD;
  fid_cq* queue = nullptr;
  int rc = fi_cq_open(domain_.get(), &attr, &queue, nullptr);
  const bool has_descriptor = rc == 0 && attr.wait_obj == FI_WAIT_FD;
  if (rc != 0) {
    attr.wait_obj = FI_WAIT_NONE;
    rc = fi_cq_open(domain_.get(), &attr, &queue, nullptr);
  }
  if (rc != 0) return fabric_error(-rc, "open completion queue");
  queue_.reset(queue);
  if (has_descriptor && fi_control(&queue->fid, FI_GETWAIT, &queue_fd_) != 0) queue_fd_ = -1;
  return Status::ok();
}

Status FabricEndpoint::read_address() {
  std::array<char, 512> name{};
  size_t length = name.size();
  if (const int rc = fi_getname(&endpoint_->fid, name.data(), &length); rc != 0) {
    return fabric_error(-rc, "read the endpoint's address");
  }
  address_.assign(name.data(), length);
  return Status::ok();
}

void FabricEndpoint::read_limits() {
  limits_ = {.message_bytes = info_->ep_attr->max_msg_size,
             .sends = info_->tx_attr->size,
             .receives = info_->rx_attr->size,
             .write_bytes = purpose_ != Purpose::Messages ? std::min(info_->ep_attr->max_msg_size, kMostWriteBytes) : 0,
             .registers_sources = rules_.register_buffers};
  if (is_rxm() && limits_.write_bytes > 0) limits_.sends /= 2;  // see post_write_in_two()
  if (!is_efa()) return;
  limits_.message_bytes =
      read_option(endpoint_.get(), kOptMaxMessageSize, std::min(limits_.message_bytes, kEfaMessageBytes));
  if (limits_.write_bytes > 0) limits_.write_bytes = read_option(endpoint_.get(), kOptMaxRmaSize, limits_.write_bytes);
}

Result<uint64_t> FabricEndpoint::insert(std::string_view address) {
  // fi_av_insert() assumes the provider's fixed address length (except for string formats).
  const bool is_text = info_->addr_format == FI_ADDR_STR;
  if (address.empty() || (!is_text && address.size() != address_.size())) {
    return error(Code::InvalidArgument, "an address of %zu bytes is invalid for provider %s, which uses %zu",
                 address.size(), info_->fabric_attr->prov_name, address_.size());
  }
  const std::string terminated(address);
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  const int rc = fi_av_insert(addresses_.get(), terminated.data(), 1, &number, 0, nullptr);
  if (rc != 1) return fabric_error(rc < 0 ? -rc : FI_EINVAL, "insert an address");
  return number;
}

int FabricEndpoint::post_send(uint64_t to, Operation& operation) {
  return static_cast<int>(
      fi_send(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor, to, &operation.context));
}

int FabricEndpoint::post_receive(Operation& operation) {
  return static_cast<int>(fi_recv(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor,
                                  FI_ADDR_UNSPEC, &operation.context));
}

int FabricEndpoint::post_write(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) {
  if (is_rxm() && operation.size_bytes > 0) return post_write_in_two(to, operation, place, immediate);
  return static_cast<int>(fi_writedata(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor,
                                       immediate, to, place.address, place.key, &operation.context));
}

// rxm crashes (libfabric 1.17: rxm_handle_comp_error) when a connection ends, or is closed, while a write with an
// immediate has arrived in part: tcp cancels it with a null context. A write without one is dropped silently. So the
// payload goes first, and the immediate follows in a write of nothing: connections of rxm keep the order.
int FabricEndpoint::post_write_in_two(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) {
  constexpr int kAttempts = 1000;
  ssize_t rc = fi_write(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor, to, place.address,
                        place.key, &of_payloads_);
  if (rc != 0) return static_cast<int>(rc);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    rc = fi_writedata(endpoint_.get(), operation.data, 0, operation.descriptor, immediate, to, place.address, place.key,
                      &operation.context);
    if (rc != -FI_EAGAIN) break;
    fi_cq_read(queue_.get(), nullptr, 0);  // drives the provider
  }
  return rc == -FI_EAGAIN ? -FI_EIO : static_cast<int>(rc);
}

// The context is the first member of a standard-layout struct, so its address is the operation's address.
static_assert(std::is_standard_layout_v<Operation> && offsetof(Operation, context) == 0);

Status FabricEndpoint::poll(std::vector<Completion>& completions) {
  for (int reads = 0; reads < kReadsPerPoll; ++reads) {
    std::array<fi_cq_data_entry, kEntriesPerRead> entries;
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return Status::ok();
    if (count == -FI_EAVAIL) {
      CCOM_TRY(read_error(completions));
      continue;
    }
    if (count < 0) return fabric_error(static_cast<int>(-count), "read the completion queue");
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cq_data_entry& entry = entries[static_cast<size_t>(i)];
      if (entry.op_context == &of_payloads_) continue;
      // The writer is not reported, and the context is undefined. FI_REMOTE_CQ_DATA alone is not sufficient: `sockets`
      // sets it at the writer's end too.
      const bool is_peers_write = (entry.flags & FI_REMOTE_WRITE) != 0;
      completions.push_back({.operation = is_peers_write ? nullptr : static_cast<Operation*>(entry.op_context),
                             .received_bytes = entry.len,
                             .immediate = is_peers_write ? static_cast<uint32_t>(entry.data) : 0});
    }
  }
  return Status::ok();
}

Status FabricEndpoint::read_error(std::vector<Completion>& completions) {
  fi_cq_err_entry entry{};
  const ssize_t count = fi_cq_readerr(queue_.get(), &entry, 0);
  if (count == -FI_EAGAIN) return Status::ok();
  if (count < 0) return fabric_error(static_cast<int>(-count), "read an error of the completion queue");
  if (entry.op_context == &of_payloads_) return Status::ok();  // the write that follows it fails too
  const EfaError* efa = is_efa() ? find_efa_error(entry.prov_errno) : nullptr;
  const char* words =
      efa != nullptr ? efa->sentence : fi_cq_strerror(queue_.get(), entry.prov_errno, entry.err_data, nullptr, 0);
  Completion completion{.operation = static_cast<Operation*>(entry.op_context),
                        .error = efa != nullptr ? efa->fi_error : entry.err,
                        .reason = words != nullptr ? words : ""};
  if (entry.prov_errno != 0) completion.reason += " [" + std::to_string(entry.prov_errno) + "]";
  if (completion.operation == nullptr) return fabric_error(entry.err, "provider", completion.reason);
  completions.push_back(std::move(completion));
  return Status::ok();
}

bool FabricEndpoint::may_sleep() {
  fid* queue = &queue_->fid;
  return queue_fd_ < 0 || fi_trywait(fabric_.get(), &queue, 1) == FI_SUCCESS;
}

Result<std::unique_ptr<Endpoint>> make_fabric_endpoint(Info info, MemoryRules rules, Purpose purpose) {
  auto endpoint = std::make_unique<FabricEndpoint>(std::move(info), rules, purpose);
  CCOM_TRY(endpoint->open());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace ccom::ofi
