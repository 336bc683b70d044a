// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

#include <vector>

namespace ccom_core {
namespace {

struct Group {
  int depth = 0;
  std::vector<Kept> kept;
  std::vector<nb::object> communicators;
};
thread_local Group group;

struct End {
  std::shared_ptr<Pending> pending;
  ccomComm_t comm;
};

void at_end(void* user, ccomResult_t state) {
  const std::unique_ptr<End> end(static_cast<End*>(user));
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  if (state != ccomSuccess) info = error_info(state, end->comm);
  end->pending->finish(info, -1);
}

}  // namespace

bool is_in_group() { return group.depth > 0; }

void keep_in_group(Communicator& communicator, Kept kept) {
  group.kept.push_back(std::move(kept));
  const nb::object owner = nb::find(communicator);
  for (const nb::object& known : group.communicators) {
    if (known.is(owner)) return;
  }
  group.communicators.push_back(owner);
}

void start_group() {
  check(ccomGroupStart());
  ++group.depth;
}

void end_group() {
  if (group.depth == 0) throw nb::value_error("no group is open in this thread");
  --group.depth;
  ccomResult_t result;
  {
    const WithoutGil released;
    result = ccomGroupEnd();
  }
  if (group.depth > 0) return check(result);
  const Group ended = std::exchange(group, Group{});
  if (result == ccomSuccess) return;
  const ccomErrorInfo_t info = error_info(result);
  for (const nb::object& communicator : ended.communicators) {
    if (nb::cast<Communicator&>(communicator).interrupt().restore()) throw nb::python_error();
  }
  raise(info);
}

void finish_at_end(ccomStream_t stream, ccomComm_t comm, std::shared_ptr<Pending> pending) {
  auto end = std::make_unique<End>(End{std::move(pending), comm});
  const ccomResult_t result = ccomStreamAddCallback(stream, &at_end, end.get());
  if (result != ccomSuccess) {  // nobody would learn when the arrays are free
    const ccomErrorInfo_t info = error_info(result);
    {
      const WithoutGil released;
      (void)ccomStreamSynchronize(stream, -1);
    }
    raise(info);
  }
  (void)end.release();
}

}  // namespace ccom_core
