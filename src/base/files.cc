// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <dirent.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace ccom {

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
