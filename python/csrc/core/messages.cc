// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives: without a tag in the order of calls, with one as messages.
#include <optional>

#include "calls.h"
#include "collectives.h"
#include "documentation.h"

namespace ccom_core {
namespace {

using namespace nb::literals;

struct End {
  std::shared_ptr<Pending> pending;
  ccomComm_t comm;
};

void at_end(void* user, ccomResult_t result, int peer) {
  const std::unique_ptr<End> end(static_cast<End*>(user));
  ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  if (result != ccomSuccess) info = error_info(result, end->comm);
  end->pending->finish(info, peer);
}

// post(comm, done, user, &message) is one of the two functions of messages.
template <typename Post>
nb::object message(Communicator& self, bool blocking, nb::object result, Array array, Post post) {
  if (blocking) {
    self.run([&](ccomComm_t comm) {
      ccomMessage_t posted = nullptr;
      ccomResult_t state = post(comm, nullptr, nullptr, &posted);
      if (state != ccomSuccess) return state;
      state = ccomMessageWait(posted, -1, nullptr);
      ccomMessageFree(posted);
      return state;
    });
    return result;
  }
  release_leftovers();
  Kept kept;
  kept.arrays.push_back(std::move(array));
  kept.result = std::move(result);
  auto pending = std::make_shared<Pending>(std::move(kept));
  const ccomComm_t comm = self.comm();
  auto end = std::make_unique<End>(End{pending, comm});
  tell_call_site();
  check(post(comm, &at_end, end.get(), nullptr), &self.interrupt());
  (void)end.release();
  return nb::cast(Handle(nb::find(self), std::move(pending)));
}

nb::object send(Communicator& self, nb::handle array, int peer, std::optional<int64_t> tag, bool blocking) {
  Array sent(array, "array", false);
  const void* const data = sent.data();
  if (!tag) {
    return carry_out(
        self, blocking, nb::none(),
        [=, count = sent.count(), type = sent.type()](ccomComm_t comm, ccomStream_t stream) {
          return ccomSend(data, count, type, peer, comm, stream);
        },
        sent);
  }
  const size_t bytes = sent.bytes();
  return message(self, blocking, nb::none(), std::move(sent),
                 [=](ccomComm_t comm, ccomMessageFn done, void* user, ccomMessage_t* posted) {
                   return ccomMessageSend(data, bytes, peer, *tag, comm, done, user, posted);
                 });
}

nb::object recv(Communicator& self, nb::handle out, int peer, std::optional<int64_t> tag, bool blocking) {
  Array received(out, "out", true);
  void* const data = received.data();
  if (!tag) {
    return carry_out(
        self, blocking, nb::borrow(out),
        [=, count = received.count(), type = received.type()](ccomComm_t comm, ccomStream_t stream) {
          return ccomRecv(data, count, type, peer, comm, stream);
        },
        received);
  }
  const size_t bytes = received.bytes();
  return message(self, blocking, nb::borrow(out), std::move(received),
                 [=](ccomComm_t comm, ccomMessageFn done, void* user, ccomMessage_t* posted) {
                   return ccomMessageRecv(data, bytes, peer, *tag, comm, done, user, posted);
                 });
}

}  // namespace

void add_messages(nb::class_<Communicator>& type) {
  type.def("send", &send, "array"_a, "peer"_a, "tag"_a = nb::none(), nb::kw_only(), "blocking"_a = true,
           documentation::kSend);
  type.def("recv", &recv, "out"_a, "peer"_a, "tag"_a = nb::none(), nb::kw_only(), "blocking"_a = true,
           documentation::kRecv);
}

}  // namespace ccom_core
