// SPDX-License-Identifier: Apache-2.0
//
// torch's sends and receives, and operations built on them.
#include "issue-inl.h"
#include "types.h"

namespace ccom_torch {
namespace {

// A pending message. Threads that wait for it make progress on it.
class MessageWork final : public Work {
 public:
  using Work::Work;
  ~MessageWork() override { ccomMessageFree(handle_.load()); }

  void set_handle(ccomMessage_t handle) { handle_.store(handle); }

 protected:
  void help(Clock::time_point until) override {
    ccomSetCallSite(ccom_python::call_site_of_python());
    while (!isCompleted() && Clock::now() < until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      const ccomMessage_t handle = handle_.load();
      if (handle == nullptr ||
          ccomMessageWait(handle, std::min(left, Interrupt::kInterval).count(), nullptr) != ccomInProgress) {
        return Work::help(until);  // the message is complete, its callback is still running
      }
      // Not thrown before the message has ended: until then nobody may have told the other ranks.
      look_at_signals();
    }
  }

 private:
  std::atomic<ccomMessage_t> handle_{nullptr};
};

// Lives from the post to the callback.
struct Posted {
  c10::intrusive_ptr<MessageWork> work;
  at::Tensor target, buffer;  // a receive's tensor, and the buffer it is received into
  std::function<std::exception_ptr(std::exception_ptr)> explained;
  std::function<void(bool)> ended;
  ccomComm_t comm;
};

void complete(void* user, ccomResult_t result, int peer) {
  const std::unique_ptr<Posted> posted(static_cast<Posted*>(user));
  std::exception_ptr error;
  try {
    check_later(result, posted->comm);
    const at::NoGradGuard no_grad;
    if (posted->target.defined() && !posted->target.is_same(posted->buffer)) posted->target.copy_(posted->buffer);
  } catch (...) {
    error = posted->explained(std::current_exception());
  }
  if (posted->target.defined()) posted->work->set_source(peer);
  posted->work->set_span(posted->work->started(), Work::Clock::now());
  posted->ended(error == nullptr);
  posted->work->complete(std::move(error));
}

const char* title_of(c10d::OpType type) {
  switch (type) {
    case c10d::OpType::SEND: return "ccom:send";
    case c10d::OpType::RECV: return "ccom:recv";
    default: return "ccom:recvAnySource";
  }
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::message(Tensors& tensors, int peer, int tag, c10d::OpType type) {
  const bool sends = type == c10d::OpType::SEND;
  TORCH_CHECK(tensors.size() == 1, "ccom ", title_of(type) + 5, ": requires a single tensor, got ", tensors.size());
  const at::Tensor& tensor = tensors.front();
  TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kStrided, "ccom ", title_of(type) + 5,
              ": needs a dense CPU tensor");
  const Communicator::Use use(communicator());
  const char* const title = event_title(title_of(type));
  auto* posted = new Posted;
  const Tensors none;
  posted->work = c10::make_intrusive<MessageWork>(rank_, type, at::hasCallbacks() ? title : nullptr, tensors,
                                                  sends ? Tensors() : tensors, getSequenceNumberForGroup());
  c10::intrusive_ptr<MessageWork> work = posted->work;
  work->set_interrupt(communicator().interrupt());
  work->set_span(Work::Clock::now(), {});
  work->count_waiting_in({statistics_, &statistics_->of(type).waited_nanoseconds});
  const bool plain = is_plain(tensor);
  posted->buffer = sends ? plain_input(tensor) : plain ? tensor : at::empty(tensor.sizes(), tensor.options());
  if (!sends) posted->target = tensor;
  posted->comm = use.comm();
  const FlightRecorder::Ticket ticket =
      recorder_->message(title, getSequenceNumberForGroup(), peer, sends ? tensors : none, sends ? none : tensors,
                         options_->timeout.count());
  posted->ended = [statistics = statistics_, recorder = recorder_, ticket, type, bytes = tensor.nbytes(),
                   hooks = completion_hooks_, key = work->getCompletionKey()](bool good) {
    recorder->ended(ticket, good);
    if (good) tell_completed(*hooks, key, 0);
    statistics->of(type).count.fetch_add(1, std::memory_order_relaxed);
    statistics->of(type).bytes.fetch_add(bytes, std::memory_order_relaxed);
  };
  posted->explained = [this, type, sequence = work->sequence()](std::exception_ptr cause) {
    return explained(std::move(cause), call_name(type), sequence);
  };
  communicator().set_timeout(options_->timeout);
  ccomMessage_t handle = nullptr;
  const at::Tensor& buffer = posted->buffer;
  const ccomResult_t result = sends ? ccomMessageSend(buffer.const_data_ptr(), buffer.nbytes(), peer, tag, use.comm(),
                                                      complete, posted, &handle)
                                    : ccomMessageRecv(buffer.mutable_data_ptr(), buffer.nbytes(), peer, tag, use.comm(),
                                                      complete, posted, &handle);
  if (result != ccomSuccess) {
    delete posted;
    try {
      check(result, use.comm());
    } catch (...) {
      std::rethrow_exception(explained(std::current_exception(), call_name(type), work->sequence()));
    }
  }
  work->set_handle(handle);
  coalesce(work);
  return work;
}

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int peer, int tag) {
  return message(tensors, peer, tag, c10d::OpType::SEND);
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int peer, int tag) {
  return message(tensors, peer, tag, c10d::OpType::RECV);
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return message(tensors, CCOM_ANY_RANK, tag, c10d::OpType::RECVANYSOURCE);
}

void ProcessGroup::startCoalescing() {
  std::lock_guard lock(coalescing_mutex_);
  coalesced_.emplace();
}

void ProcessGroup::coalesce(const c10::intrusive_ptr<Work>& work) {
  std::lock_guard lock(coalescing_mutex_);
  if (coalesced_.has_value()) coalesced_->push_back(work);
}

ProcessGroup::WorkPtr ProcessGroup::endCoalescing() {
  std::lock_guard lock(coalescing_mutex_);
  TORCH_CHECK(coalesced_.has_value(), "ccom: endCoalescing without startCoalescing");
  auto work = join_works(rank_, *coalesced_);
  coalesced_.reset();
  return work;
}

}  // namespace ccom_torch
