// SPDX-License-Identifier: Apache-2.0
//
// libfabric's transport against the contract on the emulated EFA (tests/transport_ofi/efa): as EFA asks for memory,
// with two rails, with every other memory mode at once, and without writes. After each test nothing may have happened
// that a device would not have forgiven.
#include "tests/conformance/transport_suite.h"
#include "tests/transport_ofi/efa/network.h"
#include "transports/ofi/factory.h"

namespace ccom::conformance {
namespace {

class EfaJob final : public Job {
 public:
  EfaJob(const efa::Personality& personality, std::vector<std::string> rails) : rails_(std::move(rails)) {
    efa::network().become(personality);
  }
  ~EfaJob() override {
    for (const std::string& violation : efa::network().violations()) ADD_FAILURE() << violation;
  }
  Result<std::unique_ptr<Transport>> make(Rank rank) override {
    return ofi::make_ofi_transport({.rank = rank,
                                    .communicator = communicator_,
                                    .key = key_,
                                    .provider = "efa",
                                    .bind_address = "",
                                    .rails = rails_});
  }

 private:
  const std::vector<std::string> rails_;
  const Secret key_ = Secret::random();
  const uint64_t communicator_ = random_u64();
};

Member member(std::string name, const efa::Personality& personality, std::vector<std::string> rails = {}) {
  return {.name = std::move(name), .make_job = [personality, rails](JobShape) -> std::unique_ptr<Job> {
            return std::make_unique<EfaJob>(personality, rails);
          }};
}

INSTANTIATE_TEST_SUITE_P(Efa, TransportConformance,
                         testing::Values(member("as_efa", {.seed = 1}),
                                         member("two_rails", {.seed = 2}, {"rdmap0s6-rdm", "rdmap1s6-rdm"}),
                                         member("offsets_and_own_keys", {.seed = 3, .mr_mode = FI_MR_ENDPOINT}),
                                         member("messages_only", {.seed = 4, .has_rma = false})),
                         member_name);

}  // namespace
}  // namespace ccom::conformance
