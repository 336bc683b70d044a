// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace ccom {

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
    path_ = where / "ccom-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // All that is in it, a line each.
  std::string list() const {
    std::string names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
      names += entry.path().string() + "\n";
    return names;
  }

 private:
  std::string path_;
};

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline int entries_of(const std::string& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}
// Of this process.
inline int open_descriptors() { return entries_of("/proc/self/fd"); }
#ifdef __SANITIZE_THREAD__
// ThreadSanitizer starts a thread of its own with the first of the program, here before any test counts threads.
inline const bool kSanitizersThreadRuns = (std::thread([] {}).join(), true);
#endif
inline int running_threads() { return entries_of("/proc/self/task"); }
inline size_t resident_bytes() {
  size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}
inline size_t allocated_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

}  // namespace ccom
