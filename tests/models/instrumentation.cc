// SPDX-License-Identifier: Apache-2.0
//
// What the compiler calls with -fsanitize=thread, and what the linker wraps (CMakeLists.txt): all of it goes to the
// exploration, if one of its threads runs and the address is shared, and otherwise does what it says.
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "exploration.h"

using ccom::model::Exploration;
using ccom::model::Order;

namespace {

Exploration* exploration_of(const volatile void* address) {
  Exploration* const here = Exploration::of_this_thread();
  return here != nullptr && here->is_shared(address) ? here : nullptr;
}

void access(const volatile void* address, size_t bytes, bool is_write) {
  if (Exploration* const here = exploration_of(address)) here->plain(address, bytes, is_write);
}

template <typename T>
T load(const volatile T* object, int order) {
  if (Exploration* const here = exploration_of(object))
    return static_cast<T>(here->load(object, static_cast<Order>(order)));
  return __atomic_load_n(object, __ATOMIC_SEQ_CST);
}

template <typename T>
void store(volatile T* object, T value, int order) {
  if (Exploration* const here = exploration_of(object)) return here->store(object, value, static_cast<Order>(order));
  __atomic_store_n(object, value, __ATOMIC_SEQ_CST);
}

template <typename T, typename Change>
T modify(volatile T* object, int order, Change change) {
  if (Exploration* const here = exploration_of(object)) {
    const auto changed = [&](uint64_t old) {
      return static_cast<uint64_t>(static_cast<T>(change(static_cast<T>(old))));
    };
    return static_cast<T>(here->modify(object, static_cast<Order>(order), changed));
  }
  T old = __atomic_load_n(object, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(object, &old, static_cast<T>(change(old)), false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
  }
  return old;
}

template <typename T>
bool compare_exchange(volatile T* object, T* expected, T desired, int order, int failure) {
  if (Exploration* const here = exploration_of(object)) {
    const auto read = static_cast<T>(
        here->compare_exchange(object, *expected, desired, static_cast<Order>(order), static_cast<Order>(failure)));
    return std::exchange(*expected, read) == read;
  }
  return __atomic_compare_exchange_n(object, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

}  // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define CCOM_ACCESS(bytes)                                                            \
  void __tsan_read##bytes(void* address) { access(address, bytes, false); }           \
  void __tsan_write##bytes(void* address) { access(address, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* address) { access(address, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* address) { access(address, bytes, true); } \
  void __tsan_volatile_read##bytes(void* address) { access(address, bytes, false); }  \
  void __tsan_volatile_write##bytes(void* address) { access(address, bytes, true); }
CCOM_ACCESS(1)
CCOM_ACCESS(2)
CCOM_ACCESS(4)
CCOM_ACCESS(8)
CCOM_ACCESS(16)
void __tsan_read_range(void* address, size_t bytes) { access(address, bytes, false); }
void __tsan_write_range(void* address, size_t bytes) { access(address, bytes, true); }

#define CCOM_ATOMIC(bits, type)                                                                                   \
  type __tsan_atomic##bits##_load(const volatile type* object, int order) { return load(object, order); }         \
  void __tsan_atomic##bits##_store(volatile type* object, type value, int order) { store(object, value, order); } \
  type __tsan_atomic##bits##_exchange(volatile type* object, type value, int order) {                             \
    return modify(object, order, [value](type) { return value; });                                                \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_add(volatile type* object, type value, int order) {                            \
    return modify(object, order, [value](type old) { return old + value; });                                      \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_sub(volatile type* object, type value, int order) {                            \
    return modify(object, order, [value](type old) { return old - value; });                                      \
  }                                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* object, type* expected, type value, int order, \
                                                    int failure) {                                                \
    return compare_exchange(object, expected, value, order, failure);                                             \
  }                                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* object, type* expected, type value, int order,   \
                                                  int failure) {                                                  \
    return compare_exchange(object, expected, value, order, failure);                                             \
  }
CCOM_ATOMIC(8, uint8_t)
CCOM_ATOMIC(32, uint32_t)
CCOM_ATOMIC(64, uint64_t)

void __tsan_atomic_thread_fence(int order) {
  if (Exploration* const here = Exploration::of_this_thread()) here->fence(static_cast<Order>(order));
}
void __tsan_atomic_signal_fence(int) {}

// ---- Of the C library.

void* __real_memcpy(void* to, const void* from, size_t bytes);
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) {
    access(from, bytes, false);
    access(to, bytes, true);
  }
  return __real_memcpy(to, from, bytes);
}
void* __real_memmove(void* to, const void* from, size_t bytes);
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  if (bytes > 0) {
    access(from, bytes, false);
    access(to, bytes, true);
  }
  return __real_memmove(to, from, bytes);
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long values[6];
  for (long& value : values) value = va_arg(arguments, long);
  va_end(arguments);
  Exploration* const here = Exploration::of_this_thread();
  if (here != nullptr && number == SYS_futex) {
    const auto* const word = reinterpret_cast<const uint32_t*>(values[0]);
    if (values[1] == FUTEX_WAIT) return here->futex_wait(word, static_cast<uint32_t>(values[2]));
    here->futex_wake(word);
    return 0;
  }
  if (here != nullptr && number == SYS_membarrier) {
    here->membarrier();
    return 0;
  }
  return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int __real_sched_yield();
int __wrap_sched_yield() {
  if (Exploration* const here = Exploration::of_this_thread()) return here->yield(), 0;
  return __real_sched_yield();
}
int __real_nanosleep(const timespec* time, timespec* left);
int __wrap_nanosleep(const timespec* time, timespec* left) {
  if (Exploration* const here = Exploration::of_this_thread()) return here->spin(), 0;
  return __real_nanosleep(time, left);
}

// No time passes.
std::chrono::steady_clock::time_point real_now() __asm__("__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrapped_now() __asm__("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrapped_now() {
  if (Exploration::of_this_thread() != nullptr) return std::chrono::steady_clock::time_point(std::chrono::hours(1));
  return real_now();
}

}  // extern "C"

void* operator new(size_t bytes) {
  if (Exploration* const here = Exploration::of_this_thread()) return here->allocate(bytes);
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  if (!Exploration::has_allocated(memory)) std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
