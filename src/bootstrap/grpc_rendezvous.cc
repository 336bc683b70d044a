// SPDX-License-Identifier: Apache-2.0
//
// The only file that uses gRPC and protobuf. The server uses the callback API, so a waiting rank holds no thread.
// Gathering decides about requests; this file adds the transport: TLS, deadlines, error texts.
#include "bootstrap/grpc_rendezvous.h"

#include <arpa/inet.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/descriptor.h"
#include "base/log.h"
#include "bootstrap/gathering.h"
#include "bootstrap/rendezvous.grpc.pb.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/tls_identity.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

constexpr auto kHandshakeTimeout = 5s;
constexpr auto kShutdownGrace = 1s;
constexpr auto kLeaveTimeout = 2s;
// How long to retry after the peer has failed authentication or the server has disappeared: an older job may just be
// shutting down there.
constexpr auto kAuthenticationTimeout = 2s;
constexpr int kRequestBytes = static_cast<int>(kMaxPartBytes) + (1 << 16);
constexpr size_t kServerMemory = size_t{512} << 20;

// Makes the client retry.
const grpc::Status kNotYet(grpc::StatusCode::UNAVAILABLE, "the previous rendezvous at this address has not ended yet");

int milliseconds(std::chrono::milliseconds duration) { return static_cast<int>(duration.count()); }

// gRPC writes to stderr by default, which can be changed only for the whole process (see the header). Hence the user
// count is global too.
class QuietGrpc {
 public:
  QuietGrpc() {
    const std::lock_guard lock(mutex());
    if (users()++ == 0 && !keeps_default()) gpr_set_log_function(&forward);
  }
  ~QuietGrpc() {
    const std::lock_guard lock(mutex());
    if (--users() == 0 && !keeps_default()) gpr_set_log_function(nullptr);
  }
  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;

 private:
  static void forward(gpr_log_func_args* line) { log(LogLevel::Debug, "grpc: %s", line->message); }
  static bool keeps_default() {
    static const bool answer = std::getenv("GRPC_VERBOSITY") != nullptr;
    return answer;
  }
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static int& users() {
    static int count = 0;
    return count;
  }
};

// ---- Answers on the wire
// ---------------------------------------------------------------------------------------------

grpc::ByteBuffer encode(const wire::Answer& answer) {
  grpc::ByteBuffer bytes;
  bool owns_buffer = false;
  CCOM_ASSERT(grpc::SerializationTraits<wire::Answer>::Serialize(answer, &bytes, &owns_buffer).ok());
  return bytes;
}

grpc::ByteBuffer encode(const Status& status) {
  wire::Answer answer;
  if (!status.is_ok()) {
    wire::Failure& failure = *answer.mutable_failure();
    failure.set_code(static_cast<int>(status.code()));
    failure.set_text(status.message());
    for (const int rank : status.peers()) failure.add_ranks(rank);
    failure.set_cure(status.cure());
  }
  return encode(answer);
}

grpc::ByteBuffer encode(const std::vector<std::string>& parts) {
  wire::Answer answer;
  for (const std::string& part : parts) answer.add_parts(part);
  return encode(answer);
}

Status decode(const wire::Answer& answer) {
  if (!answer.has_failure()) return Status::ok();
  const wire::Failure& failure = answer.failure();
  return Status(static_cast<Code>(failure.code()), failure.text())
      .with_peers({failure.ranks().begin(), failure.ranks().end()})
      .with_cure(failure.cure());
}

Caller caller_of(const wire::Request& request) {
  return {.rank = request.rank(), .nranks = request.nranks(), .token = request.token(), .who = request.who()};
}

}  // namespace

// ---- Server
// ----------------------------------------------------------------------------------------------------------

// Threads: gRPC calls exchange() and on_cancel(), the server's own thread waits for deadlines; mutex_ guards the state.
// Calls are finished outside the lock, because finishing may call back.
class RendezvousServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), service_(*this) {}
  ~Impl();
  Status open();
  uint16_t port() const { return static_cast<uint16_t>(port_); }
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

  Result<std::shared_ptr<grpc::ServerCredentials>> credentials() const;
  Status bind_failure() const;
  grpc::ServerUnaryReactor* exchange(grpc::ByteBuffer request, grpc::ByteBuffer& answer);
  void on_cancel(Call* call);
  void handle(wire::Request& request, Call* call, FinishedCalls& finished);
  void add_waiter(const wire::Request& request, Call* call, FinishedCalls& finished);
  void settle(FinishedCalls& finished);
  static void finish(FinishedCalls& finished);
  void run();
  void serve_until_over();
  Deadline next_event() const;

  const Options options_;
  QuietGrpc quiet_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Gathering gathering_;
  std::map<Rank, Waiter> waiting_;
  bool stop_ = false;
  bool ended_ = false;
  std::thread thread_;
};

