// SPDX-License-Identifier: Apache-2.0
//
// The opaque handles, and the C boundary: guarded() turns a Status into a code, records it as the thread's last error,
// and catches exceptions of libraries.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <vector>

#include "api/background.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "ccom/ccom.h"
#include "comm/communicator.h"
#include "engine/stream.h"
#include "observe/call_site.h"

namespace ccom {

// A premultiplied sum, or a user's operator. Kept by the calls that use it.
struct CreatedOperator {
  DataType type = DataType::Float32;   // of a premultiplied sum
  std::vector<std::byte> scalar{};     // a copy, or empty:
  const std::byte* device = nullptr;   // read when the operation runs
  std::unique_ptr<UserOperator> user;  // null: a premultiplied sum
};

}  // namespace ccom

struct ccomComm {
  static constexpr uint64_t kAlive = 0x63636f6d636f6d6d;
  uint64_t magic = kAlive;
  uint32_t generation = ccom::fork_generation();
  // Null until a start that does not block is over, and for good if it failed: see check_handle().
  std::unique_ptr<ccom::Communicator> communicator;
  const std::shared_ptr<const void> life = std::make_shared<char>();  // ends with the handle
  ccom::Mutex operators_mutex;
  std::vector<std::shared_ptr<const ccom::CreatedOperator>> operators
      CCOM_GUARDED_BY(operators_mutex);                          // by op - ccomNumOps
  uint16_t user_operators CCOM_GUARDED_BY(operators_mutex) = 0;  // created so far
  // Work of calls that do not block: this communicator's start or end, and splits in which it has no part. Before the
  // communicator, which it uses.
  std::atomic<bool> is_starting{false};
  ccom::Background background;
  ccom::Mutex splits_mutex;
  std::list<ccom::Background> splits CCOM_GUARDED_BY(splits_mutex);  // and those that have ended since the last one

  // Until nothing of it runs in the background any more; a start ends early.
  void await_background() {
    if (is_starting.load()) background.cancel();
    background.wait();
    const ccom::Lock lock(splits_mutex);
    splits.clear();
  }
  ~ccomComm() {
    magic = 0;
    await_background();
  }
};

struct ccomMessage {
  uint32_t generation = ccom::fork_generation();
  std::shared_ptr<ccom::Messages> home;
  std::shared_ptr<ccom::Message> message;
};

struct ccomPersistent {
  static constexpr uint64_t kAlive = 0x63636f6d70657273;
  uint64_t magic = kAlive;
  std::weak_ptr<const void> home;  // the communicator's `life`
  ccomComm_t comm = nullptr;
  ccom::Request request;
  std::shared_ptr<const void> keep;            // what the request borrows, besides buffers
  std::optional<ccom::PreparedCall> prepared;  // changed in the communicator's turn
  ~ccomPersistent() { magic = 0; }
};

struct ccomStream {
  uint32_t generation = ccom::fork_generation();
  ccom::Stream stream;
};

struct ccomEvent {
  uint32_t generation = ccom::fork_generation();
  ccom::Event event;
};

