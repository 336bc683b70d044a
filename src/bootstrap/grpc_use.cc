// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_use.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace ccom {
namespace {

void forward(gpr_log_func_args* line) { log(LogLevel::Debug, "grpc: %s", line->message); }

bool keeps_default() {
  static constinit MadeOnce<bool> answer;
  return answer.get([] { return std::getenv("GRPC_VERBOSITY") != nullptr; });
}

// That connects nowhere. It holds what gRPC initialises with its first channel: timers and threads.
using IdleChannel = std::shared_ptr<grpc::Channel>;

// The log can be changed for the whole process only, hence the count is global too.
struct Users {
  Mutex mutex;
  int count CCOM_GUARDED_BY(mutex) = 0;
  bool is_broken CCOM_GUARDED_BY(mutex) = false;
  IdleChannel idle CCOM_GUARDED_BY(mutex);
};
Users& users() {
  static constinit MadeOnce<Users> all;
  return all.get([] { return Users(); });
}

// Null if memory has run out.
IdleChannel initialise() {
  try {
    grpc_init();
    return grpc::CreateChannel("ipv4:127.0.0.1:9", grpc::InsecureChannelCredentials());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// gRPC waits for ever where it had no memory for one of its own threads, so another thread does it. Whether it has
// ended in time; nothing of gRPC works any more where it has not. Throws std::bad_alloc where no thread can be started.
bool ends_in_time(const std::function<void()>& work) {
  constexpr auto kLongest = std::chrono::seconds(10);
  const auto promise = std::make_shared<std::promise<void>>();  // shared with a thread that may never end
  const std::future<void> end = promise->get_future();
  std::thread thread;
  const auto body = [promise, work] {
    work();
    promise->set_value();
  };
  if (start_thread(thread, "ccom-grpc", body) != 0) throw std::bad_alloc();
  const bool has_ended = end.wait_for(kLongest) == std::future_status::ready;
  has_ended ? thread.join() : thread.detach();
  return has_ended;
}

constinit std::atomic<uint64_t> first_user{0};  // its fork_generation() and 1; 0: none

}  // namespace

Status check_grpc_after_fork() {
  const uint64_t first = first_user;
  if (first == 0 || first == uint64_t{fork_generation()} + 1) return {};
  return error(
             ErrorKey::Forked,
             "the parent of this forked process has met ranks of other hosts, which uses gRPC: it cannot be used after "
             "fork() any more")
      .with_cure("create the first communicator after fork(), or start processes with exec or the spawn method");
}

GrpcUse::GrpcUse() {
  take_number_of_stderr();
  uint64_t none = 0;
  (void)first_user.compare_exchange_strong(none, uint64_t{fork_generation()} + 1);
  const Lock lock(users().mutex);
  if (users().is_broken) {
    throw std::runtime_error(
        "gRPC has run out of memory while it started or ended its threads: this process cannot start communicators any "
        "more");
  }
  if (users().count == 0 && users().idle == nullptr) {
    if (!keeps_default()) gpr_set_log_function(&forward);
    const auto idle = std::make_shared<IdleChannel>();
    if (!ends_in_time([idle] { *idle = initialise(); }) || *idle == nullptr) {
      users().is_broken = true;  // it cannot be tried again
      throw std::bad_alloc();
    }
    users().idle = *idle;
  }
  ++users().count;
}

GrpcUse::~GrpcUse() {
  const Lock lock(users().mutex);
  if (--users().count > 0) return;
  try {
    users().is_broken = !ends_in_time([idle = &users().idle] {
      *idle = nullptr;
      grpc_shutdown();
    });
  } catch (const std::bad_alloc&) {
    return;  // the next one finds it initialised
  }
  if (!keeps_default()) gpr_set_log_function(nullptr);
}

}  // namespace ccom
