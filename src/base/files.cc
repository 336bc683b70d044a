// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace ccom {

Result<std::string> read_beginning(const std::string& path, size_t most_bytes) {
  const Descriptor file =
      Descriptor::from([&path] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (!file.is_open()) return system_error(errno, "open %s", path.c_str());
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error(errno, "stat %s", path.c_str());
  if (!S_ISREG(info.st_mode)) return error(Code::SystemError, "open %s: not a regular file", path.c_str());
  std::string text;
  char buffer[4096];
  while (text.size() < most_bytes) {
    const ssize_t got = ::read(file.get(), buffer, std::min(sizeof buffer, most_bytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(errno, "read %s", path.c_str());
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

Result<std::string> read_file(const std::string& path, size_t most_bytes) {
  CCOM_TRY_ASSIGN(std::string text, read_beginning(path, most_bytes + 1));
  if (text.size() > most_bytes)
    return error(Code::SystemError, "read %s: it has more than %zu bytes", path.c_str(), most_bytes);
  return text;
}

Descriptor create_file(int folder, const std::string& name, mode_t mode) {
  constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  return Descriptor::from([&] { return ::openat(folder, name.c_str(), kNew, mode); });
}

Status write_all(const Descriptor& file, const std::string& path, std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(file.get(), contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error(written < 0 ? errno : ENOSPC, "write %s", path.c_str());
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

void for_each_entry(const std::string& path, const std::function<void(const char*)>& use) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr) return;
  while (const dirent* entry = ::readdir(folder.get())) use(entry->d_name);
}

}  // namespace ccom
