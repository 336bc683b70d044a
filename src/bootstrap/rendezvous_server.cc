// SPDX-License-Identifier: Apache-2.0
//
// Gathering decides about requests; this file adds where they come from, deadlines, and that they are answered.
#include "bootstrap/rendezvous_server.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/connection_intake.h"
#include "bootstrap/grpc_server.h"
#include "bootstrap/network_ranks.h"
#include "bootstrap/rendezvous.pb.h"
#include "bootstrap/socket_ranks.h"
#include "bootstrap/start_resources.h"
#include "bootstrap/start_wait.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kShutdownGrace = 1s;
constexpr auto kTellingTime = 2s;
// gRPC waits for ever for a call that a std::bad_alloc has made it forget.
constexpr auto kLongestShutdown = 5s;
// Until it is tried again to open the socket, which a process that is ending may still have; longer each time.
constexpr auto kSocketRetry = 5ms, kLongestRetry = 1000ms;
constexpr auto kLongestSleep = 10s;

}  // namespace

// Threads: gRPC calls handle() and on_cancel(), the intake's would_admit() and take(); the server's own serves the
// ranks of this host and waits for deadlines. Calls finish outside the lock.
class RendezvousServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}
  Status open();
  bool end();
  uint16_t port() const { return intake_->port(); }
  bool wait_until_ended(Clock::time_point when) const;

 private:
  bool would_admit(Rank rank, int nranks) const;
  void take(Descriptor connection, int listener);
  Status start_grpc();
  void handle(wire::Request& request, PendingCall* call);
  void on_cancel(PendingCall* call);
  void refuse_all();
  void run();
  void serve_until_over();
  void look_at_deadlines(Clock::time_point started) CCOM_REQUIRES(mutex_);
  bool is_over() const CCOM_REQUIRES(mutex_) { return stop_ || gathering_.is_over() || options_.life.passed(); }
  std::chrono::milliseconds until_next_event() const;
  void wake() const { (void)::eventfd_write(wake_.get(), 1); }

  const Options options_;
  const int64_t warn_ms_ = start_warning_ms();
  Descriptor wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // of the server's thread
  SocketRanks ranks_ = SocketRanks(RelayPlace::of_server(options_.secret, options_.communicator));

  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<StartWait> wait_ CCOM_GUARDED_BY(mutex_);  // since the first of them waits
  ServerProcess process_ CCOM_GUARDED_BY(mutex_) = {.who = this_process(), .build = this_build()};
  Gathering gathering_ CCOM_GUARDED_BY(mutex_) = Gathering(process_.who, process_.build);
  NetworkRanks others_ CCOM_GUARDED_BY(mutex_) = NetworkRanks(options_.relays, gathering_, process_);
  bool stop_ CCOM_GUARDED_BY(mutex_) = false;
  bool ended_ CCOM_GUARDED_BY(mutex_) = false;
  std::unique_ptr<GrpcServer>
      grpc_;  // null: nobody has come who needs it. Belongs to the intake's thread while it runs
  std::unique_ptr<ConnectionIntake> intake_;
  std::thread thread_;
};

// Whoever finds the port finds the socket, if it can be opened.
Status RendezvousServer::Impl::open() {
  if (!wake_.is_open()) return system_error(errno, "open an eventfd");
  (void)ranks_.listen();
  CCOM_TRY_ASSIGN(intake_, ConnectionIntake::listen(
                               options_.address, options_.port, options_.secret,
                               [this](Descriptor connection, int listener) { take(std::move(connection), listener); },
                               [this](Rank rank, int nranks) { return would_admit(rank, nranks); }));
  CCOM_TRY(intake_->start());
  if (const int refused = start_thread(thread_, "ccom-rendezvous", [this] { run(); }); refused != 0) {
    return system_error(refused, "start the rendezvous server's thread");
  }
  return Status::ok();
}

// Of another host. Without gRPC it is told nothing, and those who are here why.
void RendezvousServer::Impl::take(Descriptor connection, int listener) {
  if (grpc_ == nullptr) {
    if (Status started = start_grpc(); !started.is_ok()) {
      const Lock lock(mutex_);
      gathering_.close(std::move(started).in("the rendezvous server cannot speak to other hosts"));
      return wake();
    }
  }
  grpc_->take(std::move(connection), listener);
}

