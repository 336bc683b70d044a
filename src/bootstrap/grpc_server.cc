// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/grpc_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "base/thread.h"
#include "bootstrap/gathering.h"
#include "bootstrap/grpc_server_call.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/rendezvous.grpc.pb.h"
#include "bootstrap/tls_identity.h"

namespace ccom {
namespace {

constexpr int kTlsTimeoutMs = 5000;
constexpr int kRequestBytes = static_cast<int>(kMaxRelayedBytes) + (1 << 16);
constexpr size_t kServerMemory = size_t{512} << 20;

// With the certificate derived from the secret, on both sides.
std::shared_ptr<grpc::ServerCredentials> credentials_of(const TlsIdentity& identity) {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = identity.certificate;
  tls.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  return grpc::SslServerCredentials(tls);
}

}  // namespace

class GrpcServer::Impl final
    : public wire::RendezvousService::WithRawCallbackMethod_Exchange<wire::RendezvousService::Service> {
 public:
  explicit Impl(Handler handler) : handler_(std::move(handler)) {}
  Status open(const Secret& secret);
  void take(Descriptor connection, int listener);
  void shut_down(std::chrono::milliseconds grace) {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_.reset();
  }

 private:
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* answer) override;

  const Handler handler_;
  const GrpcUse grpc_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

Status GrpcServer::Impl::open(const Secret& secret) {
  CCOM_TRY_ASSIGN(const TlsIdentity identity, make_tls_identity(secret));
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kTlsTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 8);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8 << 10);
  builder.SetMaxReceiveMessageSize(kRequestBytes);
  builder.SetResourceQuota(grpc::ResourceQuota("ccom rendezvous").Resize(kServerMemory));
  builder.RegisterService(this);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_of(identity));
  server_ = builder.BuildAndStart();
  return server_ != nullptr ? Status::ok() : error(Code::InternalError, "start a gRPC server");
}

void GrpcServer::Impl::take(Descriptor connection, int listener) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = connection.release();
  acceptor_->HandleNewConnection(&parameters);
}

grpc::ServerUnaryReactor* GrpcServer::Impl::Exchange(grpc::CallbackServerContext*, const grpc::ByteBuffer* request,
                                                     grpc::ByteBuffer* answer) {
  auto* const call = new ServerCall(*answer, handler_.cancel);
  grpc::ByteBuffer bytes(*request);
  wire::Request parsed;
  Refusal refusal = Refusal::None;
  try {
    const bool is_read = grpc::SerializationTraits<wire::Request>::Deserialize(&bytes, &parsed).ok();
    if (!is_read) refusal = Refusal::Unreadable;
  } catch (const std::bad_alloc&) {
    refusal = Refusal::NoMemory;
  }
  if (refusal == Refusal::None) {
    handler_.handle(parsed, call);
  } else {
    FinishedCalls().add(call, refusal);
  }
  return call;
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const Secret& secret, Handler handler) {
  try {
    const SignalsBlocked blocked;  // gRPC's threads leave them to the application's
    auto impl = std::make_unique<Impl>(std::move(handler));
    CCOM_TRY(impl->open(secret));
    return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(impl)));
  } catch (const std::exception& failure) {
    return error(Code::OutOfMemory, "start a gRPC server: %s", failure.what());
  }
}

GrpcServer::GrpcServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcServer::~GrpcServer() {
  const SignalsBlocked blocked;
  impl_.reset();
}
void GrpcServer::take(Descriptor connection, int listener) { impl_->take(std::move(connection), listener); }
void GrpcServer::shut_down(std::chrono::milliseconds grace) {
  const SignalsBlocked blocked;
  impl_->shut_down(grace);
}

}  // namespace ccom
