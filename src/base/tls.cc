// SPDX-License-Identifier: Apache-2.0
#include "base/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace ccom {
namespace {

// Identity of the key, and the context in which OpenSSL accepts a resumed session.
constexpr unsigned char kIdentity[] = "ccom";
constexpr size_t kIdentityBytes = sizeof(kIdentity) - 1;
// TLS_AES_128_GCM_SHA256: the fastest cipher on CPUs with AES instructions, which all relevant ones have.
constexpr unsigned char kCipher[] = {0x13, 0x01};
constexpr char kCipherName[] = "TLS_AES_128_GCM_SHA256";
// Several records per system call.
constexpr size_t kReadBytes = size_t{128} << 10;
// Larger than a key update message.
constexpr size_t kOverflowBytes = 256;
constexpr char kCure[] =
    "check that OpenSSL's configuration allows TLS 1.3 with AES-128-GCM, or unset CCOM_TLS on all ranks";

// A session object that carries the pre-shared key for TLS 1.3.
SSL_SESSION* session_of(SSL* ssl, const Secret& key) {
  std::unique_ptr<SSL_SESSION, OpensslFree<SSL_SESSION_free>> session(SSL_SESSION_new());
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipher);
  const bool is_good = session != nullptr && cipher != nullptr &&
                       SSL_SESSION_set1_master_key(session.get(), key.bytes().data(), key.bytes().size()) == 1 &&
                       SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                       SSL_SESSION_set1_id_context(session.get(), kIdentity, kIdentityBytes) == 1 &&
                       SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return is_good ? session.release() : nullptr;
}

bool is_shortage(int number) { return number == EAGAIN || number == EINTR || number == ENOBUFS; }

}  // namespace

// RFC 8446: after the headers of record and message, five and four bytes, and a version of two.
std::optional<HelloNumber> peek_hello(int fd) {
  constexpr size_t kBefore = 11;
  std::array<std::byte, kBefore + sizeof(HelloNumber)> begin;
  if (::recv(fd, begin.data(), begin.size(), MSG_PEEK | MSG_DONTWAIT) != static_cast<ssize_t>(begin.size())) return {};
  HelloNumber number;
  std::ranges::copy(ConstBytes(begin).subspan(kBefore), number.begin());
  return number;
}

Result<std::unique_ptr<TlsContext>> TlsContext::create(const Secret& key, uint64_t records_per_key) {
  auto made = std::make_unique<TlsContext>(key, records_per_key);
  const OpensslUse use;
  ERR_clear_error();
  if (!made->set_up()) return openssl_error("set up TLS", kCure);
  return made;
}

bool TlsContext::set_up() {
  method_.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "ccom line"));
  context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const context = context_.get();
  if (method_ == nullptr || context == nullptr) return false;
  // A peer that dies sends no close_notify. Completeness is checked by headers and receives.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // no certificate is accepted
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kReadBytes);
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_psk_use_session_callback(context, &TlsContext::use_key);
  SSL_CTX_set_psk_find_session_callback(context, &TlsContext::find_key);
  return SSL_CTX_set_session_id_context(context, kIdentity, kIdentityBytes) == 1 &&
         SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
         SSL_CTX_set_ciphersuites(context, kCipherName) == 1 &&
         SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 &&
         BIO_meth_set_write_ex(method_.get(), &Tls::write_out) == 1 &&
         BIO_meth_set_read_ex(method_.get(), &Tls::read_in) == 1 &&
         BIO_meth_set_ctrl(method_.get(), &Tls::control) == 1;
}

int TlsContext::use_key(SSL* ssl, const EVP_MD*, const unsigned char** id, size_t* id_size, SSL_SESSION** session) {
  const auto* const self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  *id = kIdentity;
  *id_size = kIdentityBytes;
  *session = session_of(ssl, self->key_);
  return *session != nullptr ? 1 : 0;
}

int TlsContext::find_key(SSL* ssl, const unsigned char* id, size_t id_size, SSL_SESSION** session) {
  const auto* const self = static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  *session = nullptr;
  if (id_size != kIdentityBytes || std::memcmp(id, kIdentity, id_size) != 0) return 1;
  *session = session_of(ssl, self->key_);
  return *session != nullptr ? 1 : 0;
}

std::unique_ptr<Tls> Tls::make(const TlsContext& context, int fd, Side side) {
  std::unique_ptr<Tls> made(new (std::nothrow) Tls(context, fd));
  return made != nullptr && made->open(side) ? std::move(made) : nullptr;
}

bool Tls::open(Side side) {
  overflow_.reserve(kOverflowBytes);  // OpenSSL's callbacks must not throw
  const OpensslUse use;
  ssl_.reset(SSL_new(context_.context_.get()));
  BIO* const bio = BIO_new(context_.method_.get());
  if (ssl_ == nullptr || bio == nullptr) {
    BIO_free(bio);
    ERR_clear_error();
    return false;
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  side == Side::Connects ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  return true;
}

bool Tls::put(ConstBytes bytes, size_t& taken) {
  const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) errno_ = errno;
  taken = sent > 0 ? static_cast<size_t>(sent) : 0;
  sent_bytes_ += taken;
  return sent >= 0;
}