// All connections use TLS with the certificate derived from the secret, on both sides.
Result<std::shared_ptr<grpc::ServerCredentials>> RendezvousServer::Impl::credentials() const {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(options_.secret));
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = identity.certificate;
  tls.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  return grpc::SslServerCredentials(tls);
}

Status RendezvousServer::Impl::open() {
  const std::string endpoint = endpoint_text(options_.address, options_.port);
  if (is_wildcard_address(options_.address)) {
    return error(Code::ConfigError, "rendezvous server %s: ccom does not listen on wildcard addresses",
                 endpoint.c_str())
        .with_cure("use one address of this host");
  }
  CCOM_TRY_ASSIGN(const auto credentials, this->credentials());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(endpoint, credentials, &port_);
  builder.RegisterService(&service_);
  builder.SetMaxReceiveMessageSize(kRequestBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("ccom rendezvous server").Resize(kServerMemory));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                             0);  // otherwise a second server could take half of the connections
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, milliseconds(kHandshakeTimeout));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) return bind_failure();
  thread_ = std::thread([this] { run(); });
  return Status::ok();
}

// gRPC does not report the reason, so ask the system again.
Status RendezvousServer::Impl::bind_failure() const {
  sockaddr_storage storage{};
  auto* ipv4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* ipv6 = reinterpret_cast<sockaddr_in6*>(&storage);
  storage.ss_family = options_.address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  (storage.ss_family == AF_INET ? ipv4->sin_port : ipv6->sin6_port) = htons(options_.port);
  void* address = storage.ss_family == AF_INET ? static_cast<void*>(&ipv4->sin_addr) : &ipv6->sin6_addr;
  int number = EINVAL;
  if (inet_pton(storage.ss_family, options_.address.c_str(), address) == 1) {
    const Descriptor socket(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const socklen_t length = storage.ss_family == AF_INET ? sizeof *ipv4 : sizeof *ipv6;
    const auto* where = reinterpret_cast<const sockaddr*>(&storage);
    number = socket.is_open() && ::bind(socket.get(), where, length) == 0 ? EADDRINUSE : errno;
  }
  return system_error(number, "listen for the ranks at %s", endpoint_text(options_.address, options_.port).c_str());
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
    const std::lock_guard lock(mutex_);
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
        finished.push_back({call, encode(gathering_.join(caller))});
      }
      return;
    case wire::Request::kLeave:
      gathering_.leave(caller);
      finished.push_back({call, encode(Status::ok())});
      return;
    case wire::Request::kContribution: {
      wire::Contribution& step = *request.mutable_contribution();
      const Status status = gathering_.contribute(caller, step.round(), step.phase(), std::move(*step.mutable_part()));
      if (status.is_ok()) return add_waiter(request, call, finished);
      finished.push_back({call, encode(status)});
      return;
    }
    case wire::Request::STEP_NOT_SET:  // a probe
      finished.push_back({call, encode(gathering_.would_admit(caller))});
      return;
  }
}

// A retry replaces the request whose connection was lost.
void RendezvousServer::Impl::add_waiter(const wire::Request& request, Call* call, FinishedCalls& finished) {
  const Waiter waiter{.call = call,
                      .round = request.contribution().round(),
                      .timeout = Deadline::after_ms(request.contribution().timeout_ms()),
                      .since = Clock::now()};
  const auto [place, is_new] = waiting_.try_emplace(request.rank(), waiter);
  if (is_new) return;
  finished.push_back({place->second.call, encode(Status::ok())});
  place->second = waiter;
}

// Removes all requests that need not wait any longer. All get the same bytes, encoded once.
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
    if (is_new) answer->second = parts != nullptr ? encode(*parts) : encode(gathering_.failure());
    finished.push_back({waiter.call, answer->second});
    place = waiting_.erase(place);
  }
}

void RendezvousServer::Impl::finish(FinishedCalls& finished) {
  for (Finished& one : finished) one.call->finish(one.answer, one.status);
}

