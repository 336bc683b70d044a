// SPDX-License-Identifier: Apache-2.0
#include "comm/transfer_plans.h"

#include "algorithms/collectives.h"

namespace ccom {

TransferPlans::TransferPlans(Rank rank, int nranks, ChannelSource& channels)
    : rank_(rank), nranks_(nranks), channels_(channels), known_(2 * static_cast<size_t>(nranks)) {}

Result<std::shared_ptr<const BoundPlan>> TransferPlans::get(const Request& request) {
  const auto peer = static_cast<size_t>(request.peer);
  Known& known = known_[peer + (request.sends ? static_cast<size_t>(nranks_) : 0)];
  if (known.bound != nullptr && known.bound->type == request.type && known.count == request.count) return known.bound;
  if (known.compiled == nullptr) {
    known.compiled = std::make_shared<const CompiledPlan>(request.sends ? send_plan(rank_, nranks_, request.peer)
                                                                        : receive_plan(rank_, nranks_, request.peer));
  }
  const Plan& plan = known.compiled->plan;
  const Binding binding{request.type, ReduceOp::Sum, request.count,
                        units_in_row(Memory::Input, plan.input_units, request.count),
                        units_in_row(Memory::Output, plan.output_units, request.count)};
  CCOM_TRY_ASSIGN(BoundPlan bound, bind(known.compiled, binding, channels_));
  known.bound = std::make_shared<const BoundPlan>(std::move(bound));
  known.count = request.count;
  return known.bound;
}

}  // namespace ccom
