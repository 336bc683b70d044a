// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_ofi/rough_endpoint.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <set>

#include "transports/ofi/wire.h"

namespace ccom::ofi {
namespace {

class RoughEndpoint final : public Endpoint {
 public:
  RoughEndpoint(std::unique_ptr<Endpoint> inner, Roughness roughness)
      : inner_(std::move(inner)), roughness_(std::move(roughness)), random_(roughness_.seed) {}

  std::string address() const override { return inner_->address(); }
  Limits limits() const override { return roughness_.limits; }
  Result<uint64_t> insert(std::string_view address) override { return inner_->insert(address); }
  Result<Region> allocate(size_t size_bytes) override { return inner_->allocate(size_bytes); }
  Result<std::unique_ptr<Registration>> enroll(Bytes bytes, Use use) override { return inner_->enroll(bytes, use); }

  int post_send(uint64_t to, Operation& operation) override {
    EXPECT_LE(operation.size_bytes, roughness_.limits.message_bytes);
    if (is_chosen(roughness_.refuse_one_in)) return -FI_EAGAIN;
    if (roughness_.fail_sends && *roughness_.fail_sends != 0) {
      held_.push_back({.operation = &operation, .error = *roughness_.fail_sends, .reason = "told to fail"});
      return 0;
    }
    const int rc = inner_->post_send(to, operation);
    if (rc == 0) start(operation, sends_, roughness_.limits.sends);
    return rc;
  }

  int post_receive(Operation& operation) override {
    if (is_chosen(roughness_.refuse_one_in)) return -FI_EAGAIN;
    const int rc = inner_->post_receive(operation);
    if (rc == 0) start(operation, receives_, roughness_.limits.receives);
    return rc;
  }

  Status poll(std::vector<Completion>& completions) override {
    std::vector<Completion> fresh;
    Status status = inner_->poll(fresh);
    for (Completion& completion : fresh) {
      if (completion.operation->operation_kind == OperationKind::Send) {
        EXPECT_EQ(sends_.erase(completion.operation), 1u);
      } else {
        EXPECT_EQ(receives_.erase(completion.operation), 1u);
        EXPECT_FALSE(receives_.empty()) << "the next message finds no buffer";
        damage(completion);
      }
      held_.push_back(std::move(completion));
    }
    std::ranges::shuffle(held_, random_);
    std::vector<Completion> later;
    for (Completion& completion : held_) {
      (is_chosen(roughness_.hold_back_one_in) ? later : completions).push_back(std::move(completion));
    }
    held_ = std::move(later);
    return status;
  }

  int post_write(uint64_t, Operation&, RemotePlace, uint32_t) override { return -FI_ENOSYS; }
  int descriptor() const override { return inner_->descriptor(); }
  bool may_sleep() override { return held_.empty() && inner_->may_sleep(); }
  void shut() override { inner_->shut(); }

 private:
  bool is_chosen(unsigned one_in) { return one_in != 0 && random_() % one_in == 0; }

  static void start(Operation& operation, std::set<Operation*>& under_way, size_t limit) {
    EXPECT_TRUE(under_way.insert(&operation).second) << "posted twice";
    EXPECT_LE(under_way.size(), limit);
  }

  void damage(const Completion& completion) const {
    if (!roughness_.damage || !*roughness_.damage || completion.received_bytes <= sizeof(Header)) return;
    completion.operation->data[completion.received_bytes - 1] ^= std::byte{0x10};
  }

  const std::unique_ptr<Endpoint> inner_;
  const Roughness roughness_;
  std::mt19937_64 random_;
  std::set<Operation*> sends_, receives_;  // with the provider
  std::vector<Completion> held_;
};

}  // namespace

std::unique_ptr<Endpoint> make_rough(std::unique_ptr<Endpoint> inner, Roughness roughness) {
  return std::make_unique<RoughEndpoint>(std::move(inner), std::move(roughness));
}

}  // namespace ccom::ofi
