// SPDX-License-Identifier: Apache-2.0
#include "transports/ofi/ofi_transport.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>

#include "transports/ofi/addresses.h"

namespace ccom::ofi {
namespace {

// Maximum sleep while the provider is busy: no event announces when it is ready.
constexpr auto kRefusedSlice = std::chrono::microseconds(200);
constexpr std::chrono::nanoseconds kShortestSleep = std::chrono::microseconds(5);

}  // namespace

WakeDescriptor::~WakeDescriptor() {
  if (fd_ >= 0) close(fd_);
}

Status WakeDescriptor::open() {
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return fd_ >= 0 ? Status::ok() : system_error(errno, "create an eventfd");
}

void WakeDescriptor::signal() {
  // Fails only when the counter is full, which wakes the waiter too.
  [[maybe_unused]] const int rc = eventfd_write(fd_, 1);
}

void WakeDescriptor::clear() {
  eventfd_t count = 0;
  [[maybe_unused]] const int rc = eventfd_read(fd_, &count);
}

OfiTransport::OfiTransport(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint,
                           std::vector<std::unique_ptr<Endpoint>> rails)
    : config_(config),
      endpoint_(std::move(endpoint)),
      rails_(std::make_unique<Rails>(std::move(rails))),
      registrations_(*rails_, config.arena),
      pool_(*endpoint_) {}

Result<std::unique_ptr<OfiTransport>> OfiTransport::create(const OfiConfig& config, std::unique_ptr<Endpoint> endpoint,
                                                           std::vector<std::unique_ptr<Endpoint>> rails) {
  std::unique_ptr<OfiTransport> transport(new OfiTransport(config, std::move(endpoint), std::move(rails)));
  CCOM_TRY(transport->wake_.open());
  return transport;
}

OfiTransport::~OfiTransport() {
  if (getpid() != process_) {  // a forked child: device, connections and their state belong to the parent
    registrations_.abandon();
    (void)new auto(std::move(links_));
    (void)rails_.release();
    (void)endpoint_.release();
    return;
  }
  stop();
  shut_down();
  registrations_.forget();
  rails_.reset();
  endpoint_.reset();  // before the operations that it may still hold
}

std::string OfiTransport::address() const {
  std::vector<std::string> addresses = rails_->addresses();
  addresses.insert(addresses.begin(), endpoint_->address());
  return join_addresses(addresses);
}

Result<Channel*> OfiTransport::channel(Rank peer, int index) {
  Link* link = is_connected_ ? find_link(peer) : nullptr;
  if (link == nullptr) return error(Code::InvalidArgument, "rank %d is not connected to rank %d", config_.rank, peer);
  if (index < 0 || static_cast<size_t>(index) >= link->channels.size()) {
    return error(Code::InvalidArgument, "channel %d to rank %d: only %zu exist", index, peer, link->channels.size());
  }
  return link->channels[static_cast<size_t>(index)].get();
}

Link* OfiTransport::find_link(Rank rank) {
  const auto found = by_rank_.find(rank);
  return found != by_rank_.end() ? found->second : nullptr;
}

// Writes from and into user memory are outstanding and cannot be cancelled, so their endpoints are closed. Writes whose
// header alone was received count as arrived, because nothing waits for them any more.
void OfiTransport::stop() {
  board_.stopped = true;
  const auto is_exposed = [](const auto& link) {
    const auto has_targets = [](const auto& channel) { return channel->has_open_targets(); };
    return std::ranges::any_of(link->channels, has_targets);
  };
  if (rails_->has_work() || std::ranges::any_of(links_, is_exposed)) {
    rails_->shut();
    for (const auto& link : links_) {
      for (WriteOperation& operation : link->writes)
        link->unfinished -= std::exchange(operation.is_busy, false) ? 1 : 0;
    }
  }
  for (const auto& link : links_) {
    drop_stranded(*link);
    link->arrived += std::exchange(link->awaited, 0);
    for (const auto& channel : link->channels) channel->drop_all();
  }
  registrations_.forget();
  board_.completed.clear();
  board_.ended.clear();
  board_.mismatch.reset();
  tell_peers();
}

uint64_t OfiTransport::memory_bytes() const { return pool_.memory_bytes() + send_memory_bytes_ + slot_memory_bytes_; }

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

// Peers' writes alone do not wake this rank: their headers do, and then the rails are polled too.
void OfiTransport::wait(std::chrono::nanoseconds at_most) {
  const bool has_work =
      !board_.ready.empty() || !paused_.empty() || !board_.completed.empty() || !board_.failed.is_ok();
  if (has_work && !board_.stopped) return;
  if (const auto now = Clock::now(); now >= look_at_) probe_silent_peers(now);
  if (stranded_ > 0 || !asked_.empty()) at_most = std::min<std::chrono::nanoseconds>(at_most, kRefusedSlice);
  if (!waiting_.empty() || pool_.is_waiting() || rails_->is_waiting()) {
    at_most = std::min<std::chrono::nanoseconds>(at_most, kRefusedSlice);
  }
  std::array<pollfd, 2 + kMaxRails> descriptors{pollfd{wake_.fd(), POLLIN, 0}};
  nfds_t count = 1;
  bool lacks_descriptor = false;
  const auto watch = [&descriptors, &count, &lacks_descriptor](Endpoint& endpoint) {
    lacks_descriptor |= endpoint.descriptor() < 0;
    if (endpoint.descriptor() >= 0) descriptors[count++] = {endpoint.descriptor(), POLLIN, 0};
    return endpoint.may_sleep();
  };
  bool may_sleep = watch(*endpoint_);
  for (size_t rail = 0; may_sleep && are_rails_awake() && rail < rails_->count(); ++rail) {
    may_sleep = watch(*rails_->endpoints()[rail]);
  }
  if (lacks_descriptor) {  // no descriptor to sleep on: sleep for growing intervals
    sleep_ = std::clamp<std::chrono::nanoseconds>(sleep_ * 2, kShortestSleep, kRefusedSlice);
    at_most = std::min(at_most, sleep_);
  }
  if (may_sleep && at_most.count() > 0) {
    const timespec time{.tv_sec = at_most.count() / 1'000'000'000, .tv_nsec = at_most.count() % 1'000'000'000};
    ppoll(descriptors.data(), count, &time, nullptr);
  }
  if (descriptors[0].revents != 0) wake_.clear();
}

bool OfiTransport::are_rails_awake() const {
  return !rails_->is_shut() && (rails_->has_work() || board_.tickets.awaited() > 0);
}

// All completions are handled even after an error, because each returns an operation; the first error is returned.
Status OfiTransport::advance() {
  for (OfiChannel* channel : std::exchange(paused_, {})) channel->schedule();
  Status first = serve_ready();
  const auto note = [&first](Status status) {
    if (first.is_ok()) first = std::move(status);
  };
  // Who is asked whether a write has arrived answers after another look at what has.
  const std::vector<Link*> asked = std::exchange(asked_, {});
  completions_.clear();
  note(endpoint_->poll(completions_));
  if (are_rails_awake() || !asked.empty()) {
    rails_->flush();
    note(rails_->poll(completions_));
  }
  if (!completions_.empty()) sleep_ = {};
  for (const Completion& completion : completions_) note(handle(completion));
  for (Link* link : asked) note(answer(*link));
  note(look_after_stranded());
  note(pool_.retry());
  if (first.is_ok()) note(serve_ready());
  note(flush_waiting());
  return first;
}

Status OfiTransport::handle(const Completion& completion) {
  Operation* operation = completion.operation;
  if (operation == nullptr) return on_written(completion.immediate);
  switch (operation->operation_kind) {
    case OperationKind::Send: return on_sent(static_cast<SendOperation&>(*operation), completion);
    case OperationKind::Write: return on_wrote(static_cast<WriteOperation&>(*operation), completion);
    case OperationKind::Receive: return on_received(static_cast<ReceiveOperation&>(*operation), completion);
  }
  return Status::ok();
}

}  // namespace ccom::ofi
