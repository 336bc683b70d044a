// SPDX-License-Identifier: Apache-2.0
//
// TLS 1.3 on a connected socket, for networks with eavesdroppers.
//
// Both ends authenticate by the communicator's key, used as the pre-shared key of the handshake together with X25519,
// for forward secrecy. There are no certificates: without the key the handshake fails. See
// docs/decisions/0007-tls-for-data.md.
#pragma once

#include <openssl/ssl.h>
#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/handshake.h"
#include "base/openssl.h"
#include "base/secret.h"
#include "base/status.h"

namespace ccom {

// Of the ClientHello that has arrived, which stays there; nothing if too little has.
std::optional<HelloNumber> peek_hello(int fd);

// Shared by the connections of one transport, or of one rank's control trees. Immutable; must outlive them.
class TlsContext {
 public:
  // Keys are updated after that many records of at most 16 KiB, far below the limit of AES-GCM (RFC 8446, 5.5).
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

// One connection. Never blocks, never raises a signal. Used by one thread at a time.
class Tls {
 public:
  enum class Side { Connects, Accepts };
  enum class Step { Done, NeedsRead, NeedsWrite, Failed };

  // On a connected, non-blocking descriptor, which must outlive it. Null if out of memory.
  static std::unique_ptr<Tls> make(const TlsContext& context, int fd, Side side);
  explicit Tls(const TlsContext& context, int fd) : context_(context), fd_(fd) {}
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Continues the handshake. Both ends are authenticated once it is Done.
  Step handshake();
  // Like recvmsg and sendmsg. A short count means that there is no more data (or room) now. EBADMSG: the data was
  // tampered with. Data not accepted by send() must be passed again first, at least as much of it.
  ssize_t receive(std::span<const iovec> parts);
  ssize_t send(std::span<const iovec> parts);
  // Whether receive() would return data although the descriptor may not be readable.
  bool holds_input() const { return !is_drained_ && SSL_has_pending(ssl_.get()) == 1; }
  // Accepted by the kernel so far.
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
  uint64_t records_ = 0;  // under the current key
  int errno_ = 0;         // of the last failed system call
  bool has_ended_ = false;
  bool may_overflow_ = false;
  std::vector<std::byte> overflow_;                       // to be sent before anything else
  bool is_drained_ = true;                                // the last receive() has left no complete record
  std::array<std::byte, SSL3_RT_MAX_PLAIN_LENGTH> head_;  // a header and the payload after it, as one record
};

}  // namespace ccom
