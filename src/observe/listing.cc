// SPDX-License-Identifier: Apache-2.0
#include "observe/listing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/descriptor.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/page.h"
#include "base/text.h"
#include "observe/rank_activity.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace ccom {
namespace {

constexpr size_t kBytes = sizeof(Directory);

int create_memfd() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create(kDirectoryName, flags | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create(kDirectoryName, flags);  // before Linux 6.3
}

// The kernel answers a breach of the limit with SIGXFSZ.
bool may_have_files_of(size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

class OwnDirectory {
 public:
  // Nothing if there is no place.
  std::optional<size_t> add(const CommunicatorEntry& entry, const ActivityRecord& record) CCOM_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (!open()) return std::nullopt;
    Shown shown{&record, entry.communicator, entry.name};
    size_t index = used_;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (index == Directory::kEntries || !take_memory(index)) {
      directory_->unlisted.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    } else {
      free_.reserve(used_ + 1);  // remove() needs no memory
      shown_.resize(used_ + 1);
      ++used_;
    }
    repeated_ += lists(entry.communicator) ? 1 : 0;
    shown_[index] = std::move(shown);
    directory_->put(index, entry);
    return index;
  }
  void remove(size_t index) CCOM_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    const uint64_t communicator = std::exchange(shown_[index], {}).communicator;
    repeated_ -= lists(communicator) ? 1 : 0;
    directory_->clear(index);
    free_.push_back(index);
    if (free_.size() == used_) close();
  }
  // Those of other communicators, if the process has one rank of each.
  template <typename Fn>
  void for_each_other(const ActivityRecord& record, Fn fn) CCOM_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    if (repeated_ > 0) return;
    for (const Shown& shown : shown_)
      if (shown.record != nullptr && shown.record != &record) fn(shown);
  }
  // Whether for_each_other() finds any, of a record that is listed.
  bool has_others() CCOM_EXCLUDES(mutex_) {
    const Lock lock(mutex_);
    return repeated_ == 0 && used_ - free_.size() > 1;
  }
  struct Shown {
    const ActivityRecord* record = nullptr;  // null: the place is free
    uint64_t communicator = 0;
    std::string name{};
  };

 private:
  bool open() CCOM_REQUIRES(mutex_) {
    if (was_tried_) return directory_ != nullptr;
    was_tried_ = true;
    if (!may_have_files_of(kBytes)) return false;
    file_ = Descriptor::from([] { return create_memfd(); });
    if (!file_.is_open() || ::ftruncate(file_.get(), kBytes) != 0 ||
        ::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 || !take_memory(0)) {
      log(LogLevel::Info, "tools will not find this process: make its directory: %s", std::strerror(errno));
      file_ = Descriptor();
      return false;
    }
    void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (memory == MAP_FAILED) {
      file_ = Descriptor();
      return false;
    }
    ::madvise(memory, kBytes, MADV_DONTFORK);
    directory_ = static_cast<Directory*>(memory);
    directory_->magic.store(Directory::kMagic, std::memory_order_release);
    return true;
  }
  // Of a process without communicators nothing remains.
  void close() CCOM_REQUIRES(mutex_) {
    ::munmap(directory_, kBytes);
    directory_ = nullptr;
    file_ = Descriptor();
    was_tried_ = false;
    taken_ = used_ = 0;
    free_.clear();
    shown_.clear();
  }
  bool lists(uint64_t communicator) const CCOM_REQUIRES(mutex_) {
    return std::ranges::any_of(shown_, [communicator](const Shown& shown) {
      return shown.record != nullptr && shown.communicator == communicator;
    });
  }
  // So that touching the entry cannot fail.
  bool take_memory(size_t index) CCOM_REQUIRES(mutex_) {
    const size_t end = offsetof(Directory, entries) + (index + 1) * sizeof(Directory::Entry);
    if (end <= taken_) return true;
    const size_t wanted = std::min((end + page_bytes() - 1) / page_bytes() * page_bytes(), kBytes);
    int result = 0;
    do result = ::fallocate(file_.get(), 0, static_cast<off_t>(taken_), static_cast<off_t>(wanted - taken_));
    while (result != 0 && errno == EINTR);
    if (result == 0) taken_ = wanted;
    return result == 0;
  }

  Mutex mutex_;
  bool was_tried_ CCOM_GUARDED_BY(mutex_) = false;
  Descriptor file_ CCOM_GUARDED_BY(mutex_);
  Directory* directory_ CCOM_GUARDED_BY(mutex_) = nullptr;
  size_t taken_ CCOM_GUARDED_BY(mutex_) = 0, used_ CCOM_GUARDED_BY(mutex_) = 0;
  std::vector<size_t> free_ CCOM_GUARDED_BY(mutex_);
  std::vector<Shown> shown_ CCOM_GUARDED_BY(mutex_);  // by index
  size_t repeated_ CCOM_GUARDED_BY(mutex_) = 0;       // entries of communicators of which there is another one
};
OwnDirectory& own_directory() {
  static constinit PerProcess<OwnDirectory> instance;
  return instance.get();
}

}  // namespace

Listing::Listing(const CommunicatorEntry& entry, const ActivityRecord& record) noexcept
    : generation_(fork_generation()) {
  try {
    index_ = own_directory().add(entry, record).value_or(kNone);
  } catch (const std::bad_alloc&) {
  }
}

Listing::~Listing() {
  if (is_listed() && generation_ == fork_generation()) own_directory().remove(index_);
}

std::string call_elsewhere(const ActivityRecord& record, int64_t now_ns) {
  std::string text;
  double longest = -1;
  own_directory().for_each_other(record, [&](const OwnDirectory::Shown& other) {
    const RankActivity activity = read_unresolved_activity(*other.record, now_ns);
    if (activity.state != RankActivity::State::InCall || activity.seconds <= longest) return;
    longest = activity.seconds;
    text = "in " + name_of(activity.call) + " of " + title_of_communicator(other.communicator, other.name);
    if (!activity.site.empty()) text += " at " + activity.site;
  });
  return text;
}

bool has_other_communicators() { return own_directory().has_others(); }

}  // namespace ccom
