// SPDX-License-Identifier: Apache-2.0
#include "bench/buffers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

namespace ccom::bench {
namespace {

using launch::ExitCode;
using launch::Outcome;

constexpr size_t kGuard = 64;
constexpr std::byte kGuardByte{0xc3};

size_t send_bytes(const Case& what) { return extent_of(what).send_count * size_of(what.type); }
size_t larger_bytes(const Case& what) {
  return std::max(send_bytes(what), extent_of(what).recv_count * size_of(what.type));
}

// From one call's buffer of a group to the next one's.
size_t stride_of(size_t size_bytes) { return (size_bytes + kGuard - 1) / kGuard * kGuard; }
size_t of_group(size_t size_bytes, int group) {
  return size_bytes + static_cast<size_t>(group - 1) * stride_of(size_bytes);
}

}  // namespace

void Release::operator()(void* pointer) const {
  if (memory == Memory::Heap)
    std::free(pointer);
  else
    ccomMemFree(pointer);
}

Outcome Area::allocate(size_t size_bytes, size_t unalign, Memory memory) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t total = (page + unalign + size_bytes + kGuard + page - 1) / page * page;
  void* pointer = nullptr;
  if (memory == Memory::Heap)
    pointer = std::aligned_alloc(page, total);
  else
    CCOM_LAUNCH_TRY(launch::outcome_of(ccomMemAlloc(&pointer, total), nullptr, "allocate a buffer"));
  if (pointer == nullptr) return launch::failure(ExitCode::Usage, "a buffer of %zu bytes cannot be allocated", total);
  owned_ = std::unique_ptr<void, Release>(pointer, Release{memory});
  data_ = static_cast<std::byte*>(pointer) + page + unalign;
  size_bytes_ = size_bytes;
  total_bytes_ = total;
  return {};
}

void Area::write_guards() const {
  std::fill_n(data_ - kGuard, kGuard, kGuardByte);
  std::fill_n(data_ + size_bytes_, kGuard, kGuardByte);
}

size_t Area::damaged_guards() const {
  const auto damaged = [](std::byte byte) { return byte != kGuardByte; };
  return static_cast<size_t>(std::count_if(data_ - kGuard, data_, damaged) +
                             std::count_if(data_ + size_bytes_, data_ + size_bytes_ + kGuard, damaged));
}

size_t Buffers::bytes_needed(const Case& what, int group) {
  return of_group(send_bytes(what), group) + of_group(larger_bytes(what), group);
}

Outcome Buffers::allocate(const Case& what, const Options& options) {
  release();
  CCOM_LAUNCH_TRY(send_.allocate(of_group(send_bytes(what), calls_together(options)), options.unalign, options.memory));
  CCOM_LAUNCH_TRY(
      recv_.allocate(of_group(larger_bytes(what), calls_together(options)), options.unalign, options.memory));
  send_stride_ = stride_of(send_bytes(what));
  recv_stride_ = stride_of(larger_bytes(what));
  allocated_for_ = what;
  valid_ = true;
  return {};
}

bool Buffers::fits(const Case& what) const {
  return valid_ && allocated_for_.collective == what.collective && allocated_for_.type == what.type &&
         allocated_for_.count == what.count && allocated_for_.skew == what.skew;
}

void Buffers::release() {
  valid_ = false;
  send_ = Area();
  recv_ = Area();
}

std::byte* Buffers::recv(const Case& what, int rank, int member) const {
  const Layout layout = layout_of(what, rank);
  std::byte* const begin = recv_.data() + static_cast<size_t>(member) * recv_stride_;
  if (layout.has_recv) return begin + layout.recv_offset * size_of(what.type);
  return what.in_place && what.collective == Collective::Reduce ? begin : nullptr;
}

std::byte* Buffers::send(const Case& what, int rank, int member) const {
  const Layout layout = layout_of(what, rank);
  const Area& area = what.in_place ? recv_ : send_;
  const size_t stride = what.in_place ? recv_stride_ : send_stride_;
  std::byte* const begin = area.data() + static_cast<size_t>(member) * stride;
  if (layout.has_send) return begin + layout.send_offset * size_of(what.type);
  return what.in_place && what.collective == Collective::Broadcast ? begin : nullptr;
}

size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace ccom::bench
