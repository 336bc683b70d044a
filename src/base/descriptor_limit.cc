// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor_limit.h"

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/descriptor.h"
#include "base/log.h"

namespace ccom {
namespace {

// For the program, and for what is open for a short time only.
constexpr rlim_t kSpare = 64;

// No more than so many are in use, or were when most were. The next number says how many the program has.
rlim_t most_in_use(rlim_t limit) {
  const Descriptor next = Descriptor::from([] { return ::eventfd(0, EFD_CLOEXEC); });
  return next.is_open() ? static_cast<rlim_t>(greatest_descriptor()) + 1 : limit;
}

// Slow where there are many.
size_t count_open() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  size_t entries = 0;
  while (::readdir(folder) != nullptr) ++entries;
  ::closedir(folder);
  return entries - std::min<size_t>(entries, 3);  // ".", "..", and its own
}

}  // namespace

Status make_room_for_descriptors(size_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const rlim_t wanted = most_in_use(limit.rlim_cur) + needed + kSpare;
  if (wanted <= limit.rlim_cur) return {};
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(wanted, 2 * before));
  if (limit.rlim_cur > before && ::setrlimit(RLIMIT_NOFILE, &limit) == 0)
    log(LogLevel::Info, "raised the soft limit of open files from %llu to %llu",
        static_cast<unsigned long long>(before), static_cast<unsigned long long>(limit.rlim_cur));
  const size_t open = wanted <= limit.rlim_cur ? 0 : count_open();
  if (open + needed <= limit.rlim_cur) return {};
  return error(ErrorKey::TooFewDescriptors,
               "a start needs %zu file descriptors beside the %zu that are open (this process may have %llu in all)",
               needed, open, static_cast<unsigned long long>(limit.rlim_cur))
      .with_cure("raise the hard limit of open files: ulimit -n 65536, or LimitNOFILE= in systemd");
}

}  // namespace ccom
