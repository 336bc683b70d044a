// SPDX-License-Identifier: Apache-2.0
//
// How every call reaches ccom: at once, in a group, or queued for a handle.
#pragma once

#include <ccom/ccom.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

#include "communicator.h"
#include "handle.h"

namespace ccom_core {

// The group that this thread has open, if there is one.
bool is_in_group();
// Keeps what a call of the group uses until the group ends.
void keep_in_group(Communicator& communicator, Kept kept);
void start_group();
void end_group();

// Has a queued operation's end finish `pending`.
void finish_at_end(ccomStream_t stream, ccomComm_t comm, std::shared_ptr<Pending> pending);

// call(comm, stream) with `arrays`, which it uses; `result` is returned, or, if it is not blocking, a handle of it.
template <typename Fn, typename... Arrays>
nb::object carry_out(Communicator& self, bool blocking, nb::object result, Fn call, Arrays&... arrays) {
  const auto kept = [&] {
    Kept all;
    (all.arrays.push_back(std::move(arrays)), ...);
    return all;
  };
  if (blocking && !is_in_group()) [[likely]] {
    self.run([&](ccomComm_t comm) { return call(comm, nullptr); });
    return result;
  }
  if (blocking) {
    tell_call_site();
    check(call(self.comm(), nullptr), &self.interrupt());
    Kept all = kept();
    all.objects.push_back(result);
    keep_in_group(self, std::move(all));
    return result;
  }
  if (is_in_group()) throw nb::value_error("blocking: calls of a group are over when it ends; leave it True there");
  release_leftovers();
  const ccomComm_t comm = self.comm();
  const ccomStream_t stream = self.stream();
  tell_call_site();
  check(call(comm, stream), &self.interrupt());
  Kept all = kept();
  all.result = std::move(result);
  auto pending = std::make_shared<Pending>(std::move(all));
  finish_at_end(stream, comm, pending);
  return nb::cast(Handle(nb::find(self), std::move(pending)));
}

}  // namespace ccom_core
