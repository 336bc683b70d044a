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
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "base/tcp_socket.h"
#include "base/thread.h"
#include "bootstrap/connection_intake.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_answer.h"
#include "bootstrap/quiet_grpc.h"
#include "bootstrap/rendezvous.grpc.pb.h"
#include "bootstrap/this_build.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kShutdownGrace = 1s;
constexpr auto kTellingTime = 2s;
constexpr int kRequestBytes = static_cast<int>(kMaxPartBytes) + (1 << 16);
constexpr size_t kServerMemory = size_t{512} << 20;

// Makes the client retry.
const grpc::Status kNotYet(grpc::StatusCode::UNAVAILABLE, "the previous rendezvous at this address has not ended yet");

}  // namespace

// Threads: gRPC calls exchange() and on_cancel(), the server's own waits for deadlines. Calls finish outside the lock.
class RendezvousServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), service_(*this) {}
  ~Impl();
  Status open();
  uint16_t port() const { return intake_->port(); }
  bool wait_until_ended(Clock::time_point when) const;

 private:
  // One pending request. Deletes itself when gRPC has finished with it.
  class Call final : public grpc::ServerUnaryReactor {
   public:
    Call(Impl& impl, grpc::ByteBuffer& answer) : impl_(impl), answer_(answer) {}
    void finish(const grpc::ByteBuffer& answer, const grpc::Status& status) {
      answer_ = answer;  // shares the bytes
      Finish(status);
    }
    void OnCancel() override { impl_.on_cancel(this); }
    void OnDone() override { delete this; }

   private:
    Impl& impl_;
    grpc::ByteBuffer& answer_;
  };

  class Service final
      : public wire::RendezvousService::WithRawCallbackMethod_Exchange<wire::RendezvousService::Service> {
   public:
    explicit Service(Impl& impl) : impl_(impl) {}
    grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* answer) override {
      return impl_.exchange(*request, *answer);
    }

   private:
    Impl& impl_;
  };

  struct Waiter {
    Call* call;
    uint64_t round;
    Deadline timeout;
    Clock::time_point since;
  };
  struct Finished {
    Call* call;
    grpc::ByteBuffer answer;
    grpc::Status status{};
  };
  using FinishedCalls = std::vector<Finished>;

  grpc::ServerUnaryReactor* exchange(grpc::ByteBuffer request, grpc::ByteBuffer& answer);
  grpc::ByteBuffer join(const Caller& caller) CCOM_REQUIRES(mutex_);
  void on_cancel(Call* call);
  void handle(wire::Request& request, Call* call, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void add_presence(const Caller& caller, Call* call, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void end_presence(Rank rank, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void add_waiter(const wire::Request& request, Call* call, FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  void settle(FinishedCalls& finished) CCOM_REQUIRES(mutex_);
  static void finish(FinishedCalls& finished);
  void run();
  void serve_until_over();
  Deadline next_event() const CCOM_REQUIRES(mutex_);

  const Options options_;
  QuietGrpc quiet_;
  Service service_;
  std::unique_ptr<ConnectionIntake> intake_;
  std::unique_ptr<grpc::Server> server_;

  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<Rank, Waiter> waiting_ CCOM_GUARDED_BY(mutex_);
  std::map<Rank, Call*> present_ CCOM_GUARDED_BY(mutex_);  // a call each, which breaks when its rank dies
  ServerProcess process_ CCOM_GUARDED_BY(mutex_) = {.who = this_process(), .build = this_build()};
  Gathering gathering_ CCOM_GUARDED_BY(mutex_) = Gathering(process_.who, process_.build);
  bool stop_ CCOM_GUARDED_BY(mutex_) = false;
  bool ended_ CCOM_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Status RendezvousServer::Impl::open() {
  const std::string endpoint = endpoint_text(options_.address, options_.port);
  grpc::ServerBuilder builder;
  CCOM_TRY_ASSIGN(intake_, ConnectionIntake::listen(options_.address, options_.port, options_.secret, builder));
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kRequestBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("ccom rendezvous server").Resize(kServerMemory));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return error(Code::InternalError, "start a gRPC server for the ranks at %s", endpoint.c_str());
  CCOM_TRY(intake_->start());
  if (const int refused = start_thread(thread_, "ccom-rendezvous", [this] { run(); }); refused != 0) {
    return system_error(refused, "start the rendezvous server's thread");
  }
  return Status::ok();
}

grpc::ServerUnaryReactor* RendezvousServer::Impl::exchange(grpc::ByteBuffer bytes, grpc::ByteBuffer& answer) {
  auto* call = new Call(*this, answer);
  wire::Request request;
  if (!grpc::SerializationTraits<wire::Request>::Deserialize(&bytes, &request).ok()) {
    call->Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "malformed request, or another version of ccom"));
    return call;
  }
  FinishedCalls finished;
  {
    const Lock lock(mutex_);
    handle(request, call, finished);
    settle(finished);
    changed_.notify_all();
  }
  finish(finished);
  return call;
}

void RendezvousServer::Impl::handle(wire::Request& request, Call* call, FinishedCalls& finished) {
  const Caller caller = caller_of(request);
  switch (request.step_case()) {
    case wire::Request::kJoin:
      if (gathering_.is_for_next_rendezvous(caller)) {
        finished.push_back({call, {}, kNotYet});
      } else {
        finished.push_back({call, join(caller)});
      }
      return;
    case wire::Request::kPresence: return add_presence(caller, call, finished);
    case wire::Request::kLeave:
      if (gathering_.is_member(caller)) end_presence(caller.rank, finished);
      gathering_.leave(caller);
      finished.push_back({call, encode(Status::ok(), process_)});
      return;
    case wire::Request::kContribution: {
      wire::Contribution& step = *request.mutable_contribution();
      const Status status = gathering_.contribute(caller, step.round(), step.phase(), std::move(*step.mutable_part()));
      if (status.is_ok()) return add_waiter(request, call, finished);
      finished.push_back({call, encode(status, process_)});
      return;
    }
    case wire::Request::STEP_NOT_SET:  // a probe
      finished.push_back({call, encode(gathering_.would_admit(caller), process_)});
      return;
  }
}

grpc::ByteBuffer RendezvousServer::Impl::join(const Caller& caller) {
  const bool is_new = !gathering_.is_member(caller);
  const Status status = gathering_.join(caller);
  if (status.is_ok() && is_new && caller.who == process_.who) process_.ranks.push_back(caller.rank);
  return encode(status, process_);
}

void RendezvousServer::Impl::add_presence(const Caller& caller, Call* call, FinishedCalls& finished) {
  if (!gathering_.is_member(caller)) return finished.push_back({call, encode(Status::ok(), process_)});
  end_presence(caller.rank, finished);
  present_.emplace(caller.rank, call);
}

void RendezvousServer::Impl::end_presence(Rank rank, FinishedCalls& finished) {
  const auto present = present_.find(rank);
  if (present == present_.end()) return;
  finished.push_back({present->second, encode(Status::ok(), process_)});
  present_.erase(present);
}

// A retry replaces the request whose connection was lost.
void RendezvousServer::Impl::add_waiter(const wire::Request& request, Call* call, FinishedCalls& finished) {
  const Waiter waiter{.call = call,
                      .round = request.contribution().round(),
                      .timeout = Deadline::after_ms(request.contribution().timeout_ms()),
                      .since = Clock::now()};
  const auto [place, is_new] = waiting_.try_emplace(request.rank(), waiter);
  if (is_new) return;
  finished.push_back({place->second.call, encode(Status::ok(), process_)});
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
    finished.push_back({waiter.call, answer->second});
    place = waiting_.erase(place);
  }
  while (has_failed && !present_.empty()) end_presence(present_.begin()->first, finished);
}

