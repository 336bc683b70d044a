// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/page.h"

namespace ccom {
namespace {

std::string path_of(const Descriptor& folder, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(folder.get()) + "/" + name;
}

template <typename T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

// Real, effective, saved and of the file system: one that is more than this user is none of it.
bool belongs_to(const Descriptor& folder, uid_t user) {
  const Descriptor file = Descriptor::from([&] { return ::openat(folder.get(), "status", O_RDONLY | O_CLOEXEC); });
  if (!file.is_open()) return false;
  std::array<char, 4096> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size() - 1);
  const char* const line = got <= 0 ? nullptr : std::strstr(text.data(), "\nUid:");
  std::array<unsigned, 4> ids{};
  return line != nullptr && std::sscanf(line, "\nUid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4 &&
         std::ranges::all_of(ids, [user](unsigned id) { return id == user; });
}

struct Range {
  uint64_t offset, size_bytes;
};

// From the beginning of a page to the end of the range.
std::optional<Bytes> map_pages(const Descriptor& fd, uint64_t file_bytes, Range range, int protection) {
  if (range.size_bytes == 0 || range.offset > file_bytes || range.size_bytes > file_bytes - range.offset)
    return std::nullopt;
  const uint64_t begin = range.offset / page_bytes() * page_bytes();
  const size_t mapped_bytes = range.offset - begin + range.size_bytes;
  void* const address = ::mmap(nullptr, mapped_bytes, protection, MAP_SHARED, fd.get(), static_cast<off_t>(begin));
  if (address == MAP_FAILED) return std::nullopt;
  return Bytes(static_cast<std::byte*>(address), mapped_bytes);
}

}  // namespace

std::optional<ProcessSeen> ProcessSeen::open(pid_t pid, uid_t user) {
  const std::string path = "/proc/" + std::to_string(pid);
  Descriptor folder = Descriptor::from([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!folder.is_open() || !belongs_to(folder, user)) return std::nullopt;
  return ProcessSeen(pid, std::move(folder));
}

ProcessSeen::Files ProcessSeen::files(const char* memfd_name) const {
  const std::string wanted = std::string("/memfd:") + memfd_name + " (deleted)";
  constexpr std::string_view kSocket = "socket:[";
  Files found;
  for_each_entry(path_of(folder_, "fd"), [&](const char* name) {
    const std::optional<int> fd = number_in<int>(name);
    if (!fd) return;
    std::array<char, 128> target{};
    const ssize_t length =
        ::readlinkat(folder_.get(), ("fd/" + std::string(name)).c_str(), target.data(), target.size());
    if (length <= 0) return;
    std::string_view text(target.data(), static_cast<size_t>(length));
    if (text == wanted) found.memfds.push_back(*fd);
    if (!text.starts_with(kSocket) || !text.ends_with(']')) return;
    text.remove_prefix(kSocket.size());
    text.remove_suffix(1);
    if (const auto inode = number_in<uint64_t>(text)) found.sockets.push_back(*inode);
  });
  return found;
}

// First without opening it, which a device or a pipe would notice.
std::optional<SharedFile> ProcessSeen::open_file(int fd, uid_t user) const {
  const std::string name = "fd/" + std::to_string(fd);
  const Descriptor handle = Descriptor::from([&] { return ::openat(folder_.get(), name.c_str(), O_PATH | O_CLOEXEC); });
  struct stat info {};
  if (!handle.is_open() || ::fstat(handle.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != user)
    return std::nullopt;
  const std::string again = "/proc/self/fd/" + std::to_string(handle.get());
  SharedFile file;
  file.fd = Descriptor::from([&] { return ::open(again.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (!file.fd.is_open()) return std::nullopt;
  const int seals = ::fcntl(file.fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(file.fd.get(), &info) != 0 || info.st_size < 0)
    return std::nullopt;
  file.number = {info.st_dev, info.st_ino};
  file.size_bytes = static_cast<uint64_t>(info.st_size);
  return file;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> found;
  for_each_entry("/proc", [&](const char* name) {
    if (const auto pid = number_in<pid_t>(name)) found.push_back(*pid);
  });
  std::ranges::sort(found);
  return found;
}

std::optional<ReadOnlyMapping> ReadOnlyMapping::map(const SharedFile& file, uint64_t offset, uint64_t size_bytes) {
  const auto pages = map_pages(file.fd, file.size_bytes, {offset, size_bytes}, PROT_READ);
  if (!pages) return std::nullopt;
  return ReadOnlyMapping(*pages, pages->subspan(pages->size() - size_bytes));
}

ReadOnlyMapping::~ReadOnlyMapping() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

bool write_to(const SharedFile& file, uint64_t offset, uint64_t size_bytes, const std::function<bool(Bytes)>& write) {
  const std::string again = "/proc/self/fd/" + std::to_string(file.fd.get());
  const Descriptor fd = Descriptor::from([&] { return ::open(again.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK); });
  if (!fd.is_open()) return false;
  const auto pages = map_pages(fd, file.size_bytes, {offset, size_bytes}, PROT_READ | PROT_WRITE);
  if (!pages) return false;
  const bool is_written = write(pages->subspan(pages->size() - size_bytes));
  ::munmap(pages->data(), pages->size());
  return is_written;
}

}  // namespace ccom
