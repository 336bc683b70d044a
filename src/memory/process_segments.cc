// SPDX-License-Identifier: Apache-2.0
#include "memory/process_segments.h"

#include <condition_variable>
#include <map>

#include "base/fork.h"
#include "base/mutex.h"

namespace ccom {
namespace {

struct Entry {
  Status status;
  std::weak_ptr<SharedSegment> segment;
};

struct Table {
  Mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Entry> entries CCOM_GUARDED_BY(mutex);
};
Table& table() {
  static constinit PerProcess<Table> instance;
  return instance.get();
}

}  // namespace

void put_segment(const std::string& path, Result<std::shared_ptr<SharedSegment>> segment) {
  const Lock lock(table().mutex);
  std::erase_if(table().entries,
                [](const auto& entry) { return entry.second.status.is_ok() && entry.second.segment.expired(); });
  table().entries[path] = segment ? Entry{{}, *segment} : Entry{std::move(segment).error(), {}};
  table().changed.notify_all();
}

Result<std::shared_ptr<SharedSegment>> await_segment(const std::string& path, const WaitLimit& limit) {
  Lock lock(table().mutex);
  auto found = table().entries.end();
  const auto is_there = [&]() CCOM_REQUIRES(table().mutex) {
    found = table().entries.find(path);
    return found != table().entries.end();
  };
  while (!lock.wait_until(table().changed, limit.next_look().when(), is_there)) {
    lock.unlock();
    const bool is_reached = limit.is_reached();
    lock.lock();
    if (is_reached)
      return error(Code::Timeout, "another rank of this process has not mapped the host's memory in time");
  }
  if (!found->second.status.is_ok()) return found->second.status;
  if (auto segment = found->second.segment.lock()) return segment;
  return error(Code::RemoteError, "another rank of this process has given up");
}

}  // namespace ccom