Status RendezvousServer::Impl::start_grpc() {
  CCOM_TRY(check_start_resources());
  CCOM_TRY_ASSIGN(grpc_,
                  GrpcServer::start(options_.secret, {[this](auto& request, auto* call) { handle(request, call); },
                                                      [this](auto* call) { on_cancel(call); }}));
  return {};
}

// To a probe, whose process has not joined.
bool RendezvousServer::Impl::would_admit(Rank rank, int nranks) const {
  const Lock lock(mutex_);
  return gathering_.would_admit({.rank = rank, .nranks = nranks, .who = {}, .build = process_.build}).is_ok();
}

void RendezvousServer::Impl::handle(wire::Request& request, PendingCall* call) {
  FinishedCalls finished;
  const Lock lock(mutex_);
  try {
    others_.hear(request, call, finished);
    others_.settle(finished);
  } catch (const std::bad_alloc&) {
    others_.drop(call, finished);
  }
  wake();
}

void RendezvousServer::Impl::on_cancel(PendingCall* call) {
  FinishedCalls finished;
  const Lock lock(mutex_);
  others_.cancel(call, finished);
  wake();
}

std::chrono::milliseconds RendezvousServer::Impl::until_next_event() const {
  const Lock lock(mutex_);
  if (is_over()) return 0ms;
  Deadline next = ranks_.next_limit(options_.life.earlier(Deadline::after(kLongestSleep)));
  next = others_.next_limit(next);
  if (wait_) next = next.earlier(wait_->next());
  return std::chrono::ceil<std::chrono::milliseconds>(next.left());
}

void RendezvousServer::Impl::serve_until_over() {
  const auto started = Clock::now();
  std::chrono::milliseconds retry = kSocketRetry;
  auto next_try = started;
  bool has_socket = false;
  for (bool has_ended = false; !has_ended;) {
    if (!has_socket && Clock::now() >= next_try) {
      has_socket = ranks_.listen();
      next_try = Clock::now() + retry;
      retry = std::min<std::chrono::milliseconds>(2 * retry, kLongestRetry);
    }
    ranks_.step(has_socket ? until_next_event() : std::min(until_next_event(), retry), wake_.get());
    eventfd_t ignored = 0;
    (void)::eventfd_read(wake_.get(), &ignored);
    FinishedCalls finished;
    const Lock lock(mutex_);
    ranks_.hear(gathering_, process_);
    has_ended = is_over();
    look_at_deadlines(started);
    others_.settle(finished);
    ranks_.settle(gathering_, process_);
    if (!others_.are_waiting() && !ranks_.are_waiting()) wait_.reset();
    if (has_ended) others_.end_presences(finished);
    changed_.notify_all();
  }
}

void RendezvousServer::Impl::look_at_deadlines(Clock::time_point started) {
  const auto seconds_since = [](Clock::time_point when) {
    return std::chrono::duration<double>(Clock::now() - when).count();
  };
  if (!wait_ && (others_.are_waiting() || ranks_.are_waiting())) wait_.emplace(warn_ms_);
  if (wait_ && wait_->is_due())
    log(LogLevel::Warn, "the start has waited %.0f s for %s", wait_->seconds(), gathering_.describe_missing().c_str());
  const std::optional<NetworkRanks::Late> late = others_.find_late();
  const RelayedRank* const late_here = ranks_.find_late();
  if (late) {
    gathering_.time_out(late->rank, seconds_since(late->since));
  } else if (late_here != nullptr) {
    gathering_.time_out(late_here->self.rank(), seconds_since(late_here->since));
  } else if (stop_) {
    gathering_.close();
  } else if (is_over() && !gathering_.is_over()) {
    gathering_.time_out(-1, seconds_since(started));
  }
}

void RendezvousServer::Impl::refuse_all() {
  FinishedCalls finished;
  const Lock lock(mutex_);
  others_.refuse_all(finished);
}

void RendezvousServer::Impl::run() {
  try {
    serve_until_over();
  } catch (const std::bad_alloc&) {
    log(LogLevel::Error, "the rendezvous server ran out of memory");
  }
  refuse_all();  // those that still wait
  intake_->stop();
  ranks_.close();  // who finds no socket finds no port either
  if (options_.on_end) options_.on_end();
  if (grpc_ != nullptr) grpc_->shut_down(kShutdownGrace);
  grpc_.reset();
  const Lock lock(mutex_);
  ended_ = true;
  wake_ = Descriptor();
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
  if (!ended_) wake();
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
