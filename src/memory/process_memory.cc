// SPDX-License-Identifier: Apache-2.0
#include "memory/process_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "base/descriptor.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/never_destroyed.h"
#include "base/options.h"

namespace ccom {
namespace {

struct Registry {
  Mutex mutex;
  bool tried CCOM_GUARDED_BY(mutex) = false;
  std::unique_ptr<Arena> arena CCOM_GUARDED_BY(mutex);
  pid_t owner CCOM_GUARDED_BY(mutex) = 0;                  // a forked child has no part in it
  Arena* forking CCOM_GUARDED_BY(mutex) = nullptr;         // the forking process's own, while it forks
  std::map<void*, size_t> outside CCOM_GUARDED_BY(mutex);  // bytes of what was allocated without an arena
  std::map<uint64_t, std::weak_ptr<SharedSegment>> other_arenas CCOM_GUARDED_BY(mutex);  // by process number
};
NeverDestroyed<Registry> holder;
Registry& registry() { return holder.value; }

Arena* own_arena(const Registry& all) CCOM_REQUIRES(all.mutex) {
  return all.owner == ::getpid() ? all.arena.get() : nullptr;
}

// The lock that one of them takes another one gives back, which clang cannot follow.
void before_fork() CCOM_NO_THREAD_SAFETY_ANALYSIS {
  Registry& all = registry();
  all.mutex.lock();
  all.forking = own_arena(all);
  if (all.forking != nullptr) all.forking->before_fork();
}
void after_fork_in_parent() CCOM_NO_THREAD_SAFETY_ANALYSIS {
  Registry& all = registry();
  if (all.forking != nullptr) all.forking->after_fork_in_parent();
  all.mutex.unlock();
}
void after_fork_in_child() CCOM_NO_THREAD_SAFETY_ANALYSIS {
  Registry& all = registry();
  if (all.forking != nullptr) all.forking->after_fork_in_child();
  all.mutex.unlock();
}

// When the library is loaded: later, pthread_atfork() waits for a fork that is under way. After the descriptors',
// because arenas open and close some under this lock.
const int registered =
    (Descriptor::wait_at_forks(), ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child));

Result<std::unique_ptr<Arena>> make_arena() {
  CCOM_TRY_ASSIGN(const int64_t bytes, integer_option("CCOM_ARENA_BYTES", 0, int64_t{1} << 46));
  if (bytes == 0) return std::unique_ptr<Arena>();
  return Arena::create(static_cast<size_t>(bytes));
}

Arena* arena_of(Registry& all) CCOM_REQUIRES(all.mutex) {
  if (!all.tried) {
    all.tried = true;
    all.owner = ::getpid();
    Result<std::unique_ptr<Arena>> made = make_arena();
    if (made) {
      all.arena = *std::move(made);
    } else {
      log(LogLevel::Warn, "no memory can be mapped by other ranks, calls will copy: %s",
          made.error().message().c_str());
    }
  }
  return own_arena(all);
}

// Ordinary memory: nobody else is to reach it, and a forked child gets a copy.
Result<void*> allocate_outside(Registry& all, size_t size_bytes) CCOM_REQUIRES(all.mutex) {
  void* const pointer = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer == MAP_FAILED) return system_error(errno, "allocate %zu bytes", size_bytes);
  all.outside.emplace(pointer, size_bytes);
  return pointer;
}

bool contains(const Bytes& bytes, const void* pointer) {
  return pointer >= bytes.data() && pointer < bytes.data() + bytes.size();
}

}  // namespace

Arena* process_arena() {
  const Lock lock(registry().mutex);
  return arena_of(registry());
}

const uint64_t& process_number() {
  struct Number {
    const uint64_t value = random_u64();
  };
  static constinit PerProcess<Number> number;
  return number.get().value;
}

Result<void*> allocate_shareable(size_t bytes) {
  const Lock lock(registry().mutex);
  if (Arena* const arena = arena_of(registry())) return arena->allocate(bytes);
  return allocate_outside(registry(), bytes == 0 ? 1 : bytes);
}

Status free_shareable(void* pointer) {
  if (pointer == nullptr) return {};
  Registry& all = registry();
  const Lock lock(all.mutex);
  if (const auto found = all.outside.find(pointer); found != all.outside.end()) {
    ::munmap(pointer, found->second);
    all.outside.erase(found);
    return {};
  }
  if (all.arena != nullptr && contains(all.arena->segment().bytes(), pointer)) {
    // A forked child's copy goes with the child.
    return own_arena(all) != nullptr ? all.arena->free(pointer) : Status();
  }
  return error(Code::InvalidArgument, "pointer %p was not allocated by ccomMemAlloc, or is freed already", pointer);
}

bool register_memory(void* begin, size_t bytes) {
  Arena* const arena = process_arena();
  if (arena == nullptr) return false;
  if (contains(arena->segment().bytes(), begin)) return true;
  const Status adopted = arena->adopt(begin, bytes);
  if (!adopted.is_ok()) {
    log(LogLevel::Info, "%zu bytes at %p stay out of reach of other ranks: %s", bytes, begin,
        adopted.message().c_str());
  }
  return adopted.is_ok();
}

Status deregister_memory(void* begin, size_t bytes) {
  Arena* const arena = process_arena();
  if (arena == nullptr || contains(arena->segment().bytes(), begin)) return {};
  return arena->give_back(begin, bytes);
}

std::shared_ptr<SharedSegment> mapped_arena(uint64_t process) {
  const Lock lock(registry().mutex);
  const auto found = registry().other_arenas.find(process);
  return found == registry().other_arenas.end() ? nullptr : found->second.lock();
}

void remember_arena(uint64_t process, const std::shared_ptr<SharedSegment>& segment) {
  const Lock lock(registry().mutex);
  std::erase_if(registry().other_arenas, [](const auto& entry) { return entry.second.expired(); });
  registry().other_arenas[process] = segment;
}

}  // namespace ccom