// The waiting rank's connection was lost, or it gave up.
void RendezvousServer::Impl::on_cancel(Call* call) {
  FinishedCalls finished;
  {
    const std::lock_guard lock(mutex_);
    const auto place = std::ranges::find_if(waiting_, [call](const auto& entry) { return entry.second.call == call; });
    if (place == waiting_.end()) return;
    gathering_.lose_rank(place->first);
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
  std::unique_lock lock(mutex_);
  const auto started = Clock::now();
  const auto seconds_since = [](Clock::time_point when) {
    return std::chrono::duration<double>(Clock::now() - when).count();
  };
  while (!stop_ && !gathering_.is_over() && !options_.life.passed()) {
    changed_.wait_until(lock, next_event().when());
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
  lock.unlock();
  finish(finished);
}

void RendezvousServer::Impl::run() {
  serve_until_over();
  server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server_.reset();
  if (options_.on_end) options_.on_end();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

RendezvousServer::Impl::~Impl() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool RendezvousServer::Impl::wait_until_ended(Clock::time_point when) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, when, [this] { return ended_; });
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
RendezvousServer::~RendezvousServer() = default;
uint16_t RendezvousServer::port() const { return impl_->port(); }
bool RendezvousServer::has_ended() const { return impl_->wait_until_ended(Clock::now()); }
bool RendezvousServer::wait_until_ended(Deadline deadline) const { return impl_->wait_until_ended(deadline.when()); }

// ---- Client
// ----------------------------------------------------------------------------------------------------------

namespace {

std::shared_ptr<grpc::Channel> open_channel(const UniqueId& id, const TlsIdentity& identity) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = identity.certificate;
  tls.pem_cert_chain = identity.certificate;
  tls.pem_private_key = identity.key;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kTlsName);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // ignore https_proxy in the environment
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 250);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, milliseconds(kHandshakeTimeout));  // limits one attempt
  arguments.SetMaxReceiveMessageSize(-1);                                                // the server is authenticated
  const bool is_ipv6 = id.address.find(':') != std::string::npos;
  return grpc::CreateCustomChannel((is_ipv6 ? "ipv6:" : "ipv4:") + id.endpoint(), grpc::SslCredentials(tls), arguments);
}

gpr_timespec grpc_deadline(Deadline deadline) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(deadline.left_ms() + 1, GPR_TIMESPAN));
}

// TLS failed: the listener does not hold the secret.
bool is_authentication_failure(const grpc::Status& status) {
  const std::string text = status.error_message();
  return text.find("andshake") != std::string::npos || text.find("SSL") != std::string::npos;
}

// Connection refused, lost or shut down: a retry may succeed. Answers from the server itself are not of this kind.
bool is_retryable(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL: return true;
    default: return false;
  }
}

// The end of "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:4100: Failed to connect to remote
// host: Connection refused", or of "...: Ssl handshake failed: SSL_ERROR_SSL: error:0A000086:SSL routines::certificate
// verify failed".
std::string reason_of(const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "no answer";
  const std::string text = status.error_message();
  if (const size_t handshake = text.find("Ssl handshake"); handshake != std::string::npos)
    return text.substr(handshake);
  const size_t colon = text.rfind(": ");
  return colon == std::string::npos || is_authentication_failure(status) ? text : text.substr(colon + 2);
}

std::string this_process() {
  char host[256] = "this host";
  (void)::gethostname(host, sizeof host - 1);
  return "process " + std::to_string(::getpid()) + " on " + host;
}

// One rank's client. Used by one thread.
class Client final : public Rendezvous {
 public:
  Client(const UniqueId& id, int nranks, Rank rank) : id_(id) {
    request_.set_rank(rank);
    request_.set_nranks(nranks);
    request_.set_token(random_u64());
    request_.set_who(this_process());
  }
  ~Client() override;
  Status open();
  Status join(Deadline deadline);
  Status probe(Deadline deadline);
  Result<std::vector<std::string>> all_gather(std::string_view phase, std::string mine, Deadline deadline) override;

 private:
  Result<wire::Answer> exchange(const wire::Request& request, Deadline deadline);
  Status explain(const grpc::Status& status) const;

  const UniqueId id_;
  QuietGrpc quiet_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<wire::RendezvousService::Stub> stub_;
  wire::Request request_;  // identifies this rank; each request is a copy with its step added
  bool has_answered_ = false;
  bool has_joined_ = false;
  uint64_t round_ = 0;
};

Status Client::open() {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(id_.secret));
  channel_ = open_channel(id_, identity);
  stub_ = wire::RendezvousService::NewStub(channel_);
  return Status::ok();
}

Status Client::explain(const grpc::Status& status) const {
  const int rank = request_.rank();
  const std::string endpoint = id_.endpoint();
  const std::string reason = reason_of(status);
  if (is_authentication_failure(status)) {
    return error(Code::ConfigError,
                 "rank %d: authentication failed: the process listening at %s does not hold this job's secret: %s",
                 rank, endpoint.c_str(), reason.c_str())
        .with_cure("check that all ranks use the same unique id or secret, and that no other program uses this port");
  }
  if (has_answered_ && is_retryable(status)) {
    return error(Code::RemoteError, "rank %d: lost the rendezvous server %s: %s", rank, endpoint.c_str(),
                 reason.c_str())
        .with_cure("see the error of the process that created the unique id, usually rank 0");
  }
  if (!is_retryable(status) && status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
    return error(Code::TransportError, "rank %d: the rendezvous server %s refused the request: %s", rank,
                 endpoint.c_str(), reason.c_str());
  }
  return error(Code::Timeout, "rank %d cannot reach the rendezvous server %s: %s", rank, endpoint.c_str(),
               reason.c_str())
      .with_cure("check that the process that created the unique id runs and that no firewall blocks the connection");
}

