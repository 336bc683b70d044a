// SPDX-License-Identifier: Apache-2.0
#include "tests/processes/isolated.h"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/harness/paths.h"

namespace ccom {
namespace {

constexpr char kBuilt[] = "/tmp/build";

std::string failure(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

bool set_up_loopback() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool is_up = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return is_up;
}

}  // namespace

std::string isolate() {
  if (::geteuid() != 0) return "only root can become somebody else";
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return failure("namespaces");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failure("private mounts");
  if (!set_up_loopback()) return failure("loopback");
  // Before /tmp is covered: the build folder may be in it.
  const int built = ::open_tree(AT_FDCWD, binary_dir().c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (built < 0) return failure("open_tree");
  for (const char* place : {"/tmp", "/dev/shm"}) {
    if (::mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0) return failure(place);
  }
  const bool is_there =
      ::mkdir(kBuilt, 0755) == 0 && ::move_mount(built, "", AT_FDCWD, kBuilt, MOVE_MOUNT_F_EMPTY_PATH) == 0;
  if (!is_there) return failure("move_mount");
  ::close(built);
  return "";
}

std::string seen_by_all(const std::string& built) { return kBuilt + built.substr(binary_dir().string().size()); }

void become(uid_t user, int kept) {
  const auto close_from = [](int first, int last) {
    if (first <= last) ::close_range(static_cast<unsigned>(first), static_cast<unsigned>(last), 0);
  };
  close_from(3, kept < 0 ? INT32_MAX : kept - 1);
  if (kept >= 0) close_from(kept + 1, INT32_MAX);
  if (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(99);
}

}  // namespace ccom