namespace ccom {

// InvalidArgument for NULL or a destroyed handle, InvalidUsage in a forked child.
Status check_alive(ccomComm_t comm);
// What is wrong with a handle that is not ready; Ok if it has become ready meanwhile.
Status refuse_handle(ccomComm_t comm);
// Whether calls may use its communicator.
[[gnu::always_inline]] inline bool is_ready(ccomComm_t comm) {
  return comm != nullptr && comm->magic == ccomComm::kAlive && comm->generation == fork_generation() &&
         !comm->background.is_running() && comm->communicator != nullptr;
}
// The same as check_alive(), and InvalidUsage while a call that does not block is under way; the error of a start that
// failed.
inline Status check_handle(ccomComm_t comm) {
  if (is_ready(comm)) [[likely]]
    return {};
  return refuse_handle(comm);
}
// NotSupported if neither a link nor ranks that forward lead to that rank.
Status check_reach(const Communicator& communicator, Rank peer);
// InProgress, the error of a start, or the communicator's.
Status state_of(ccomComm_t comm);
// Makes a handle whose communicator `make` makes: now, or, where settings.blocking is off, in a thread of its own.
// Returns InProgress then. `out` is null where `make` gives none.
Status make_handle(ccomComm_t* out, const CommConfig& settings,
                   std::function<Result<std::unique_ptr<Communicator>>(const CommConfig& settings)> make);

// InvalidArgument for what is no rank of nranks.
Status check_rank_argument(const char* name, int value, int nranks);
// Puts an operator into a request: builtin ones by number, premultiplied sums and operators of users by handle, which
// `keep` then keeps.
Status resolve_operator(ccomComm_t comm, ccomRedOp_t op, Request& request, std::shared_ptr<const void>& keep);
// Whether buffers of `count` elements of `type` for each of nranks ranks can exist.
Status check_size(size_t count, ccomDataType_t type, int nranks);

// Whether kind_of() keeps these values apart from all others, legal or not.
inline bool has_kind(ccomDataType_t type, ccomRedOp_t op, int root) {
  return static_cast<unsigned>(type) <= UINT8_MAX && static_cast<unsigned>(op) < ccomNumOps && root >= -1 &&
         root < 1 << 22;
}

// The possible arguments of a collective, by their C names.
struct Arguments {
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;
  ccomDataType_t type = ccomInt8;
  ccomRedOp_t op = ccomSum;
  int root = -1;
  int peer = -1;
  void* residual = nullptr;
  const void* caller = nullptr;
};
struct CheckedCall {
  Request request;                   // without its time and its place
  std::shared_ptr<const void> keep;  // what it borrows, besides buffers
};
using MoreChecks = Status (*)(const Arguments&);
// Looks at the handle and at all arguments of a collective of equal units. check_more: null, or what else is demanded.
Result<CheckedCall> check_call(Collective collective, const Arguments& a, ccomComm_t comm,
                               MoreChecks check_more = nullptr);

// `settings`, but for the fields that the caller has set; NULL: none.
Result<CommConfig> settings_of(const ccomConfig_t* of_caller, CommConfig settings);

// Runs each in its own thread, the first in this one. One that gets no thread is destroyed at once, before the first is
// run, and the reason is returned; otherwise the first error. Exceptions become errors.
Status run_in_threads(std::vector<Work> runs);

// In a function of the C API: the place from which it was called.
#define CCOM_CALLER __builtin_return_address(0)
#define CCOM_CALL_SITE ::ccom::call_site(CCOM_CALLER)

// The thread's last error.
Status last_error();
ccomResult_t remember(const Status& status) noexcept;
Status copy_out(const std::string& text, char* buffer, size_t* length);

template <typename Fn>
[[gnu::always_inline]] inline ccomResult_t guarded(const char* function, Fn fn) {
  try {
    Status status = fn();
    if (status.is_ok()) return ccomSuccess;
    return remember(std::move(status).in(function));
  } catch (const std::bad_alloc&) {
    return remember(out_of_memory().in(function));
  } catch (const std::exception& exception) {
    return remember(error(Code::InternalError, "%s: %s", function, exception.what()));
  }
}

// For queries: "in progress" is a result there, not an error to be recorded.
template <typename Fn>
ccomResult_t queried(const char* function, Fn fn) {
  bool in_progress = false;
  const ccomResult_t result = guarded(function, [&]() -> Status {
    Status status = fn();
    in_progress = status.code() == Code::InProgress;
    return in_progress ? Status() : status;
  });
  return in_progress ? ccomInProgress : result;
}

// The public form of an id. Where the user has set CCOM_SECRET its secret is encrypted there.
Result<UniqueId> unpack_id(const ccomUniqueId& id);
Status pack_id(UniqueId id, ccomUniqueId* out);

namespace internal {
extern std::atomic<int> open_groups;  // of all threads: to ask for this thread's is a call in a shared library
bool group_of_thread_is_open();
}  // namespace internal
// An open group in this thread collects calls instead of running them (group.cc).
inline bool group_is_open() {
  return internal::open_groups.load(std::memory_order_relaxed) != 0 && internal::group_of_thread_is_open();
}
// InvalidUsage if this thread's open group has calls of that communicator, or on that stream; either may be null.
Status check_no_calls_in_group(ccomComm_t comm, ccomStream_t stream);
void add_to_group(ccomComm_t comm, ccomStream_t stream, const Request& request, std::shared_ptr<const void> keep);
// Start-up of one rank, which fills the caller's handle. `prepare` is called at the end of the group, in this thread
// and in the order of the calls; what it returns runs in a thread of its own.
void add_init_to_group(std::function<Work()> prepare);

// Runs a validated request: immediately, on a stream, or later in a group. keep: what it borrows, besides buffers.
Status submit(ccomComm_t comm, ccomStream_t stream, const Request& request, std::shared_ptr<const void> keep = nullptr);

}  // namespace ccom
