// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/start_resources.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <thread>

#include "base/descriptor.h"
#include "base/thread.h"
#include "bootstrap/grpc_use.h"

namespace ccom {
namespace {

// gRPC's own (on a server about ten on two cores), and ccom's for liveness, the rendezvous server and logs.
constexpr size_t kThreads = 16;
// Of the start alone; connections between ranks come on top.
constexpr size_t kDescriptors = 24;
// What one thread allocates, and the address space that must be left when all have.
constexpr size_t kAllocation = 256;
constexpr size_t kAddressSpace = size_t{64} << 20;

}  // namespace

Status check_start_descriptors() {
  std::array<Descriptor, kDescriptors> opened;
  for (Descriptor& one : opened) {
    one = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (one.is_open()) continue;
    const int reason = errno;
    rlimit limit{};
    (void)::getrlimit(RLIMIT_NOFILE, &limit);
    return system_error(reason, "a start needs %zu file descriptors (this process may have %llu in all)", kDescriptors,
                        static_cast<unsigned long long>(limit.rlim_cur))
        .with_key(ErrorKey::TooFewDescriptors)
        .with_cure("raise the limit of open files: ulimit -n 65536, or LimitNOFILE= in systemd");
  }
  return Status::ok();
}

namespace {

// 0, or why the process cannot have that much more address space.
int try_address_space() {
  void* const space = ::mmap(nullptr, kAddressSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return errno;
  ::munmap(space, kAddressSpace);
  return 0;
}

// All at the same time, each until the last one has been tried. Each allocates, because glibc then reserves 64 MiB of
// address space for it, which the next thread inherits: where that is limited, gRPC's threads would fail for it later,
// and its shutdown wait for one that never started.
Status check_threads() {
  std::atomic<bool> is_over = false;
  std::array<std::thread, kThreads> threads;
  int refused = 0;
  for (std::thread& thread : threads) {
    refused = start_thread(thread, "ccom-check", [&is_over] {
      ::operator delete(::operator new(kAllocation, std::nothrow), std::nothrow);
      is_over.wait(false);
    });
    if (refused != 0) break;
  }
  if (refused == 0) refused = try_address_space();
  is_over = true;
  is_over.notify_all();
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  if (refused == 0) return Status::ok();
  return system_error(refused, "a start needs up to %zu threads", kThreads)
      .with_cure("raise the limit of threads: ulimit -u, or pids.max of the container; or of address space: ulimit -v");
}

}  // namespace

Status check_start_resources() {
  CCOM_TRY(check_grpc_after_fork());
  CCOM_TRY(check_start_descriptors());
  return check_threads();
}

}  // namespace ccom
