// SPDX-License-Identifier: Apache-2.0
//
// The Endpoint implementation: fabric_endpoint.cc opens, posts and polls; fabric_memory.cc registers memory.
#pragma once

#include <set>

#include "transports/ofi/fabric.h"

namespace ccom::ofi {

// A private anonymous mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();
  static Result<Mapping> create(size_t size_bytes, bool populate);
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

class FabricEndpoint final : public Endpoint {
 public:
  FabricEndpoint(Info info, MemoryRules rules, Purpose purpose)
      : info_(std::move(info)), rules_(rules), purpose_(purpose) {}
  ~FabricEndpoint() override;
  Status open();

  std::string address() const override { return address_; }
  Limits limits() const override { return limits_; }
  Result<uint64_t> insert(std::string_view address) override;
  Result<Region> allocate(size_t size_bytes) override;
  Result<std::unique_ptr<Registration>> enroll(Bytes bytes, Use use) override;
  int post_send(uint64_t to, Operation& operation) override;
  int post_receive(Operation& operation) override;
  int post_write(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate) override;
  Status poll(std::vector<Completion>& completions) override;
  int descriptor() const override { return queue_fd_; }
  bool may_sleep() override;
  void shut() override;

 private:
  // Memory registered with the domain.
  class Registered final : public Registration {
   public:
    Registered(FabricEndpoint& endpoint, Fid<fid_mr> region, RemotePlace place);
    ~Registered() override;
    void* descriptor() const override { return fi_mr_desc(region_.get()); }
    RemotePlace place() const override { return place_; }
    void close() { region_.reset(); }

   private:
    FabricEndpoint& endpoint_;
    Fid<fid_mr> region_;
    const RemotePlace place_;
  };
  struct Allocated {
    Mapping mapping;
    std::unique_ptr<Registered> registered;  // null if the provider needs none
  };

  bool is_efa() const { return std::string_view(info_->fabric_attr->prov_name).starts_with("efa"); }
  bool is_rxm() const { return std::string_view(info_->fabric_attr->prov_name).find("rxm") != std::string_view::npos; }
  int post_write_in_two(uint64_t to, Operation& operation, RemotePlace place, uint32_t immediate);
  Status open_endpoint();
  Status open_queue();
  Status read_address();
  void read_limits();
  Status read_error(std::vector<Completion>& completions);
  Result<std::unique_ptr<Registered>> register_memory(Bytes bytes, uint64_t access);

  const Info info_;
  const MemoryRules rules_;
  const Purpose purpose_;
  Fid<fid_fabric> fabric_;
  Fid<fid_domain> domain_;
  Fid<fid_av> addresses_;
  Fid<fid_cq> queue_;
  int queue_fd_ = -1;  // libfabric's; -1: not available
  Fid<fid_ep> endpoint_;
  fi_context2 of_payloads_{};  // of all payloads that post_write_in_two() writes
  std::string address_;
  Limits limits_;
  std::set<Registered*> registrations_;  // all that exist
  std::vector<Allocated> memory_;
};

}  // namespace ccom::ofi
