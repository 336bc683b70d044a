// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/assert.h"
#include "base/openssl.h"

namespace ccom {

Secret::Secret(std::span<const uint8_t, kBytes> bytes) { std::ranges::copy(bytes, bytes_.begin()); }
Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Secret Secret::random() {
  Secret secret;
  fill_random(std::as_writable_bytes(std::span(secret.bytes_)));
  return secret;
}

Secret Secret::masked_by(const Secret& mask) const {
  Secret masked;
  for (size_t i = 0; i < kBytes; ++i) masked.bytes_[i] = bytes_[i] ^ mask.bytes_[i];
  return masked;
}

Secret Secret::from_text(std::string_view text) {
  const OpensslUse use;
  Secret secret;
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), secret.bytes_.data(), &length, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  return secret;
}

Secret Secret::from_passphrase(std::string_view text, std::string_view salt) {
  const OpensslUse use;
  const std::string salted = "ccom job secret " + std::string(salt);
  constexpr uint64_t kCost = 1 << 14;
  constexpr uint64_t kBlockSize = 8;
  constexpr uint64_t kParallel = 1;
  constexpr uint64_t kAtMostBytes = 32 << 20;
  Secret secret;
  if (EVP_PBE_scrypt(text.data(), text.size(), reinterpret_cast<const unsigned char*>(salted.data()), salted.size(),
                     kCost, kBlockSize, kParallel, kAtMostBytes, secret.bytes_.data(), secret.bytes_.size()) != 1)
    throw std::bad_alloc();
  return secret;
}

// The secret is uniform already, so HKDF's extract step is omitted; one expand block of 32 bytes suffices.
Secret Secret::derive(std::string_view label) const {
  std::string info(label);
  info.push_back('\1');
  const Mac mac = hmac_sha256(*this, std::as_bytes(std::span(info)));
  return Secret(std::span<const uint8_t, kBytes>(mac));
}

Mac hmac_sha256(const Secret& key, ConstBytes message) {
  const OpensslUse use;
  Mac mac;
  unsigned length = mac.size();
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()), data, message.size(), mac.data(),
           &length) == nullptr)
    throw std::bad_alloc();
  return mac;
}

bool equal_in_constant_time(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(Bytes bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + at, bytes.size() - at, 0);
    CCOM_ASSERT(got > 0 || errno == EINTR);
    if (got > 0) at += static_cast<size_t>(got);
  }
}

uint64_t random_u64() {
  uint64_t value = 0;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace ccom
