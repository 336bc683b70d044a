// SPDX-License-Identifier: Apache-2.0
//
// The server uses gRPC's callback API, so a waiting rank holds no thread. Gathering decides about requests; this file
// adds the transport: TLS, deadlines, error texts.
#include "bootstrap/grpc_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/connection_intake.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_answer.h"
#include "bootstrap/grpc_service.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/presences.h"
#include "bootstrap/relay_tree.h"
#include "bootstrap/start_wait.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kShutdownGrace = 1s;
constexpr auto kTellingTime = 2s;
// gRPC waits for ever for a call that a std::bad_alloc has made it forget.
constexpr auto kLongestShutdown = 5s;
constexpr int kRequestBytes = static_cast<int>(kMaxRelayedBytes) + (1 << 16);
constexpr size_t kServerMemory = size_t{512} << 20;

}  // namespace

// Threads: gRPC calls exchange() and on_cancel(), the intake's would_admit(), the server's own waits for deadlines.
// Calls finish outside the lock.
class RendezvousServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}
  Status open();
  bool end();
  uint16_t port() const { return intake_->port(); }
  bool wait_until_ended(Clock::time_point when) const;

 private:
  struct Waiter {
    ServerCall* call;
    uint64_t round;
    Deadline timeout;
    Clock::time_point since;
  };
  bool would_admit(Rank rank, int nranks) const;
  ServerCall* exchange(grpc::ByteBuffer request, grpc::ByteBuffer& answer);
  void leave_all(const std::vector<Caller>& callers, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void on_cancel(ServerCall* call);
  void handle(wire::Request& request, ServerCall* call, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  bool is_absent(const Caller& caller) const CCOM_REQUIRES(mutex_);
  bool forget(const ServerCall* call, std::optional<Rank>& missed) CCOM_REQUIRES(mutex_);  // false: it is not here
  void add_waiter(Rank rank, uint64_t round, int64_t timeout_ms, ServerCall* call, FinishedCalls& finished)
      CCOM_REQUIRES(mutex_);
  void settle(FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void refuse_all();
  void run();
  void serve_until_over();
  Deadline next_event() const CCOM_REQUIRES(mutex_);

  const Options options_;
  const int64_t warn_ms_ = start_warning_ms();
  const GrpcUse grpc_;
  RendezvousCalls service_{
      [this](const grpc::ByteBuffer& request, grpc::ByteBuffer& answer) { return exchange(request, answer); }};
  std::unique_ptr<ConnectionIntake> intake_;
  std::unique_ptr<grpc::Server> server_;

  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<Rank, Waiter> waiting_ CCOM_GUARDED_BY(mutex_);
  std::optional<StartWait> wait_ CCOM_GUARDED_BY(mutex_);  // since the first of them waits
  ServerProcess process_ CCOM_GUARDED_BY(mutex_) = {.who = this_process(), .build = this_build()};
  RelayTree relays_ CCOM_GUARDED_BY(mutex_) = RelayTree(options_.relays);
  Gathering gathering_ CCOM_GUARDED_BY(mutex_) = Gathering(process_.who, process_.build);
  const grpc::ByteBuffer nothing_ = encode(Status::ok(), ServerProcess{});  // to who does not read it
  Presences present_ CCOM_GUARDED_BY(mutex_) = Presences(nothing_);
  bool stop_ CCOM_GUARDED_BY(mutex_) = false;
  bool ended_ CCOM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Status RendezvousServer::Impl::open() {
  grpc::ServerBuilder builder;
  CCOM_TRY_ASSIGN(intake_,
                  ConnectionIntake::listen(options_.address, options_.port, options_.secret, builder,
                                           [this](Rank rank, int nranks) { return would_admit(rank, nranks); }));
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kRequestBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("ccom rendezvous server").Resize(kServerMemory));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return error(Code::InternalError, "start a gRPC server for the ranks at %s", options_.address.c_str());
  CCOM_TRY(intake_->start());
  if (const int refused = start_thread(thread_, "ccom-rendezvous", [this] { run(); }); refused != 0) {
    return system_error(refused, "start the rendezvous server's thread");
  }
  return Status::ok();
}

// To a probe, whose process has not joined.
bool RendezvousServer::Impl::would_admit(Rank rank, int nranks) const {
  const Lock lock(mutex_);
  return gathering_.would_admit({.rank = rank, .nranks = nranks, .who = {}, .build = process_.build}).is_ok();
}

ServerCall* RendezvousServer::Impl::exchange(grpc::ByteBuffer bytes, grpc::ByteBuffer& answer) {
  auto* call = new ServerCall(answer, [this](ServerCall* cancelled) { on_cancel(cancelled); });
  FinishedCalls finished;
  try {
    wire::Request request;
    if (!grpc::SerializationTraits<wire::Request>::Deserialize(&bytes, &request).ok()) {
      finished.add(call, kMalformed);
      return call;
    }
    const Lock lock(mutex_);
    handle(request, call, finished);
    settle(finished);
    changed_.notify_all();
  } catch (const std::bad_alloc&) {
    const Lock lock(mutex_);
    std::optional<Rank> missed;
    forget(call, missed);
    finished.add(call, kNoMemory);
  }
  return call;
}

void RendezvousServer::Impl::handle(wire::Request& request, ServerCall* call, FinishedCalls& finished) {
  const Caller caller = caller_of(request);
  const std::vector<Caller> callers = callers_of(request);
  switch (request.step_case()) {
    case wire::Request::kJoin: {
      if (are_for_next_rendezvous(gathering_, callers)) return finished.add(call, kNotYet);
      if (request.also().empty() && is_absent(caller)) return finished.add(call, kAbsent);
      if (const std::string relay = relays_.way_of(caller, request.join().relay_at()); !relay.empty())
        return finished.add(call, encode_way(relay, process_));
      return finished.add(call, encode(join_all(gathering_, callers, process_), process_));
    }
    case wire::Request::kPresence:
      if (gathering_.is_for_next_rendezvous(caller)) return finished.add(call, kNotYet);
      return present_.begin(caller, call, finished);
    case wire::Request::kLeave: leave_all(callers, finished); return finished.add(call, encode(Status::ok(), process_));
    case wire::Request::kLost: lose_all(gathering_, callers); return finished.add(call, nothing_);
    case wire::Request::kContribution: {
      const wire::Contribution& step = request.contribution();
      const Status status = contribute_all(gathering_, request);
      if (!status.is_ok() || step.is_relayed()) return finished.add(call, encode(status, process_));
      return add_waiter(caller.rank, step.round(), step.timeout_ms(), call, finished);
    }
    case wire::Request::kAwait:
      return add_waiter(caller.rank, request.await().round(), request.await().timeout_ms(), call, finished);
    case wire::Request::STEP_NOT_SET:  // a probe
      finished.add(call, encode(gathering_.would_admit(caller), process_));
      return;
  }
}

void RendezvousServer::Impl::leave_all(const std::vector<Caller>& callers, FinishedCalls& finished) {
  for (const Caller& caller : callers) {
    present_.end(caller, finished);
    gathering_.leave(caller);
  }
}

// It would be admitted if its presence had not broken meanwhile.
bool RendezvousServer::Impl::is_absent(const Caller& caller) const {
  return !present_.has(caller) && gathering_.would_admit(caller).is_ok();
}

// A retry replaces the request whose connection was lost.
void RendezvousServer::Impl::add_waiter(Rank rank, uint64_t round, int64_t timeout_ms, ServerCall* call,
                                        FinishedCalls& finished) {
  const Waiter waiter{.call = call, .round = round, .timeout = Deadline::after_ms(timeout_ms), .since = Clock::now()};
  if (!wait_) wait_.emplace(warn_ms_);
  const auto [place, is_new] = waiting_.try_emplace(rank, waiter);
  if (is_new) return;
  finished.add(place->second.call, nothing_);
  place->second = waiter;
}

// Removes all requests that need not wait any longer. All get the same bytes, encoded once. A failure ends presences:
// ranks that wait for each other between two exchanges then ask for it.
void RendezvousServer::Impl::settle(FinishedCalls& finished) {
  std::map<uint64_t, grpc::ByteBuffer> answers;
  const bool has_failed = !gathering_.failure().is_ok();
  for (auto place = waiting_.begin(); place != waiting_.end();) {
    const Waiter& waiter = place->second;
    const Gathering::Parts parts = gathering_.result(waiter.round);
    if (parts == nullptr && !has_failed) {
      ++place;
      continue;
    }
    const auto [answer, is_new] = answers.try_emplace(waiter.round);
    if (is_new) answer->second = parts != nullptr ? encode(*parts, process_) : encode(gathering_.failure(), process_);
    finished.add(waiter.call, answer->second);
    place = waiting_.erase(place);
  }
  if (waiting_.empty()) wait_.reset();
  if (has_failed) present_.end_all(finished);
}

// A rank that was present and has not joined is not missed: it may try again.
bool RendezvousServer::Impl::forget(const ServerCall* call, std::optional<Rank>& missed) {
  const auto is_it = [call](const auto& entry) { return entry.second.call == call; };
  if (const auto found = std::ranges::find_if(waiting_, is_it); found != waiting_.end()) {
    missed = found->first;
    waiting_.erase(found);
    return true;
  }
  const std::optional<Caller> caller = present_.forget(call);
  if (caller && gathering_.is_member(*caller)) missed = caller->rank;
  return caller.has_value();
}

// The rank's connection was lost, or it gave up.
void RendezvousServer::Impl::on_cancel(ServerCall* call) {
  FinishedCalls finished;
  const Lock lock(mutex_);
  std::optional<Rank> missed;
  if (!forget(call, missed)) return;
  finished.add(call, nothing_);
  if (!missed) return;
  try {
    gathering_.lose_rank(*missed);
    settle(finished);
  } catch (const std::bad_alloc&) {  // those that wait are told at their deadline
  }
  changed_.notify_all();
}

Deadline RendezvousServer::Impl::next_event() const {
  Deadline next = options_.life;
  for (const auto& [rank, waiter] : waiting_) next = next.earlier(waiter.timeout);
  return wait_ ? next.earlier(wait_->next()) : next;
}

void RendezvousServer::Impl::serve_until_over() {
  const auto started = Clock::now();
  const auto seconds_since = [](Clock::time_point when) {
    return std::chrono::duration<double>(Clock::now() - when).count();
  };
  for (bool is_over = false; !is_over;) {
    FinishedCalls finished;
    Lock lock(mutex_);
    if (!stop_ && !gathering_.is_over() && !options_.life.passed()) lock.wait_until(changed_, next_event().when());
    const auto late = std::ranges::find_if(waiting_, [](const auto& entry) { return entry.second.timeout.passed(); });
    is_over = stop_ || gathering_.is_over() || options_.life.passed();
    if (wait_ && wait_->is_due())
      log(LogLevel::Warn, "the start has waited %.0f s for %s", wait_->seconds(),
          gathering_.describe_missing().c_str());
    if (late != waiting_.end()) {
      gathering_.time_out(late->first, seconds_since(late->second.since));
    } else if (stop_) {
      gathering_.close();
    } else if (is_over && !gathering_.is_over()) {
      gathering_.time_out(-1, seconds_since(started));
    }
    settle(finished);
    if (is_over) present_.end_all(finished);
  }
}

void RendezvousServer::Impl::refuse_all() {
  FinishedCalls finished;
  const Lock lock(mutex_);
  for (const auto& [rank, waiter] : waiting_) finished.add(waiter.call, kNoMemory);
  waiting_.clear();
  present_.refuse_all(kNoMemory, finished);
}

void RendezvousServer::Impl::run() {
  try {
    serve_until_over();
  } catch (const std::bad_alloc&) {
    log(LogLevel::Error, "the rendezvous server ran out of memory");
  }
  refuse_all();  // those that still wait
  intake_->stop();
  if (options_.on_end) options_.on_end();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_.reset();
  const Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// False if it does not end: its thread is left to itself.
bool RendezvousServer::Impl::end() {
  if (!thread_.joinable()) return true;
  Lock lock(mutex_);
  // Who asks later why the start failed would find no server, and blame this process.
  lock.wait_until(changed_, Clock::now() + kTellingTime,
                  [this]() CCOM_REQUIRES(mutex_) { return ended_ || !gathering_.has_failed_unknown_to_some(); });
  stop_ = true;
  changed_.notify_all();
  const bool has_ended =
      lock.wait_until(changed_, Clock::now() + kLongestShutdown, [this]() CCOM_REQUIRES(mutex_) { return ended_; });
  lock.unlock();
  has_ended ? thread_.join() : thread_.detach();
  return has_ended;
}

bool RendezvousServer::Impl::wait_until_ended(Clock::time_point when) const {
  Lock lock(mutex_);
  return lock.wait_until(changed_, when, [this]() CCOM_REQUIRES(mutex_) { return ended_; });
}

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(Options options) {
  try {
    const SignalsBlocked blocked;  // gRPC's threads leave them to the application's
    auto impl = std::make_unique<Impl>(std::move(options));
    CCOM_TRY(impl->open());
    return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(impl)));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "start the rendezvous server: %s", failure.what());
  }
}

RendezvousServer::RendezvousServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RendezvousServer::~RendezvousServer() {
  if (impl_->end()) return;
  log(LogLevel::Error, "the rendezvous server does not end: gRPC has lost a request");
  (void)impl_.release();  // its thread uses it
}
uint16_t RendezvousServer::port() const { return impl_->port(); }
bool RendezvousServer::has_ended() const { return impl_->wait_until_ended(Clock::now()); }
bool RendezvousServer::wait_until_ended(Deadline deadline) const { return impl_->wait_until_ended(deadline.when()); }

}  // namespace ccom
