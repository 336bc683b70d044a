// SPDX-License-Identifier: Apache-2.0
//
// libfabric's transport against the contract: on the provider that has to work everywhere, and on the same one made
// unfriendly: short messages, small queues, no order, refusals, no writes. ofi_efa_test.cc has the emulated EFA. The
// provider listens for its own connections as long as the endpoint lives (see transports/ofi/fabric.h).
#include "tests/conformance/transport_suite.h"
#include "tests/transport_ofi/rough_endpoint.h"
#include "transports/ofi/fabric.h"
#include "transports/ofi/ofi_transport.h"

namespace ccom::conformance {
namespace {

class OfiJob final : public Job {
 public:
  explicit OfiJob(bool is_rough) : is_rough_(is_rough) {}

  Result<std::unique_ptr<Transport>> make(Rank rank) override {
    const ofi::OfiConfig config{.rank = rank, .communicator = communicator_, .key = key_, .bind_address = "127.0.0.1"};
    if (!is_rough_) return ofi::make_ofi_transport(config);
    CCOM_TRY_ASSIGN(auto endpoint, ofi::open_fabric(config.provider, config.bind_address));
    endpoint = ofi::make_rough(std::move(endpoint), {.seed = static_cast<uint64_t>(rank) + 1});
    CCOM_TRY_ASSIGN(std::unique_ptr<Transport> transport, ofi::OfiTransport::create(config, std::move(endpoint)));
    return transport;
  }

 private:
  const bool is_rough_;
  const Secret key_ = Secret::random();
  const uint64_t communicator_ = random_u64();
};

Member member(std::string name, bool is_rough) {
  return {.name = std::move(name),
          .make_job = [is_rough](JobShape) -> std::unique_ptr<Job> { return std::make_unique<OfiJob>(is_rough); },
          .may_listen_after_connect = true};
}

INSTANTIATE_TEST_SUITE_P(Ofi, TransportConformance,
                         testing::Values(member("tcp_rxm", false), member("tcp_rxm_rough", true)), member_name);

}  // namespace
}  // namespace ccom::conformance
