// SPDX-License-Identifier: Apache-2.0
//
// The memfd itself; segment_handover.cc passes it on.
#include "memory/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cinttypes>

#include "base/descriptor.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "base/page.h"
#include "base/time.h"
#include "memory/available_memory.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace ccom {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Small enough that a process whose timers interrupt system calls still gets on.
constexpr uint64_t kMostStepBytes = uint64_t{16} << 20;
constexpr uint64_t kLeastStepBytes = uint64_t{64} << 10;
// A step takes at most this part of what is left.
constexpr uint64_t kStepsInRoom = 256;
// Left to everybody else when memory is taken.
constexpr uint64_t kSpareBytes = uint64_t{16} << 20;

int create_memfd() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create("ccom", flags | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create("ccom", flags);  // before Linux 6.3
}

// Asked beforehand, since the kernel answers a breach with SIGXFSZ.
Status check_file_size_limit(uint64_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return Status::ok();
  if (size_bytes <= limit.rlim_cur) return Status::ok();
  return error(ErrorKey::FileSizeLimit, "shared segment of %" PRIu64 " bytes: the file size limit is %" PRIu64 " bytes",
               size_bytes, static_cast<uint64_t>(limit.rlim_cur))
      .with_cure("raise ulimit -f");
}

Status check_available(uint64_t size_bytes, uint64_t available) {
  if (size_bytes <= available - std::min(available, kSpareBytes)) return Status::ok();
  return error(ErrorKey::SharedMemoryFull,
               "reserve %" PRIu64 " bytes of shared memory: only %" PRIu64 " bytes are available", size_bytes,
               available)
      .with_cure("run fewer ranks on this host, lower CCOM_MAX_MEMORY, or raise the container's memory limit");
}

// What is left of a step that this process has looked for, for those who take little soon after: to look takes a
// millisecond where the control group's statistics are slow, and a communicator takes memory in several places.
class RestOfStep {
 public:
  // How much of `size_bytes` may be taken without another look.
  uint64_t take(uint64_t size_bytes) {
    const Lock lock(mutex_);
    const uint64_t taken = until_.passed() ? 0 : std::min(size_bytes, left_);
    left_ -= taken;
    return taken;
  }
  void leave(uint64_t bytes) {
    const Lock lock(mutex_);
    left_ = bytes;
    until_ = Deadline::after(kLooked);
  }

 private:
  static constexpr std::chrono::milliseconds kLooked{100};
  Mutex mutex_;
  uint64_t left_ CCOM_GUARDED_BY(mutex_) = 0;
  Deadline until_ CCOM_GUARDED_BY(mutex_) = Deadline::after(std::chrono::milliseconds(0));
};
RestOfStep& rest_of_step() {
  static constinit PerProcess<RestOfStep> rest;
  return rest.get();
}

// Other ranks look and take at the same time. So each looks again after every step, for all that it still needs; and
// where little is left, steps are so small that what all have seen and not yet taken stays within the spare bytes.
Status take_memory(int fd, size_t offset_bytes, size_t size_bytes) {
  uint64_t step = rest_of_step().take(size_bytes);
  while (size_bytes > 0) {
    if (step == 0) {
      const uint64_t available = available_memory_bytes();
      CCOM_TRY(check_available(size_bytes, available));
      const uint64_t most = std::clamp(std::bit_floor(available / kStepsInRoom), kLeastStepBytes, kMostStepBytes);
      step = std::min<uint64_t>(size_bytes, most);
      rest_of_step().leave(most - step);
    }
    if (::fallocate(fd, 0, static_cast<off_t>(offset_bytes), static_cast<off_t>(step)) != 0) {
      if (errno == EINTR) continue;
      return system_error(errno, "reserve %zu bytes of shared memory at %zu", size_bytes, offset_bytes);
    }
    offset_bytes += step;
    size_bytes -= step;
    step = 0;
  }
  return Status::ok();
}

// Some processors (AMD's since Zen) find a line of the first cache by a hash of its address in which the upper half
// does not count: of lines that are alike in it only one stays. The kernel begins large mappings at huge pages, so that
// one place in several segments is alike. So each segment of a process begins at another huge page of these
// (docs/decisions/0018-places-of-segments.md).
constexpr size_t kPlaces = 32;

