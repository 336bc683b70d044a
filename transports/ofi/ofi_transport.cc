// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/ofi_transport.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

namespace ccom::ofi {
namespace {

// How long to sleep at most while the provider has refused something: nothing announces that it would take it now.
constexpr auto kRefusedSlice = std::chrono::microseconds(200);

}  // namespace

WakeDescriptor::~WakeDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Status WakeDescriptor::open() {
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd_ >= 0 ? Status::ok() : system_error(errno, "create an eventfd");
}

void WakeDescriptor::signal() {
  // Fails only when the counter is full, which wakes as well.
  [[maybe_unused]] const int rc = eventfd_write(fd_, 1);
}

void WakeDescriptor::clear() {
  eventfd_t count = 0;
  [[maybe_unused]] const int rc = eventfd_read(fd_, &count);
}

OfiTransport::OfiTransport(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint)
    : config_(config),
      greeter_(config.key, config.communicator, config.rank),
      endpoint_(std::move(endpoint)),
      pool_(*endpoint_) {}

Result<std::unique_ptr<OfiTransport>> OfiTransport::create(const OfiConfig& config,
                                                           std::unique_ptr<Endpoint> endpoint) {
  std::unique_ptr<OfiTransport> transport(new OfiTransport(config, std::move(endpoint)));
  CCOM_TRY(transport->wake_.open());
  return transport;
}

OfiTransport::~OfiTransport() {
  stop();
  farewell();
  endpoint_.reset();  // before the operations that it may still hold
}

Result<Channel*> OfiTransport::channel(Rank peer, int index) {
  Link* link = is_connected_ ? find_link(peer) : nullptr;
  if (link == nullptr) return error(Code::InvalidArgument, "rank %d is not connected to rank %d", config_.rank, peer);
  if (index < 0 || static_cast<size_t>(index) >= link->channels.size()) {
    return error(Code::InvalidArgument, "channel %d to rank %d: there are %zu", index, peer, link->channels.size());
  }
  return link->channels[static_cast<size_t>(index)].get();
}

Link* OfiTransport::find_link(Rank rank) {
  const auto found = by_rank_.find(rank);
  return found != by_rank_.end() ? found->second : nullptr;
}

void OfiTransport::stop() {
  board_.stopped = true;
  for (const auto& link : links_) {
    for (const auto& channel : link->channels) channel->drop_all();
  }
  board_.completed.clear();
  board_.ended.clear();
  board_.mismatch.reset();
}

uint64_t OfiTransport::memory_bytes() const { return pool_.memory_bytes() + send_memory_bytes_; }

Status OfiTransport::progress(Events& events) {
  if (board_.stopped) return Status::ok();
  CCOM_TRY(board_.failed);
  board_.failed = advance();
  events.completed.insert(events.completed.end(), board_.completed.begin(), board_.completed.end());
  board_.completed.clear();
  events.ended.insert(events.ended.end(), board_.ended.begin(), board_.ended.end());
  board_.ended.clear();
  if (board_.mismatch) {
    events.mismatch = std::exchange(board_.mismatch, std::nullopt);
    return Status::ok();
  }
  return board_.failed;
}

void OfiTransport::wait(std::chrono::nanoseconds at_most) {
  const bool has_work = !board_.ready.empty() || !board_.completed.empty() || !board_.failed.is_ok();
  if (has_work && !board_.stopped) return;
  if (!waiting_.empty() || pool_.is_waiting()) at_most = std::min<std::chrono::nanoseconds>(at_most, kRefusedSlice);
  if (at_most.count() > 0) endpoint_->wait(at_most, wake_.fd());
  wake_.clear();
}

// All completions are handled even after an error, because each returns an operation; the first error is the answer.
Status OfiTransport::advance() {
  Status first = serve_ready();
  const auto note = [&first](Status status) {
    if (first.is_ok()) first = std::move(status);
  };
  completions_.clear();
  note(endpoint_->poll(completions_));
  for (const Completion& completion : completions_) note(handle(completion));
  note(pool_.retry());
  if (first.is_ok()) note(serve_ready());
  note(flush_waiting());
  return first;
}

Status OfiTransport::handle(const Completion& completion) {
  if (completion.operation->is_send) return on_sent(static_cast<SendOperation&>(*completion.operation), completion);
  return on_received(static_cast<ReceiveOperation&>(*completion.operation), completion);
}

}  // namespace ccom::ofi
