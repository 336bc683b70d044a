// SPDX-License-Identifier: Apache-2.0
//
// How the library starts threads of its own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <initializer_list>
#include <new>
#include <system_error>
#include <utility>

namespace ccom {

// Blocks the signals of the calling thread for as long as it lives, but for those of its own faults: the kernel ends a
// process that blocks these, and the application's handler would say nothing. A thread that is started meanwhile
// inherits that.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Starts a std::thread or std::jthread that leaves signals to the application's threads. `name` has at most 15 bytes.
// Returns 0, or the system's error number; does not throw, but `run` may while it is copied.
template <typename Thread, typename Run>
int start_thread(Thread& thread, const char* name, Run run) {
  const SignalsBlocked blocked;
  try {
    thread = Thread(std::move(run));
  } catch (const std::system_error& refused) {
    return refused.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  ::pthread_setname_np(thread.native_handle(), name);
  return 0;
}

}  // namespace ccom
