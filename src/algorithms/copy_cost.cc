// SPDX-License-Identifier: Apache-2.0
#include "algorithms/copy_cost.h"

#include <set>

namespace ccom {

MessageCopies message_copies(const NodeMachine& machine, int ranks, double touched_bytes, double message_bytes) {
  const Copies copies(machine, ranks, touched_bytes, false);
  const MemoryCosts& costs = machine.costs;
  const auto domains =
      static_cast<double>(std::max<size_t>(std::set<int>(machine.domains.begin(), machine.domains.end()).size(), 1));
  const double beside = ranks / domains;                              // ranks of a domain
  const double far = ranks > 1 ? (ranks - beside) / (ranks - 1) : 0;  // peers in other domains
  const double bytes = std::max(message_bytes, 1.0);
  const double loaded = copies.shared_load(bytes) / bytes * (1 + far * (costs.remote_factor - 1));
  MessageCopies each{.send_ns = copies.own_load() + copies.shared_store(bytes) / bytes,
                     .receive_ns = loaded + copies.own_store(),
                     .local_ns = copies.own_load() + copies.own_store(),
                     .latency = 1 + far * (costs.remote_line_ns / costs.line_ns - 1),
                     .turn_ns = (copies.crowding() - 1) * costs.switch_ns};
  if (copies.lies() != Lies::Memory) return each;
  // A line is loaded before it is stored to.
  const double together = beside * costs.domain_byte_ns;
  each.send_ns = std::max(each.send_ns, together);
  each.receive_ns = std::max({each.receive_ns, 2 * together, beside * far * costs.domain_remote_byte_ns});
  each.local_ns = std::max(each.local_ns, 3 * together);
  return each;
}

}  // namespace ccom