// Address space for a segment at any place; empty where it is short.
Bytes take_room(size_t size_bytes) {
  const size_t pages = (size_bytes + page_bytes() - 1) / page_bytes();
  const size_t room_bytes = pages * page_bytes() + kPlaces * kHugePageBytes;
  void* const room = ::mmap(nullptr, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room == MAP_FAILED ? Bytes() : Bytes(static_cast<std::byte*>(room), room_bytes);
}

std::byte* next_place(Bytes room) {
  static constinit std::atomic<size_t> next{0};
  const auto begin = reinterpret_cast<uintptr_t>(room.data());
  const size_t place = next.fetch_add(1, std::memory_order_relaxed) * kHugePageBytes;
  return room.data() + (place - begin) % (kPlaces * kHugePageBytes);
}

void unmap(std::byte* begin, std::byte* end) {
  if (begin < end) ::munmap(begin, static_cast<size_t>(end - begin));
}

Result<Bytes> map_memory(int fd, size_t size_bytes) {
  const Bytes room = take_room(size_bytes);
  std::byte* const place = room.empty() ? nullptr : next_place(room);
  const int flags = MAP_SHARED | (room.empty() ? 0 : MAP_FIXED);
  void* const address = ::mmap(place, size_bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  const int number = errno;
  if (!room.empty()) {  // gives back what is not used of it
    const size_t used = address == MAP_FAILED ? 0 : room.size() - kPlaces * kHugePageBytes;
    unmap(room.data(), place);
    unmap(place + used, room.data() + room.size());
  }
  if (address == MAP_FAILED) return system_error(number, "map a shared segment of %zu bytes", size_bytes);
  return Bytes(static_cast<std::byte*>(address), size_bytes);
}

// 0: there is none.
uint64_t inode_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? found.st_ino : 0;
}

// Of another process, checked.
Result<Bytes> map_sealed(int fd, size_t size_bytes) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error(errno, "attach to a shared segment: fstat");
  if (size_bytes == 0 || info.st_size < 0 || static_cast<uint64_t>(info.st_size) != size_bytes) {
    return error(Code::InvalidArgument, "attach to a shared segment: it has %lld bytes, expected %zu",
                 static_cast<long long>(info.st_size), size_bytes);
  }
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0) return system_error(errno, "attach to a shared segment: read its seals");
  if ((seals & kSeals) != kSeals) {
    return error(Code::InvalidArgument, "attach to a shared segment: its size is not sealed (seals 0x%x)",
                 static_cast<unsigned>(seals));
  }
  return map_memory(fd, size_bytes);
}

}  // namespace

// /proc may number processes otherwise than this one's namespace.
std::optional<ShownFile> ShownFile::of(int fd) {
  if (::prctl(PR_GET_DUMPABLE) != 1) return std::nullopt;
  const ShownFile file{::getpid(), fd, inode_of(fd)};
  return file.open() ? std::optional(file) : std::nullopt;
}

Result<Descriptor> ShownFile::open() const {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  Descriptor opened = Descriptor::from([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); });
  if (!opened.is_open()) return system_error(errno, "open memory of process %d", pid);
  if (inode_of(opened.get()) != inode)
    return error(Code::NotSupported, "process %d has another file in its memory's place", pid);
  return opened;
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::create(size_t size_bytes, size_t reserve_bytes) {
  if (size_bytes == 0 || size_bytes > PTRDIFF_MAX || reserve_bytes > size_bytes) {
    return error(Code::InvalidArgument, "create a shared segment of %zu bytes with %zu reserved", size_bytes,
                 reserve_bytes);
  }
  CCOM_TRY(check_file_size_limit(size_bytes));
  Descriptor fd(create_memfd());
  if (fd.get() < 0) return system_error(errno, "create a shared segment of %zu bytes: memfd_create", size_bytes);
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return system_error(errno, "create a shared segment: set its size to %zu bytes", size_bytes);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return system_error(errno, "seal a shared segment");
  CCOM_TRY_ASSIGN(const Bytes bytes, map_memory(fd.get(), size_bytes));
  std::unique_ptr<SharedSegment> segment(new SharedSegment(fd.release(), bytes));
  CCOM_TRY(segment->reserve(0, reserve_bytes));
  return segment;
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::attach(int fd, size_t size_bytes) {
  Descriptor owner(fd);
  CCOM_TRY_ASSIGN(const Bytes bytes, map_sealed(fd, size_bytes));
  return std::unique_ptr<SharedSegment>(new SharedSegment(owner.release(), bytes));
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::attach(const ShownFile& file, size_t size_bytes) {
  CCOM_TRY_ASSIGN(const Descriptor opened, file.open());
  CCOM_TRY_ASSIGN(const Bytes bytes, map_sealed(opened.get(), size_bytes));
  return std::unique_ptr<SharedSegment>(new SharedSegment(-1, bytes, file));
}

SharedSegment::~SharedSegment() {
  ::munmap(bytes_.data(), bytes_.size());
  if (const int fd = fd_.load(std::memory_order_relaxed); fd >= 0) ::close(fd);
}

int SharedSegment::fd() const {
  const Result<int> opened = file();
  return opened ? *opened : -1;
}

// Of two threads that open it one keeps it.
Result<int> SharedSegment::file() const {
  if (const int fd = fd_.load(std::memory_order_acquire); fd >= 0) return fd;
  CCOM_TRY_ASSIGN(Descriptor opened, shown_.open());
  int kept = -1;
  if (!fd_.compare_exchange_strong(kept, opened.get(), std::memory_order_acq_rel)) return kept;
  return opened.release();
}

Status SharedSegment::reserve(size_t offset_bytes, size_t size_bytes) {
  if (offset_bytes > bytes_.size() || size_bytes > bytes_.size() - offset_bytes) {
    return error(Code::InvalidArgument, "reserve %zu bytes at %zu of a shared segment of %zu bytes", size_bytes,
                 offset_bytes, bytes_.size());
  }
  if (size_bytes == 0) return Status::ok();
  CCOM_TRY(check_file_size_limit(offset_bytes + size_bytes));
  CCOM_TRY_ASSIGN(const int fd, file());
  return take_memory(fd, offset_bytes, size_bytes);
}

}  // namespace ccom
