// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives of a communicator.
#include <algorithm>
#include <cstring>

#include "comm/communicator.h"

namespace ccom {
namespace {

// Sends and receives to and from `self`, in order.
struct OwnTransfers {
  OwnTransfers(const Request* requests, size_t count, Rank self) {
    for (size_t i = 0; i < count; ++i) {
      if (requests[i].collective != Collective::SendReceive || requests[i].peer != self) continue;
      (requests[i].sends ? sends : receives).push_back(&requests[i]);
    }
  }
  std::vector<const Request*> sends, receives;
};

std::string describe_data(const Request& request) {
  return std::to_string(request.count) + " " + std::string(name_of(request.type));
}

}  // namespace

bool Communicator::is_forwarded(const Request& request) const {
  return !all_linked_ && !topology_.linked(membership_.rank, request.peer);
}

Status Communicator::check_group(const std::vector<Request>& requests) const {
  const OwnTransfers own(requests.data(), requests.size(), membership_.rank);
  if (own.sends.size() != own.receives.size()) {
    return error(Code::InvalidUsage, "rank %d sends %zu messages to itself in this group and receives %zu",
                 membership_.rank, own.sends.size(), own.receives.size());
  }
  for (size_t i = 0; i < own.sends.size(); ++i) {
    if (own.sends[i]->count == own.receives[i]->count && own.sends[i]->type == own.receives[i]->type) continue;
    return error(Code::InvalidUsage, "rank %d sends %s to itself and receives %s", membership_.rank,
                 describe_data(*own.sends[i]).c_str(), describe_data(*own.receives[i]).c_str());
  }
  return {};
}

// Sends and receives of one group, all at the same time.
Status Communicator::run_transfers(const Request* requests, size_t count) {
  const OwnTransfers to_self(requests, count, membership_.rank);
  if (to_self.sends.size() != to_self.receives.size()) {
    return error(Code::InvalidUsage, "rank %d: a collective stands between a send to itself and its receive",
                 membership_.rank);
  }
  for (size_t i = 0; i < to_self.sends.size(); ++i) {
    const Request& send = *to_self.sends[i];
    if (send.count > 0) std::memmove(to_self.receives[i]->output, send.input, send.count * size_of(send.type));
  }
  ActivityWriter& activity = links_->monitor().activity();
  activity.begin_transfers(requests[0].site);
  const EndOfTransfers end(activity);
  for (size_t i = 0; i < count; ++i) {  // messages count themselves
    if (!is_forwarded(requests[i])) activity.count_transfer(requests[i].count * size_of(requests[i].type));
  }
  // Those that are forwarded first: they go on while this thread waits for the others.
  Status status;
  const std::vector<std::shared_ptr<Message>> forwarded = post_forwarded(requests, count, status);
  if (status.is_ok()) status = run_direct(requests, count);
  for (const std::shared_ptr<Message>& message : forwarded) {  // in any case, since they use the caller's buffers
    messages_->wait(*message, std::nullopt, requests[0].site);
    if (status.is_ok()) status = message->status();
  }
  activity.set_result(status);
  return finish(name_of(Collective::SendReceive), std::move(status));
}

// To and from ranks that share no link with this one. The k-th send to a rank meets its k-th receive from this one.
std::vector<std::shared_ptr<Message>> Communicator::post_forwarded(const Request* requests, size_t count,
                                                                   Status& refused) {
  std::vector<std::shared_ptr<Message>> posted;
  for (size_t i = 0; i < count && refused.is_ok(); ++i) {
    const Request& request = requests[i];
    if (!is_forwarded(request)) continue;
    uint64_t& sequence = (request.sends ? sent_to_ : received_from_)[static_cast<size_t>(request.peer)];
    MessageRequest message{
        .sends = request.sends,
        .data = request.sends ? const_cast<std::byte*>(request.input) : request.output,  // NOLINT: read only
        .bytes = request.count * size_of(request.type),
        .peer = request.peer,
        .tag = static_cast<int64_t>(++sequence),
        .call_type = static_cast<uint16_t>(static_cast<uint16_t>(request.type) + 1),
        .timeout_ms = request.timeout_ms,
        .done = {}};
    posted.push_back(std::make_shared<Message>(std::move(message)));
    refused = messages_->post(posted.back());
    if (!refused.is_ok()) posted.pop_back();
  }
  return posted;
}

// Of those along links.
Status Communicator::run_direct(const Request* requests, size_t count) {
  std::vector<std::shared_ptr<const BoundPlan>> plans;
  for (size_t i = 0; i < count; ++i) {
    const bool is_other = requests[i].peer == membership_.rank || is_forwarded(requests[i]);
    auto plan = is_other ? Result<std::shared_ptr<const BoundPlan>>(nullptr) : transfers_->get(requests[i]);
    if (!plan) return refuse(describe(requests[i], membership_.communicator, 0, 0), plan.error());
    plans.push_back(*std::move(plan));
  }
  std::vector<Operation> operations;
  int64_t timeout_ms = requests[0].timeout_ms;
  for (size_t i = 0; i < count; ++i) {
    const Request& request = requests[i];
    timeout_ms = std::min(timeout_ms, request.timeout_ms);
    if (plans[i] == nullptr) continue;
    uint64_t& sequence = (request.sends ? sent_to_ : received_from_)[static_cast<size_t>(request.peer)];
    operations.push_back({plans[i].get(), request.input, request.output, nullptr,
                          describe(request, membership_.communicator, ++sequence, 0), 1});
  }
  return operations.empty() ? Status::ok() : engine_->run(operations, Deadline::after_ms(timeout_ms));
}

}  // namespace ccom