void RendezvousServer::Impl::finish(FinishedCalls& finished) {
  for (Finished& one : finished) one.call->finish(one.answer, one.status);
}

// The rank's connection was lost, or it gave up.
void RendezvousServer::Impl::on_cancel(Call* call) {
  FinishedCalls finished;
  {
    const Lock lock(mutex_);
    const auto place = std::ranges::find_if(waiting_, [call](const auto& entry) { return entry.second.call == call; });
    const auto present = std::ranges::find_if(present_, [call](const auto& entry) { return entry.second == call; });
    if (place == waiting_.end() && present == present_.end()) return;
    gathering_.lose_rank(place != waiting_.end() ? place->first : present->first);
    settle(finished);
    changed_.notify_all();
  }
  finish(finished);
}

Deadline RendezvousServer::Impl::next_event() const {
  Deadline next = options_.life;
  for (const auto& [rank, waiter] : waiting_) next = next.earlier(waiter.timeout);
  return next;
}

void RendezvousServer::Impl::serve_until_over() {
  FinishedCalls finished;
  Lock lock(mutex_);
  const auto started = Clock::now();
  const auto seconds_since = [](Clock::time_point when) {
    return std::chrono::duration<double>(Clock::now() - when).count();
  };
  while (!stop_ && !gathering_.is_over() && !options_.life.passed()) {
    lock.wait_until(changed_, next_event().when());
    const auto late = std::ranges::find_if(waiting_, [](const auto& entry) { return entry.second.timeout.passed(); });
    if (late == waiting_.end()) continue;
    gathering_.time_out(late->first, seconds_since(late->second.since));
    settle(finished);
    lock.unlock();
    finish(finished);
    finished.clear();
    lock.lock();
  }
  if (stop_) {
    gathering_.close();
  } else if (!gathering_.is_over()) {
    gathering_.time_out(-1, seconds_since(started));
  }
  settle(finished);
  while (!present_.empty()) end_presence(present_.begin()->first, finished);
  lock.unlock();
  finish(finished);
}

void RendezvousServer::Impl::run() {
  try {
    serve_until_over();
  } catch (const std::bad_alloc&) {  // the shutdown ends the calls that wait, and the ranks' clients say so
    log(LogLevel::Error, "the rendezvous server ran out of memory");
  }
  intake_->stop();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_.reset();
  try {
    if (options_.on_end) options_.on_end();
  } catch (const std::bad_alloc&) {
    log(LogLevel::Error, "the rendezvous server ran out of memory while it cleaned up");
  }
  const Lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

RendezvousServer::Impl::~Impl() {
  if (!thread_.joinable()) return;
  {
    Lock lock(mutex_);
    // Who asks later why the start failed would find no server, and blame this process.
    lock.wait_until(changed_, Clock::now() + kTellingTime,
                    [this]() CCOM_REQUIRES(mutex_) { return ended_ || !gathering_.has_failed_unknown_to_some(); });
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
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
RendezvousServer::~RendezvousServer() = default;
uint16_t RendezvousServer::port() const { return impl_->port(); }
bool RendezvousServer::has_ended() const { return impl_->wait_until_ended(Clock::now()); }
bool RendezvousServer::wait_until_ended(Deadline deadline) const { return impl_->wait_until_ended(deadline.when()); }

}  // namespace ccom
