// SPDX-License-Identifier: Apache-2.0
#include "transports/shm/factory.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "transports/shm/pacer.h"
#include "transports/shm/shm_transport.h"

namespace ccom {
namespace {

using shm::Layout;

Status check(const ShmConfig& config, const Layout& layout) {
  const bool ascends =
      std::ranges::adjacent_find(config.local_ranks, std::greater_equal<>()) == config.local_ranks.end();
  if (!ascends || !std::ranges::binary_search(config.local_ranks, config.rank)) {
    return error(Code::InvalidArgument, "shm: rank %d is not in the ascending list of %zu local ranks", config.rank,
                 config.local_ranks.size());
  }
  if (config.channels < 1 || config.channels > kMaxChannels) {
    return error(Code::InvalidArgument, "shm: %d channels, must be 1 to %d", config.channels, kMaxChannels);
  }
  if (!std::has_single_bit(config.ring_bytes) || config.ring_bytes < shm::kPageBytes) {
    return error(Code::InvalidArgument, "shm: rings of %zu bytes, must be a power of two from 4096", config.ring_bytes);
  }
  const size_t segment_bytes = config.segment == nullptr ? 0 : config.segment->bytes().size();
  if (config.offset_bytes % shm::kPageBytes != 0 || config.offset_bytes > segment_bytes ||
      config.ring_bytes > segment_bytes || layout.region_bytes() > segment_bytes - config.offset_bytes) {
    return error(Code::InvalidArgument, "shm: a region of %zu bytes does not fit at %zu into a segment of %zu bytes",
                 layout.region_bytes(), config.offset_bytes, segment_bytes);
  }
  return Status::ok();
}

Status check(const ShmFabric& fabric, const ShmConfig& config) {
  const size_t segment_bytes = config.segment->bytes().size();
  const auto exists = [&fabric](const ShmWire& wire) { return wire.line < fabric.lines; };
  const bool is_whole = std::ranges::all_of(
      fabric.ways, [&exists](const std::vector<ShmWire>& way) { return std::ranges::all_of(way, exists); });
  if (fabric.ways.size() != config.local_ranks.size() || !is_whole || fabric.offset_bytes % shm::kPageBytes != 0 ||
      fabric.offset_bytes > segment_bytes || shm_wires_bytes(fabric.lines) > segment_bytes - fabric.offset_bytes) {
    return error(Code::InvalidArgument, "shm: a fabric of %u wires with routes to %zu ranks does not match %zu ranks",
                 fabric.lines, fabric.ways.size(), config.local_ranks.size());
  }
  return Status::ok();
}

shm::WireLine* lines_of(const SharedSegment& segment, const ShmFabric& fabric) {
  return reinterpret_cast<shm::WireLine*>(segment.bytes().data() + fabric.offset_bytes);
}

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

}  // namespace

size_t shm_region_bytes(int local_ranks, int channels, size_t ring_bytes) {
  return shm::Layout{local_ranks, channels, ring_bytes}.region_bytes();
}

size_t shm_header_bytes(int local_ranks, int channels) { return shm::Layout{local_ranks, channels, 0}.header_bytes(); }

size_t shm_wires_bytes(uint32_t wires) {
  return (wires * sizeof(shm::WireLine) + shm::kPageBytes - 1) / shm::kPageBytes * shm::kPageBytes;
}

std::vector<uint64_t> shm_wire_traffic(const SharedSegment& segment, const ShmFabric& fabric) {
  std::vector<uint64_t> bytes;
  const shm::WireLine* const lines = lines_of(segment, fabric);
  for (uint32_t i = 0; i < fabric.lines; ++i) bytes.push_back(lines[i].bytes.load(std::memory_order_relaxed));
  return bytes;
}

size_t default_ring_bytes(int local_ranks, int channels, size_t max_memory_bytes) {
  constexpr size_t kMaxBytes = size_t{256} << 10;
  const size_t rings = static_cast<size_t>(std::max(local_ranks - 1, 1)) * static_cast<size_t>(std::max(channels, 1));
  return std::clamp(std::bit_floor(max_memory_bytes / rings), shm::kPageBytes, kMaxBytes);
}

Result<std::unique_ptr<Transport>> make_shm_transport(const ShmConfig& config) {
  const shm::Layout layout{static_cast<int>(config.local_ranks.size()), config.channels, config.ring_bytes};
  CCOM_TRY(check(config, layout));
  CCOM_TRY(config.segment->reserve(config.offset_bytes, layout.header_bytes()));
  std::unique_ptr<shm::Pacer> pacer;
  if (config.fabric != nullptr) {
    CCOM_TRY(check(*config.fabric, config));
    CCOM_TRY(config.segment->reserve(config.fabric->offset_bytes, shm_wires_bytes(config.fabric->lines)));
    pacer = std::make_unique<shm::Pacer>(*config.fabric, lines_of(*config.segment, *config.fabric), now_ns);
  }
  return std::unique_ptr<Transport>(std::make_unique<shm::ShmTransport>(config, layout, std::move(pacer)));
}

}  // namespace ccom
