// SPDX-License-Identifier: Apache-2.0
//
// std::mutex, std::shared_mutex and their locks with thread annotations, which those of libstdc++ lack: clang could not
// check who holds them.
#pragma once

#include "base/thread_annotations.h"

#include <condition_variable>
#include <mutex>
#include <shared_mutex>

namespace ccom {

class CCOM_CAPABILITY("mutex") Mutex {
 public:
  void lock() CCOM_ACQUIRE() { mutex_.lock(); }
  void unlock() CCOM_RELEASE() { mutex_.unlock(); }
  bool try_lock() CCOM_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class Lock;
  std::mutex mutex_;
};

// Holds a mutex until the end of the scope; waits for conditions that it guards. A predicate is annotated with
// CCOM_REQUIRES(mutex), because clang looks at lambdas by themselves.
class CCOM_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) CCOM_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  Lock(Mutex& mutex, std::adopt_lock_t adopts) CCOM_REQUIRES(mutex) : lock_(mutex.mutex_, adopts) {}
  ~Lock() CCOM_RELEASE() {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void unlock() CCOM_RELEASE() { lock_.unlock(); }
  void lock() CCOM_ACQUIRE() { lock_.lock(); }

  template <class Predicate>
  void wait(std::condition_variable& changed, Predicate is_over) {
    changed.wait(lock_, is_over);
  }
  template <class Time>
  void wait_until(std::condition_variable& changed, Time when) {
    changed.wait_until(lock_, when);
  }
  // False if the time came first.
  template <class Time, class Predicate>
  bool wait_until(std::condition_variable& changed, Time when, Predicate is_over) {
    return changed.wait_until(lock_, when, is_over);
  }
  template <class Duration, class Predicate>
  bool wait_for(std::condition_variable& changed, Duration at_most, Predicate is_over) {
    return changed.wait_for(lock_, at_most, is_over);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

class CCOM_CAPABILITY("mutex") SharedMutex {
 public:
  void lock() CCOM_ACQUIRE() { mutex_.lock(); }
  void unlock() CCOM_RELEASE() { mutex_.unlock(); }
  void lock_shared() CCOM_ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() CCOM_THREAD_ANNOTATION(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

class CCOM_SCOPED_CAPABILITY ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) CCOM_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~ExclusiveLock() CCOM_RELEASE() { mutex_.unlock(); }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class CCOM_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) CCOM_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex.lock_shared(); }
  ~SharedLock() CCOM_RELEASE_GENERIC() { mutex_.unlock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace ccom
