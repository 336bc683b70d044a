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

// Null too if that takes too long: gRPC waits for ever where it had no memory for one of its own threads. Neither can
// be tried again.
IdleChannel initialise_in_time() {
  constexpr auto kLongest = std::chrono::seconds(10);
  const auto promise = std::make_shared<std::promise<IdleChannel>>();  // shared with a thread that may never end
  std::future<IdleChannel> idle = promise->get_future();
  std::thread thread;
  if (start_thread(thread, "ccom-grpc", [promise] { promise->set_value(initialise()); }) != 0) throw std::bad_alloc();
  const bool has_ended = idle.wait_for(kLongest) == std::future_status::ready;
  has_ended ? thread.join() : thread.detach();
  return has_ended ? idle.get() : nullptr;
}

constinit std::atomic<uint64_t> first_user{0};  // its fork_generation() and 1; 0: none

}  // namespace

Status check_grpc_after_fork() {
  const uint64_t first = first_user;
  if (first == 0 || first == uint64_t{fork_generation()} + 1) return {};
  return error(
             ErrorKey::Forked,
             "the parent of this forked process has created unique ids or communicators, which uses gRPC: it cannot be "
             "used after fork() any more")
      .with_cure("create the first communicator after fork(), or start processes with exec or the spawn method");
}

GrpcUse::GrpcUse() {
  take_number_of_stderr();
  uint64_t none = 0;
  (void)first_user.compare_exchange_strong(none, uint64_t{fork_generation()} + 1);
  const Lock lock(users().mutex);
  if (users().is_broken) {
    throw std::runtime_error(
        "gRPC has run out of memory while it initialised itself: this process cannot start communicators any more");
  }
  if (users().count == 0) {
    if (!keeps_default()) gpr_set_log_function(&forward);
    users().idle = initialise_in_time();
    if (users().idle == nullptr) {
      users().is_broken = true;
      throw std::bad_alloc();
    }
  }
  ++users().count;
}

GrpcUse::~GrpcUse() {
  const Lock lock(users().mutex);
  if (--users().count > 0) return;
  users().idle = nullptr;
  grpc_shutdown();
  if (!keeps_default()) gpr_set_log_function(nullptr);
}

}  // namespace ccom
