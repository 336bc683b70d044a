// SPDX-License-Identifier: Apache-2.0
//
// Messages.
#include "messages/messages.h"

#include "api/handles.h"

namespace ccom {
namespace {

struct Posting {
  ccomComm_t comm;
  ccomMessageFn done;
  void* user;
  ccomMessage_t* handle;
};

Status check_peer(const Communicator& communicator, const MessageRequest& request) {
  const int nranks = communicator.nranks();
  const bool is_any = request.peer == kAnyRank && !request.sends;
  if (!is_any && (request.peer < 0 || request.peer >= nranks)) {
    return error(Code::InvalidArgument, "peer is %d; it must be within 0..%d%s", request.peer, nranks - 1,
                 request.sends ? "" : ", or CCOM_ANY_RANK");
  }
  return is_any ? Status::ok() : check_reach(communicator, request.peer);
}

ccomResult_t post(const char* function, MessageRequest request, const Posting& posting) {
  return guarded(function, [&]() -> Status {
    if (posting.handle != nullptr) *posting.handle = nullptr;
    CCOM_TRY(check_handle(posting.comm));
    const Communicator& communicator = *posting.comm->communicator;
    if (!communicator.config().messages) {
      return error(ErrorKey::NoMessages, "the communicator does not support messages")
          .with_cure("start it with ccomConfig_t.messages = 1 (CCOM_MESSAGES=1) on all ranks");
    }
    CCOM_TRY(check_peer(communicator, request));
    CCOM_TRY(check_size(request.bytes, ccomUint8, 1));
    if (request.data == nullptr && request.bytes > 0)
      return error(Code::InvalidArgument, "data is NULL, bytes is %zu", request.bytes);
    request.timeout_ms = communicator.timeout_ms();
    if (posting.done != nullptr) {
      request.done = [done = posting.done, user = posting.user](Code code, Rank peer) {
        done(user, static_cast<ccomResult_t>(code), peer);
      };
    }
    const std::shared_ptr<Messages> home = communicator.messages();
    const auto message = std::make_shared<Message>(std::move(request));
    if (posting.handle == nullptr) return home->post(message);
    auto handle = std::make_unique<ccomMessage>();
    handle->home = home;
    handle->message = message;
    *posting.handle = handle.get();  // for `done`
    if (Status refused = home->post(message); !refused.is_ok()) {
      *posting.handle = nullptr;
      return refused;
    }
    (void)handle.release();
    return {};
  });
}

Status check_message(ccomMessage_t message) {
  if (message == nullptr) return error(Code::InvalidArgument, "message is NULL");
  if (message->generation == fork_generation()) return {};
  return error(ErrorKey::Forked, "the message was posted before fork() and belongs to the parent process");
}

Status outcome(const Message& message, int* peer) {
  if (!message.is_complete()) return {Code::InProgress, ""};
  if (peer != nullptr) *peer = message.peer();
  return message.status();
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomMessageSend(const void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm, ccomMessageFn done,
                             void* user, ccomMessage_t* message) {
  MessageRequest request;
  request.sends = true;
  request.data = static_cast<std::byte*>(const_cast<void*>(data));
  request.bytes = bytes;
  request.peer = peer;
  request.tag = tag;
  return post("ccomMessageSend", std::move(request), {comm, done, user, message});
}

ccomResult_t ccomMessageRecv(void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm, ccomMessageFn done,
                             void* user, ccomMessage_t* message) {
  MessageRequest request;
  request.data = static_cast<std::byte*>(data);
  request.bytes = bytes;
  request.peer = peer;
  request.tag = tag;
  return post("ccomMessageRecv", std::move(request), {comm, done, user, message});
}

ccomResult_t ccomMessageWait(ccomMessage_t message, int64_t timeoutMs, int* peer) {
  const CallSite site = CCOM_CALL_SITE;
  return queried("ccomMessageWait", [&]() -> Status {
    CCOM_TRY(check_message(message));
    const auto deadline = timeoutMs < 0 ? std::nullopt : std::optional(Deadline::after_ms(timeoutMs));
    message->home->wait(*message->message, deadline, site);
    return outcome(*message->message, peer);
  });
}

ccomResult_t ccomMessageTest(ccomMessage_t message, int* peer) {
  return queried("ccomMessageTest", [&]() -> Status {
    CCOM_TRY(check_message(message));
    message->home->test(*message->message);
    return outcome(*message->message, peer);
  });
}

// Left alone in a forked child: it refers to the parent's objects.
ccomResult_t ccomMessageFree(ccomMessage_t message) {
  if (message != nullptr && message->generation == fork_generation()) delete message;
  return ccomSuccess;
}
