// SPDX-License-Identifier: Apache-2.0
//
// One T for each thread, as thread_local, but without memory it is missing, where thread_local ends the process: the
// C++ runtime has to note its destructor.
#pragma once

#include <pthread.h>

#include <new>

namespace ccom {

// For objects that live as long as the library. Thread-safe.
template <typename T>
class PerThread {
 public:
  PerThread() {
    has_key_ = ::pthread_key_create(&key_, [](void* mine) { delete static_cast<T*>(mine); }) == 0;
  }
  ~PerThread() {
    if (!has_key_) return;
    delete static_cast<T*>(::pthread_getspecific(key_));
    ::pthread_key_delete(key_);  // those of other threads stay
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  // Null if there is no memory.
  T* get() noexcept {
    if (!has_key_) return nullptr;
    if (void* const mine = ::pthread_getspecific(key_)) return static_cast<T*>(mine);
    T* const made = new (std::nothrow) T;
    if (made == nullptr || ::pthread_setspecific(key_, made) == 0) return made;
    delete made;
    return nullptr;
  }

 private:
  pthread_key_t key_{};
  bool has_key_ = false;
};

}  // namespace ccom
