// SPDX-License-Identifier: Apache-2.0
#include "base/owned_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/files.h"

namespace ccom {
namespace {

bool is_named(std::string_view name, std::string_view prefix, size_t more) {
  if (!name.starts_with(prefix) || name.size() != prefix.size() + more) return false;
  return std::ranges::all_of(name.substr(prefix.size()),
                             [](unsigned char letter) { return std::isalnum(letter) != 0; });
}

}  // namespace

// Looks again when it has the lock: the folder may have been removed in between.
Descriptor lock_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!folder.is_open() || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 || ::fstat(folder.get(), &info) != 0 ||
      info.st_nlink == 0 || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return Descriptor();
  return folder;
}

void remove_abandoned_folders(const std::string& place, std::string_view prefix, size_t more, std::string_view file) {
  for_each_entry(place, [&](const char* name) {
    if (!is_named(name, prefix, more)) return;
    const std::string path = place + "/" + name;
    const Descriptor lock = lock_folder(path);
    if (!lock.is_open()) return;
    for_each_entry(path, [&](const char* entry) {
      if (std::string_view(entry).starts_with(file)) (void)::unlinkat(lock.get(), entry, 0);
    });
    (void)::rmdir(path.c_str());
  });
}

}  // namespace ccom
