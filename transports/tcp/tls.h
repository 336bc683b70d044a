// SPDX-License-Identifier: Apache-2.0
//
// TLS 1.3 beneath a line, for networks that others can listen to.
//
// Both ends prove that they hold the communicator's key by using it as the pre-shared key of the handshake, with X25519
// beside it, so that a key that leaks later opens no recording. There are no certificates: whoever lacks the key gets
// no further than the handshake. docs/decisions/0007-tls-for-data.md says why.
#pragma once

#include <openssl/ssl.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/secret.h"
#include "base/status.h"

namespace ccom::tcp {

template <auto Free>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

// What the lines of one transport share. Immutable; outlives them.
class TlsContext {
 public:
  // A key is replaced after so many records of at most 16 KiB, long before AES-GCM wears out (RFC 8446, 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 22;

  static Result<std::unique_ptr<TlsContext>> create(const Secret& key, uint64_t records_per_key = kRecordsPerKey);
  explicit TlsContext(const Secret& key, uint64_t records_per_key) : key_(key), records_per_key_(records_per_key) {}
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class Tls;
  static int use_key(SSL* ssl, const EVP_MD* digest, const unsigned char** id, size_t* id_size, SSL_SESSION** session);
  static int find_key(SSL* ssl, const unsigned char* id, size_t id_size, SSL_SESSION** session);
  bool set_up();

  const Secret key_;
  const uint64_t records_per_key_;
  std::unique_ptr<BIO_METHOD, OpensslFree<BIO_meth_free>> method_;
  std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>> context_;
};

// One connection. Never blocks, never signals. Belongs to the transport's thread.
class Tls {
 public:
  enum class Side { Dials, Accepts };
  enum class Step { Done, NeedsRead, NeedsWrite, Failed };

  // On a connected, non-blocking descriptor, which outlives it. Null when memory is out.
  static std::unique_ptr<Tls> make(const TlsContext& context, int fd, Side side);
  explicit Tls(const TlsContext& context, int fd) : context_(context), fd_(fd) {}
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Goes on with the handshake. Both ends are proved once it is Done.
  Step handshake();
  // As recvmsg and sendmsg. Less than was asked for means that there is no more (room) now. EBADMSG: somebody has
  // changed what was sent. What send() has not taken must come again first, at least as much of it.
  ssize_t receive(std::span<const iovec> parts);
  ssize_t send(std::span<const iovec> parts);
  // Whether receive() would give something although the descriptor may have nothing to read.
  bool holds_input() const { return !is_drained_ && SSL_has_pending(ssl_.get()) == 1; }
  // Into the kernel so far.
  uint64_t sent_bytes() const { return sent_bytes_; }
  static uint64_t memory_bytes();

 private:
  friend class TlsContext;
  static int write_out(BIO* bio, const char* data, size_t size, size_t* written);
  static int read_in(BIO* bio, char* data, size_t size, size_t* got);
  static long control(BIO* bio, int command, long number, void* pointer);
  bool open(Side side);
  ConstBytes join(ConstBytes first, const iovec& next);
  bool send_record(ConstBytes record, size_t& taken);
  bool change_key();
  bool put(ConstBytes bytes, size_t& taken);
  ssize_t dry();
  ssize_t full();

  const TlsContext& context_;
  const int fd_;
  std::unique_ptr<SSL, OpensslFree<SSL_free>> ssl_;
  uint64_t sent_bytes_ = 0;
  uint64_t records_ = 0;  // under the present key
  int errno_ = 0;         // of the last system call that failed
  bool has_ended_ = false;
  bool may_overflow_ = false;
  std::vector<std::byte> overflow_;                       // to be sent before anything else
  bool is_drained_ = true;                                // nothing complete was left by the last receive()
  std::array<std::byte, SSL3_RT_MAX_PLAIN_LENGTH> head_;  // a header and the payload behind it, as one record
};

}  // namespace ccom::tcp