// OpenSSL's own socket calls would raise SIGPIPE.
int Tls::write_out(BIO* bio, const char* data, size_t size, size_t* written) {
  auto* const self = static_cast<Tls*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  size_t taken = 0;
  bool is_good = self->overflow_.empty() || self->put(self->overflow_, taken);
  self->overflow_.erase(self->overflow_.begin(), self->overflow_.begin() + static_cast<ptrdiff_t>(taken));
  const ConstBytes bytes = std::as_bytes(std::span(data, size));
  *written = 0;
  if (is_good && self->overflow_.empty()) is_good = self->put(bytes, *written);
  const bool is_full = is_good ? *written < size : is_shortage(self->errno_);
  if (is_full && self->may_overflow_) {
    self->overflow_.insert(self->overflow_.end(), bytes.begin() + static_cast<ptrdiff_t>(*written), bytes.end());
    *written = size;
  }
  if (*written > 0) return 1;
  if (is_full) BIO_set_retry_write(bio);
  return 0;
}

int Tls::read_in(BIO* bio, char* data, size_t size, size_t* got) {
  auto* const self = static_cast<Tls*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t received = ::recv(self->fd_, data, size, MSG_DONTWAIT);
  if (received < 0) {
    self->errno_ = errno;
    if (errno == EAGAIN || errno == EINTR) BIO_set_retry_read(bio);
    return 0;
  }
  self->has_ended_ = received == 0;
  *got = static_cast<size_t>(received);
  return received > 0 ? 1 : 0;
}

long Tls::control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<Tls*>(BIO_get_data(bio))->has_ended_ ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

Tls::Step Tls::handshake() {
  const OpensslUse use;
  ERR_clear_error();
  errno_ = 0;
  const int result = SSL_do_handshake(ssl_.get());
  // Without the key the handshake fails; that it was used is checked anyway.
  if (result == 1) return SSL_session_reused(ssl_.get()) == 1 ? Step::Done : Step::Failed;
  const int reason = SSL_get_error(ssl_.get(), result);
  if (reason == SSL_ERROR_WANT_READ) return Step::NeedsRead;
  if (reason == SSL_ERROR_WANT_WRITE) return Step::NeedsWrite;
  ERR_clear_error();
  return Step::Failed;
}

// Why nothing was received: 0 for end of stream, or -1 and errno.
ssize_t Tls::dry() {
  const int reason = SSL_get_error(ssl_.get(), 0);
  ERR_clear_error();
  is_drained_ = true;
  if (reason == SSL_ERROR_ZERO_RETURN) return 0;
  const bool is_broken = reason == SSL_ERROR_SYSCALL && errno_ != 0;
  errno = reason == SSL_ERROR_WANT_READ ? EAGAIN : is_broken ? errno_ : EBADMSG;
  return -1;
}

// Why nothing was sent.
ssize_t Tls::full() {
  const int reason = SSL_get_error(ssl_.get(), 0);
  ERR_clear_error();
  errno = reason == SSL_ERROR_WANT_WRITE ? EAGAIN : errno_ != 0 ? errno_ : EPROTO;
  return -1;
}

uint64_t Tls::memory_bytes() { return sizeof(Tls) + kReadBytes + SSL3_RT_MAX_PACKET_SIZE; }

// OpenSSL returns one record at a time; read as many as one system call has delivered.
ssize_t Tls::receive(std::span<const iovec> parts) {
  ssize_t total = 0;
  clear_openssl_errors();
  for (const iovec& part : parts) {
    for (size_t filled = 0; filled < part.iov_len;) {
      size_t got = 0;
      errno_ = 0;
      auto* const target = static_cast<std::byte*>(part.iov_base) + filled;
      if (SSL_read_ex(ssl_.get(), target, part.iov_len - filled, &got) != 1) {
        const ssize_t end = dry();
        return total > 0 ? total : end;
      }
      filled += got;
      total += static_cast<ssize_t>(got);
    }
  }
  is_drained_ = false;
  return total;
}

// OpenSSL reads nothing before its key update message is sent. With two full connections that would deadlock, so the
// message may go to the overflow buffer.
bool Tls::change_key() {
  const OpensslUse use;
  may_overflow_ = true;
  const bool is_done =
      SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(ssl_.get()) == 1;
  may_overflow_ = false;
  records_ = 0;
  return is_done;
}

bool Tls::send_record(ConstBytes record, size_t& taken) {
  errno_ = 0;
  if (records_ >= context_.records_per_key_ && !change_key()) return false;
  if (SSL_write_ex(ssl_.get(), record.data(), record.size(), &taken) != 1) return false;
  ++records_;
  return true;
}

// Joins the end of one part with the beginning of the next, so that a header does not take a record and a packet of its
// own.
ConstBytes Tls::join(ConstBytes first, const iovec& next) {
  std::ranges::copy(first, head_.begin());
  const size_t more = std::min(head_.size() - first.size(), next.iov_len);
  std::ranges::copy(ConstBytes(static_cast<const std::byte*>(next.iov_base), more), head_.begin() + first.size());
  return ConstBytes(head_).first(first.size() + more);
}

// A retry is split into the same records again, as OpenSSL requires after EAGAIN.
ssize_t Tls::send(std::span<const iovec> parts) {
  ssize_t total = 0;
  clear_openssl_errors();
  for (size_t i = 0, skip = 0; i < parts.size();) {
    ConstBytes record(static_cast<const std::byte*>(parts[i].iov_base) + skip, parts[i].iov_len - skip);
    if (!record.empty() && record.size() < head_.size() && i + 1 < parts.size()) record = join(record, parts[i + 1]);
    size_t taken = 0;
    if (!record.empty() && !send_record(record, taken)) {
      const ssize_t end = full();
      return total > 0 ? total : end;
    }
    total += static_cast<ssize_t>(taken);
    for (skip += taken; i < parts.size() && skip >= parts[i].iov_len; ++i) skip -= parts[i].iov_len;
  }
  return total;
}

}  // namespace ccom