// Retries until there is an answer. Server-side failures are in the answer; an error means that there is none.
Result<wire::Answer> Client::exchange(const wire::Request& request, Deadline deadline) {
  auto pause = 10ms;
  Deadline limit = deadline;
  grpc::Status why;  // an attempt cut short by the deadline gives a less useful reason than the one before
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(grpc_deadline(deadline));
    wire::Answer answer;
    const grpc::Status status = stub_->Exchange(&context, request, &answer);
    if (status.ok()) {
      has_answered_ = true;
      return answer;
    }
    if (why.ok() || status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) why = status;
    if (has_answered_ || is_authentication_failure(status))
      limit = limit.earlier(Deadline::after(kAuthenticationTimeout));
    if (!is_retryable(status) || limit.passed()) return explain(why);
    // Not a plain sleep: gRPC continues a connection attempt only while a thread waits on the channel (else every 5 s).
    channel_->WaitForConnected(grpc_deadline(limit.earlier(Deadline::after(pause))));
    pause = std::min(pause * 2, 100ms);
  }
}

Status Client::join(Deadline deadline) {
  wire::Request request = request_;
  request.mutable_join();
  CCOM_TRY_ASSIGN(const wire::Answer answer, exchange(request, deadline));
  CCOM_TRY(decode(answer));
  has_joined_ = true;
  return Status::ok();
}

Status Client::probe(Deadline deadline) {
  CCOM_TRY_ASSIGN(const wire::Answer answer, exchange(request_, deadline));
  return decode(answer);
}

Result<std::vector<std::string>> Client::all_gather(std::string_view phase, std::string mine, Deadline deadline) {
  if (mine.size() > kMaxPartBytes) {
    return error(Code::InvalidArgument, "exchange '%.*s': rank %d contributes %zu bytes, the maximum is %zu",
                 static_cast<int>(phase.size()), phase.data(), request_.rank(), mine.size(), kMaxPartBytes);
  }
  try {
    const int64_t left = deadline.left_ms();
    wire::Request request = request_;
    wire::Contribution& step = *request.mutable_contribution();
    step.set_round(round_);
    step.set_phase(std::string(phase));
    step.set_part(std::move(mine));
    step.set_timeout_ms(left - std::min<int64_t>(left / 4, 500));  // leaves time for the answer to travel
    CCOM_TRY_ASSIGN(wire::Answer answer, exchange(request, deadline));
    CCOM_TRY(decode(answer));
    if (answer.parts_size() != request_.nranks()) {
      return error(Code::InternalError, "exchange '%s' returned %d parts for %d ranks", step.phase().c_str(),
                   answer.parts_size(), request_.nranks());
    }
    ++round_;
    return std::vector<std::string>(std::make_move_iterator(answer.mutable_parts()->begin()),
                                    std::make_move_iterator(answer.mutable_parts()->end()));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "exchange '%.*s': %s", static_cast<int>(phase.size()), phase.data(),
                 failure.what());
  }
}

Client::~Client() {
  if (!has_joined_) return;
  wire::Request request = request_;
  request.mutable_leave();
  grpc::ClientContext context;
  context.set_deadline(grpc_deadline(Deadline::after(kLeaveTimeout)));
  wire::Answer answer;
  const grpc::Status status = stub_->Exchange(&context, request, &answer);
  if (!status.ok()) {
    log(LogLevel::Debug, "rank %d leaves the rendezvous server %s: %s", request.rank(), id_.endpoint().c_str(),
        reason_of(status).c_str());
  }
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> connect_rendezvous(const UniqueId& id, int nranks, Rank rank, Deadline deadline) {
  if (nranks < 1 || nranks > kMaxRanks || rank < 0 || rank >= nranks) {
    return error(Code::InvalidArgument, "invalid rank %d of %d", rank, nranks);
  }
  try {
    if (id.rank0_serves && rank == 0) CCOM_TRY(host_rendezvous(id, deadline));
    auto client = std::make_unique<Client>(id, nranks, rank);
    CCOM_TRY(client->open());
    CCOM_TRY(client->join(deadline));
    return std::unique_ptr<Rendezvous>(std::move(client));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "rank %d: connect to the rendezvous server: %s", rank, failure.what());
  }
}

Status probe_rendezvous_server(const UniqueId& id, int nranks, Rank rank, Deadline deadline) {
  try {
    Client client(id, nranks, rank);
    CCOM_TRY(client.open());
    return client.probe(deadline);
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "probe the rendezvous server %s: %s", id.endpoint().c_str(), failure.what());
  }
}

}  // namespace ccom
