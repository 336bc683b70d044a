// SPDX-License-Identifier: Apache-2.0
//
// Counts the system calls of a thread, but for those by which a rank waits.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>

namespace ccom {

// A filter sends every system call but those of waits to a thread that counts it and lets it go on. Made by another
// thread than the one whose calls are counted, and ended by it after that one has ended: a filter cannot be taken away.
class SystemCalls {
 public:
  SystemCalls() : counter_([this] { count(); }) {}
  ~SystemCalls() {
    if (listener_ == kNotYet) listener_ = kNone;
    counter_.join();
  }
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  // From now on, of the thread that calls this. False: the kernel does not permit it.
  bool begin() {
    std::array filter{
        sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
        sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 4, 0)),
        sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 3, 0)),
        sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 2, 0)),
        sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0)),
        sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)),
        sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
    };
    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    const bool may = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    const long listener =
        may ? ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) : -1;
    listener_ = listener < 0 ? kNone : static_cast<int>(listener);
    return listener >= 0;
  }
  size_t made() const { return made_; }
  int last() const { return last_; }  // its number

 private:
  static constexpr int kNotYet = -1, kNone = -2;

  void count() {
    while (listener_ == kNotYet) std::this_thread::yield();
    const int listener = listener_;
    if (listener == kNone) return;
    for (;;) {
      pollfd ready{listener, POLLIN, 0};
      if (::poll(&ready, 1, -1) < 0) continue;
      if ((ready.revents & POLLIN) == 0) break;  // the thread has ended
      seccomp_notif call{};
      if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
      last_ = call.data.nr;
      ++made_;
      seccomp_notif_resp answer{};
      answer.id = call.id;
      answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
      ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    ::close(listener);
  }

  std::atomic<int> listener_{kNotYet};
  std::atomic<size_t> made_{0};
  std::atomic<int> last_{-1};
  std::thread counter_;
};

}  // namespace ccom
