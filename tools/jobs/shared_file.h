// SPDX-License-Identifier: Apache-2.0
//
// Memory that processes of this user share, read from outside: found below /proc, mapped for reading only but for a
// part that a tool has reason to write.
//
// Any process of the user may have made it, and may end, or do anything else to its own descriptors, while it is read.
// So a file is mapped only if its size is sealed: nobody can shrink it under the reader.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/types.h"

namespace ccom {

// Tells files apart, as long as one of them is open.
struct FileNumber {
  uint64_t device = 0, inode = 0;
  friend auto operator<=>(const FileNumber&, const FileNumber&) = default;
};

struct SharedFile {
  Descriptor fd{};
  FileNumber number{};
  uint64_t size_bytes = 0;
};

// A process of this user, for as long as the descriptor of its folder in /proc is open: another process that gets its
// id later is not taken for it.
class ProcessSeen {
 public:
  // Nothing if it is another user's, or has ended, or cannot be looked at.
  static std::optional<ProcessSeen> open(pid_t pid, uid_t user);

  pid_t pid() const { return pid_; }
  // Numbers of its descriptors of a memfd with that name, and inodes of its sockets.
  struct Files {
    std::vector<int> memfds{};
    std::vector<uint64_t> sockets{};
  };
  Files files(const char* memfd_name) const;
  // A sealed file of this user; nothing else is ever opened.
  std::optional<SharedFile> open_file(int fd, uid_t user) const;

 private:
  ProcessSeen(pid_t pid, Descriptor folder) : pid_(pid), folder_(std::move(folder)) {}
  pid_t pid_;
  Descriptor folder_;
};

// Ascending.
std::vector<pid_t> all_processes();

// A part of a file, mapped. Move-only.
class ReadOnlyMapping {
 public:
  // Nothing if the range is not in the file, or cannot be mapped.
  static std::optional<ReadOnlyMapping> map(const SharedFile& file, uint64_t offset, uint64_t size_bytes);
  ReadOnlyMapping(ReadOnlyMapping&& other) noexcept
      : mapped_(std::exchange(other.mapped_, {})), bytes_(std::exchange(other.bytes_, {})) {}
  ReadOnlyMapping& operator=(ReadOnlyMapping&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ReadOnlyMapping();
  ConstBytes bytes() const { return bytes_; }

 private:
  ReadOnlyMapping(Bytes mapped, ConstBytes bytes) : mapped_(mapped), bytes_(bytes) {}
  Bytes mapped_;  // whole pages
  ConstBytes bytes_;
};

// Lets write() have the part of the file, mapped for writing while it runs; returns what that does, or false if the
// range is not in the file, or this user may not write there.
bool write_to(const SharedFile& file, uint64_t offset, uint64_t size_bytes, const std::function<bool(Bytes)>& write);

}  // namespace ccom
