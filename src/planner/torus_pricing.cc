// SPDX-License-Identifier: Apache-2.0
//
// Prices of bucket allreduces on the torus of one host, message by message.
#include "algorithms/torus_time.h"
#include "base/assert.h"
#include "planner/message_pricer.h"

namespace ccom {

bool is_torus_of_machine(const MachineView& view, Collective collective, const Staged& shape) {
  if (collective != Collective::AllReduce || view.fabric == nullptr || shape.levels.size() != 1) return false;
  const Level& level = shape.levels[0];
  return shape.core.empty() && level.pattern == Pattern::Torus && level.dims == view.dims && level.groups.size() == 1 &&
         level.owners == view.nranks;
}

Price price_torus(const Mediums& mediums, double n, const Staged& shape) {
  const Level& level = shape.levels[0];
  const double windows = shape.windows;
  const Cost down = level_cost(level, n, true);
  Price price{.cost = down + level_cost(level, n, false), .roundings = level_roundings(level)};
  const Medium medium = mediums.of(level, down.bytes / down.posts / windows);
  double slowest_ns = 0;
  for (const LinkSpeed& speed : mediums.view().dim_speeds) slowest_ns = std::max(slowest_ns, speed.latency_ns);
  TorusCosts costs{
      .dims = {}, .post_ns = medium.post_ns, .receive_ns = medium.message_ns, .reduced_ns = 2 * mediums.reduce_ns()};
  costs.receive_ns += mediums.reduction_ns(down.reduced) / 2;  // every other message is reduced
  for (const LinkSpeed& speed : mediums.view().dim_speeds) {
    const double times = slowest_ns > 0 ? medium.latency_ns / slowest_ns : 1;  // three where receivers are asked
    costs.dims.push_back({times * speed.latency_ns, 1e9 / speed.bytes_per_second});
  }
  const double time_ns = torus_allreduce_time(level, shape.windows, n, costs);
  const double waits_ns = std::min(time_ns, price.cost.steps * (medium.latency_ns + medium.post_ns));
  price.add(medium.kind, waits_ns, time_ns - waits_ns);
  return price;
}

}  // namespace ccom
