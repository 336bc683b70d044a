// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/elements.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "doors/mpi/communicators.h"

namespace ccom::mpi {
namespace {

constexpr size_t kMostKept = size_t{1} << 20;
constexpr uint64_t kMostPacked = uint64_t{1} << 30;  // at once: MPI's positions are ints

thread_local std::vector<std::byte> kept;

}  // namespace

Elements::Elements(Handle handle) : type(mpi().plain(handle)) {
  if (const Type* const known = handles().type(type)) {
    is_plain = true;
    bytes = known->bytes;
    extent = known->bytes;
    return;
  }
  int size = 0, position = 0;
  Aint low = 0;
  std::byte nothing{};
  // MPI packs no elements of a type that is null or not committed.
  is_valid = mpi().Pack(&nothing, 0, type, &nothing, 0, &position, Process::get().self) == kSuccess &&
             mpi().Type_size(type, &size) == kSuccess && size >= 0 &&
             mpi().Type_get_extent(type, &low, &extent) == kSuccess;
  bytes = is_valid ? static_cast<uint64_t>(size) : 0;
}

void Elements::pack(const void* from, int64_t count, std::byte* to, Handle comm) const {
  if (is_plain || bytes == 0) {
    if (count > 0) std::memmove(to, from, bytes_of(count));
    return;
  }
  const auto most = static_cast<int64_t>(std::max<uint64_t>(1, kMostPacked / bytes));
  for (int64_t done = 0; done < count; done += most) {
    const int64_t now = std::min(most, count - done);
    int position = 0;
    mpi().Pack(at(from, done), static_cast<int>(now), type, to + bytes_of(done), static_cast<int>(bytes_of(now)),
               &position, comm);
  }
}

void Elements::unpack(const std::byte* from, void* to, int64_t count, Handle comm) const {
  if (is_plain || bytes == 0) {
    if (count > 0 && bytes > 0) std::memmove(to, from, bytes_of(count));
    return;
  }
  const auto most = static_cast<int64_t>(std::max<uint64_t>(1, kMostPacked / bytes));
  for (int64_t done = 0; done < count; done += most) {
    const int64_t now = std::min(most, count - done);
    int position = 0;
    mpi().Unpack(from + bytes_of(done), static_cast<int>(bytes_of(now)), &position, at(to, done), static_cast<int>(now),
                 type, comm);
  }
}

Room::~Room() {
  if (memory_.size() <= kMostKept && memory_.size() > kept.size()) kept = std::move(memory_);
}

std::byte* Room::take(uint64_t bytes) {
  if (memory_.size() < bytes) {
    memory_ = std::exchange(kept, {});
    if (memory_.size() < bytes) memory_.resize(bytes);
  }
  return memory_.data();
}

const std::byte* Room::packed(const Elements& of, const void* buffer, int64_t count, Handle comm) {
  if (of.is_plain) return static_cast<const std::byte*>(buffer);
  std::byte* const copy = take(of.bytes_of(count));
  of.pack(buffer, count, copy, comm);
  return copy;
}

}  // namespace ccom::mpi
