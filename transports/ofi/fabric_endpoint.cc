// SPDX-License-Identifier: Apache-2.0
//
// Posting, polling and sleeping on an opened provider.
#include <poll.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/time.h"
#include "transports/ofi/errors.h"
#include "transports/ofi/fabric.h"

namespace ccom::ofi {
namespace {

constexpr size_t kEntriesPerRead = 16;
constexpr int kReadsPerPoll = 32;  // then the caller gets a turn

// A private anonymous mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }
  static Result<Mapping> create(size_t size_bytes, bool populate) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (populate ? MAP_POPULATE : 0);
    void* address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (address == MAP_FAILED) return system_error(errno, "map %zu bytes of message buffers", size_bytes);
    Mapping mapping;
    mapping.bytes_ = {static_cast<std::byte*>(address), size_bytes};
    return mapping;
  }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

struct RegisteredMemory {
  Mapping mapping;
  Fid<fid_mr> region;  // null if the provider needs none
};

class FabricEndpoint final : public Endpoint {
 public:
  FabricEndpoint(Info info, MemoryRules rules) : info_(std::move(info)), rules_(rules) {}
  ~FabricEndpoint() override;
  Status open();

  std::string address() const override { return address_; }
  Limits limits() const override;
  Result<uint64_t> insert(std::string_view address) override;
  Result<Region> allocate(size_t size_bytes) override;
  int post_send(uint64_t to, Operation& operation) override;
  int post_receive(Operation& operation) override;
  Status poll(std::vector<Completion>& completions) override;
  void wait(std::chrono::nanoseconds at_most, int wake_fd) override;

 private:
  Status open_queue();
  Status read_address();
  Status read_error(std::vector<Completion>& completions);
  void wait_without_descriptor(std::chrono::nanoseconds at_most, int wake_fd);

  const Info info_;
  const MemoryRules rules_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> queue_;
  int queue_fd_ = -1;  // libfabric's; -1: the provider has none
  Fid<fid_ep> endpoint_;
  std::string address_;
  std::vector<RegisteredMemory> memory_;
  std::vector<Completion> early_;  // found by wait() where the provider has no descriptor
};

// A region that is bound to the endpoint goes before it, any other after it, when no operation can use it any more.
FabricEndpoint::~FabricEndpoint() {
  if (rules_.bind_to_endpoint) {
    for (RegisteredMemory& memory : memory_) memory.region.reset();
  }
  endpoint_.reset();
  memory_.clear();
}

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
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(domain, info_.get(), &endpoint, nullptr); rc != 0) {
    return fabric_error(-rc, "open endpoint");
  }
  endpoint_.reset(endpoint);
  if (const int rc = fi_ep_bind(endpoint, &addresses->fid, 0); rc != 0) return fabric_error(-rc, "bind address vector");
  if (const int rc = fi_ep_bind(endpoint, &queue_->fid, FI_TRANSMIT | FI_RECV); rc != 0) {
    return fabric_error(-rc, "bind completion queue");
  }
  if (const int rc = fi_enable(endpoint); rc != 0) return fabric_error(-rc, "enable endpoint");
  return read_address();
}

