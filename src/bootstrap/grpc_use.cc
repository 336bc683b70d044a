// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_use.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "base/fork.h"
#include "base/log.h"
#include "base/mutex.h"

namespace ccom {
namespace {

void forward(gpr_log_func_args* line) { log(LogLevel::Debug, "grpc: %s", line->message); }

bool keeps_default() {
  static const bool answer = std::getenv("GRPC_VERBOSITY") != nullptr;
  return answer;
}

// The log can be changed for the whole process only, hence the count is global too.
struct Users {
  Mutex mutex;
  int count CCOM_GUARDED_BY(mutex) = 0;
  bool is_broken CCOM_GUARDED_BY(mutex) = false;
};
// Never destroyed: threads may outlive static objects.
Users& users() {
  static auto* const instance = new Users;
  return *instance;
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
  uint64_t none = 0;
  (void)first_user.compare_exchange_strong(none, uint64_t{fork_generation()} + 1);
  const Lock lock(users().mutex);
  if (users().is_broken) {
    throw std::runtime_error(
        "gRPC has run out of memory while it initialised itself: this process cannot start communicators any more");
  }
  if (users().count == 0) {
    if (!keeps_default()) gpr_set_log_function(&forward);
    try {
      grpc_init();
    } catch (const std::bad_alloc&) {
      users().is_broken = true;
      throw;
    }
  }
  ++users().count;
}

GrpcUse::~GrpcUse() {
  const Lock lock(users().mutex);
  if (--users().count > 0) return;
  grpc_shutdown();
  if (!keeps_default()) gpr_set_log_function(nullptr);
}

}  // namespace ccom
