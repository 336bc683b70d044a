// SPDX-License-Identifier: Apache-2.0
#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/secret.h"

namespace ccom {
namespace {

Status unsafe(const std::string& path, const std::string& why) {
  return error(ErrorKey::FileNotPrivate, "%s %s", path.c_str(), why.c_str())
      .with_cure(
          "use a path in a directory that only you can write to; a file with a secret must be owned by you, with mode "
          "0600");
}

// Whether the object at `path` is safe to use: owned by this user, without rights for others.
Status check_owner(const std::string& path, const struct stat& info, mode_t kind, const char* kind_name) {
  if (S_ISLNK(info.st_mode)) return unsafe(path, "is a symbolic link");
  if ((info.st_mode & S_IFMT) != kind) return unsafe(path, std::string("is not a ") + kind_name);
  if (info.st_uid != ::geteuid()) {
    return unsafe(path, "belongs to user " + std::to_string(info.st_uid) + ", not to " + std::to_string(::geteuid()));
  }
  return Status::ok();
}

Status check_closed(const std::string& path, const struct stat& info) {
  if ((info.st_mode & 077) == 0) return Status::ok();
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(info.st_mode & 07777));
  return unsafe(path, std::string("has mode ") + mode + ", which gives others access");
}

Status write_privately(const Descriptor& file, const std::string& path, std::string_view contents) {
  if (::fchmod(file.get(), 0600) != 0) return system_error(errno, "set the mode of %s", path.c_str());
  CCOM_TRY(write_all(file, path, contents));
  if (::fsync(file.get()) != 0) return system_error(errno, "write %s", path.c_str());
  return Status::ok();
}

// Where the file system knows no files without names, or there is no /proc.
Status write_named_file(const std::string& path, std::string_view contents) {
  const std::string created = path + ".new-" + std::to_string(random_u64());
  const Descriptor file = create_file(AT_FDCWD, created, 0600);
  if (!file.is_open()) return system_error(errno, "create %s", created.c_str());
  Status status = write_privately(file, created, contents);
  if (status.is_ok() && ::link(created.c_str(), path.c_str()) != 0)
    status = system_error(errno, "create %s", path.c_str());
  (void)::unlink(created.c_str());
  return status;
}

constexpr char kTaken[] = ".old-";

// Those of processes that were killed in take_private_file(). One that is in there now may not learn what it has taken.
void remove_taken_files(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "./" : path.substr(0, slash + 1);
  const std::string prefix = path.substr(slash == std::string::npos ? 0 : slash + 1) + kTaken;
  for_each_entry(folder, [&](const char* name) {
    const std::string_view more = std::string_view(name).starts_with(prefix) ? name + prefix.size() : "";
    if (!more.empty() && more.find_first_not_of("0123456789") == more.npos) (void)::unlink((folder + name).c_str());
  });
}

}  // namespace

Result<std::optional<std::string>> read_private_file(const std::string& path, size_t most_bytes) {
  // O_NONBLOCK: opening a FIFO in place of the file must not block.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return std::optional<std::string>();
    if (errno == ELOOP) return unsafe(path, "is a symbolic link");
    if (errno == ENXIO) return unsafe(path, "is not a regular file");  // a socket
    return system_error(errno, "open %s", path.c_str());
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(errno, "stat %s", path.c_str());
  CCOM_TRY(check_owner(path, info, S_IFREG, "regular file"));
  CCOM_TRY(check_closed(path, info));
  std::string contents(most_bytes + 1, '\0');
  size_t size = 0;
  while (size < contents.size()) {
    const ssize_t got = ::read(file.get(), contents.data() + size, contents.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(errno, "read %s", path.c_str());
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > most_bytes) return unsafe(path, "exceeds " + std::to_string(most_bytes) + " bytes");
  contents.resize(size);
  return std::optional(std::move(contents));
}

// The file has no name until it is complete, so a process that dies leaves none.
Status write_private_file(const std::string& path, std::string_view contents) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file.is_open()) return write_named_file(path, contents);
  CCOM_TRY(write_privately(file, path, contents));
  const std::string created = "/proc/self/fd/" + std::to_string(file.get());
  if (::linkat(AT_FDCWD, created.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return Status::ok();
  if (errno == EEXIST) return system_error(errno, "create %s", path.c_str());
  return write_named_file(path, contents);
}

Result<std::optional<std::string>> take_private_file(const std::string& path, size_t most_bytes) {
  remove_taken_files(path);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return system_error(errno, "stat %s", path.c_str());
  }
  CCOM_TRY(check_owner(path, info, S_IFREG, "regular file"));
  const std::string taken = path + kTaken + std::to_string(random_u64());
  if (::rename(path.c_str(), taken.c_str()) != 0) {
    if (errno == ENOENT) return std::optional<std::string>();
    return system_error(errno, "remove the old %s", path.c_str());
  }
  Result<std::optional<std::string>> contents = read_private_file(taken, most_bytes);
  (void)::unlink(taken.c_str());
  return contents ? std::move(contents) : std::optional<std::string>("");  // whatever it was, it is gone
}

Status remove_private_file(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status::ok() : system_error(errno, "stat %s", path.c_str());
  }
  CCOM_TRY(check_owner(path, info, S_IFREG, "regular file"));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(errno, "remove the old %s", path.c_str());
  return Status::ok();
}

// One that is there may be removed, as abandoned, before it is looked at.
Status make_private_folder(const std::string& path) {
  constexpr int kTries = 100;
  struct stat info {};
  for (int tries = 1;; ++tries) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      return system_error(errno, "create directory %s", path.c_str());
    if (::lstat(path.c_str(), &info) == 0) break;
    if (errno != ENOENT || tries == kTries) return system_error(errno, "stat directory %s", path.c_str());
  }
  CCOM_TRY(check_owner(path, info, S_IFDIR, "folder"));
  return check_closed(path, info);
}

}  // namespace ccom
