// SPDX-License-Identifier: Apache-2.0
//
// The shm transport joins the conformance suite: with rings of the usual size and of the smallest, and with each rank
// looking at the segment through a mapping of its own, as in separate processes; and with a fabric's speeds imitated.
#include "transports/shm/factory.h"

#include <fcntl.h>

#include "tests/conformance/transport_suite.h"

namespace ccom::conformance {
namespace {

struct Variant {
  size_t ring_bytes;
  bool map_for_each_rank;
  bool paced = false;
};

class ShmJob final : public Job {
 public:
  ShmJob(JobShape shape, Variant variant) : shape_(shape), variant_(variant) {
    const size_t region_bytes = shm_region_bytes(shape.ranks, shape.channels, variant.ring_bytes);
    segments_.push_back(*SharedSegment::create(kOffset + region_bytes + shm_wires_bytes(kWires), kOffset));
  }
  Result<std::unique_ptr<Transport>> make(Rank rank) override {
    if (variant_.map_for_each_rank) {
      const int fd = ::fcntl(segments_[0]->fd(), F_DUPFD_CLOEXEC, 0);
      CCOM_TRY_ASSIGN(auto own, SharedSegment::attach(fd, segments_[0]->bytes().size()));
      segments_.push_back(std::move(own));
    }
    ShmConfig config;
    config.rank = rank;
    config.segment = segments_.back().get();
    config.offset_bytes = kOffset;
    for (Rank one = 0; one < shape_.ranks; ++one) config.local_ranks.push_back(one);
    config.channels = shape_.channels;
    config.ring_bytes = variant_.ring_bytes;
    const ShmFabric fabric = fabric_of(rank);
    if (variant_.paced) config.fabric = &fabric;
    return make_shm_transport(config);
  }

 private:
  // Everybody reaches everybody over one of two wires and then one of two others, at 1 GB/s and 10 us each.
  ShmFabric fabric_of(Rank rank) const {
    ShmFabric fabric;
    fabric.offset_bytes = segments_[0]->bytes().size() - shm_wires_bytes(kWires);
    fabric.lines = kWires;
    for (Rank peer = 0; peer < shape_.ranks; ++peer) {
      const uint32_t first = static_cast<uint32_t>(rank + peer) % 2, second = 2 + static_cast<uint32_t>(peer) % 2;
      fabric.ways.push_back({{.line = first, .ns_per_byte = 1, .latency_ns = 1e4},
                             {.line = second, .ns_per_byte = 1, .latency_ns = 1e4}});
    }
    return fabric;
  }

  static constexpr uint32_t kWires = 4;
  static constexpr size_t kOffset = 8192;  // something else may lie before it
  const JobShape shape_;
  const Variant variant_;
  std::vector<std::unique_ptr<SharedSegment>> segments_;
};

Member member(std::string name, Variant variant) {
  return {.name = std::move(name), .make_job = [variant](JobShape shape) -> std::unique_ptr<Job> {
            return std::make_unique<ShmJob>(shape, variant);
          }};
}

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance,
                         testing::Values(member("usual_rings", {size_t{256} << 10, false}),
                                         member("smallest_rings", {4096, false}),
                                         member("own_mappings", {size_t{64} << 10, true}),
                                         member("paced", {size_t{64} << 10, true, true})),
                         member_name);

}  // namespace
}  // namespace ccom::conformance