// Room for every operation that can be under way: some providers do not check for overrun.
Status FabricEndpoint::open_queue() {
  fi_cq_attr attr{};
  attr.size = info_->tx_attr->size + info_->rx_attr->size;
  attr.format = FI_CQ_FORMAT_MSG;
  attr.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  int rc = fi_cq_open(domain_.get(), &attr, &queue, nullptr);
  const bool has_descriptor = rc == 0;
  if (!has_descriptor) {
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

Limits FabricEndpoint::limits() const {
  return {
      .message_bytes = info_->ep_attr->max_msg_size, .sends = info_->tx_attr->size, .receives = info_->rx_attr->size};
}

Result<uint64_t> FabricEndpoint::insert(std::string_view address) {
  // fi_av_insert() trusts the length it expects. Formats of one provider have one, but for strings.
  const bool is_text = info_->addr_format == FI_ADDR_STR;
  if (address.empty() || (!is_text && address.size() != address_.size())) {
    return error(Code::InvalidArgument, "an address of %zu bytes is none of provider %s, which has %zu", address.size(),
                 info_->fabric_attr->prov_name, address_.size());
  }
  const std::string terminated(address);
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  const int rc = fi_av_insert(addresses_.get(), terminated.data(), 1, &number, 0, nullptr);
  if (rc != 1) return fabric_error(rc < 0 ? -rc : FI_EINVAL, "insert an address");
  return number;
}

Result<Region> FabricEndpoint::allocate(size_t size_bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_bytes = (size_bytes + page - 1) / page * page;
  CCOM_TRY_ASSIGN(Mapping mapping, Mapping::create(size_bytes, rules_.back_with_pages));
  const Bytes bytes = mapping.bytes();
  memory_.push_back({std::move(mapping), nullptr});
  if (!rules_.register_buffers) return Region{bytes, nullptr};
  fid_mr* region = nullptr;
  const uint64_t key = rules_.choose_keys ? memory_.size() : 0;
  if (const int rc =
          fi_mr_reg(domain_.get(), bytes.data(), bytes.size(), FI_SEND | FI_RECV, 0, key, 0, &region, nullptr);
      rc != 0) {
    return fabric_error(-rc, "register " + std::to_string(size_bytes) + " bytes of message buffers");
  }
  memory_.back().region.reset(region);
  if (rules_.bind_to_endpoint) {
    int rc = fi_mr_bind(region, &endpoint_->fid, 0);
    if (rc == 0) rc = fi_mr_enable(region);
    if (rc != 0) return fabric_error(-rc, "bind message buffers to the endpoint");
  }
  return Region{bytes, fi_mr_desc(region)};
}

int FabricEndpoint::post_send(uint64_t to, Operation& operation) {
  return static_cast<int>(
      fi_send(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor, to, &operation.context));
}

int FabricEndpoint::post_receive(Operation& operation) {
  return static_cast<int>(fi_recv(endpoint_.get(), operation.data, operation.size_bytes, operation.descriptor,
                                  FI_ADDR_UNSPEC, &operation.context));
}

// The context is the first member of a standard-layout struct, so its address is the operation's.
static_assert(std::is_standard_layout_v<Operation> && offsetof(Operation, context) == 0);

Status FabricEndpoint::poll(std::vector<Completion>& completions) {
  std::ranges::move(early_, std::back_inserter(completions));
  early_.clear();
  for (int reads = 0; reads < kReadsPerPoll; ++reads) {
    std::array<fi_cq_msg_entry, kEntriesPerRead> entries;
    const ssize_t count = fi_cq_read(queue_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return Status::ok();
    if (count == -FI_EAVAIL) {
      CCOM_TRY(read_error(completions));
      continue;
    }
    if (count < 0) return fabric_error(static_cast<int>(-count), "read the completion queue");
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cq_msg_entry& entry = entries[static_cast<size_t>(i)];
      completions.push_back({static_cast<Operation*>(entry.op_context), entry.len, 0, {}});
    }
  }
  return Status::ok();
}

Status FabricEndpoint::read_error(std::vector<Completion>& completions) {
  fi_cq_err_entry entry{};
  const ssize_t count = fi_cq_readerr(queue_.get(), &entry, 0);
  if (count == -FI_EAGAIN) return Status::ok();
  if (count < 0) return fabric_error(static_cast<int>(-count), "read an error of the completion queue");
  const char* words = fi_cq_strerror(queue_.get(), entry.prov_errno, entry.err_data, nullptr, 0);
  Completion completion{static_cast<Operation*>(entry.op_context), 0, entry.err, words != nullptr ? words : ""};
  if (completion.operation == nullptr) return fabric_error(entry.err, "provider", completion.reason);
  completions.push_back(std::move(completion));
  return Status::ok();
}

void FabricEndpoint::wait(std::chrono::nanoseconds at_most, int wake_fd) {
  if (!early_.empty()) return;
  if (queue_fd_ < 0) return wait_without_descriptor(at_most, wake_fd);
  fid* queue = &queue_->fid;
  if (fi_trywait(fabric_.get(), &queue, 1) != FI_SUCCESS) return;  // something has come already
  std::array<pollfd, 2> descriptors{pollfd{queue_fd_, POLLIN, 0}, pollfd{wake_fd, POLLIN, 0}};
  const timespec time{.tv_sec = at_most.count() / 1'000'000'000, .tv_nsec = at_most.count() % 1'000'000'000};
  ppoll(descriptors.data(), descriptors.size(), &time, nullptr);
}

// Sleeps in slices that grow to 200 us, and looks at the queue between them.
void FabricEndpoint::wait_without_descriptor(std::chrono::nanoseconds at_most, int wake_fd) {
  const Deadline deadline = Deadline::after(at_most);
  std::chrono::nanoseconds slice = std::chrono::microseconds(10);
  while (!deadline.passed()) {
    // An error comes again at the next poll(), which reports it.
    if (!poll(early_).is_ok() || !early_.empty()) return;
    pollfd descriptor{wake_fd, POLLIN, 0};
    const timespec time{.tv_sec = 0, .tv_nsec = std::min(slice, deadline.left()).count()};
    if (ppoll(&descriptor, 1, &time, nullptr) > 0) return;
    slice = std::min<std::chrono::nanoseconds>(slice * 2, std::chrono::microseconds(200));
  }
}

}  // namespace

Result<std::unique_ptr<Endpoint>> make_fabric_endpoint(Info info, MemoryRules rules) {
  auto endpoint = std::make_unique<FabricEndpoint>(std::move(info), rules);
  CCOM_TRY(endpoint->open());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace ccom::ofi
