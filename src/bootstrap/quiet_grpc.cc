// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/quiet_grpc.h"

#include <grpc/support/log.h>

#include <cstdlib>

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
};
// Never destroyed: threads may outlive static objects.
Users& users() {
  static auto* const instance = new Users;
  return *instance;
}

}  // namespace

QuietGrpc::QuietGrpc() {
  const Lock lock(users().mutex);
  if (users().count++ == 0 && !keeps_default()) gpr_set_log_function(&forward);
}

QuietGrpc::~QuietGrpc() {
  const Lock lock(users().mutex);
  if (--users().count == 0 && !keeps_default()) gpr_set_log_function(nullptr);
}

}  // namespace ccom
