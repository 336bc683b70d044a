// SPDX-License-Identifier: Apache-2.0
#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>

#include "base/assert.h"

namespace ccom {

Secret::Secret(std::span<const uint8_t, kBytes> bytes) { std::ranges::copy(bytes, bytes_.begin()); }
Secret::~Secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Secret Secret::random() {
  Secret secret;
  fill_random(std::as_writable_bytes(std::span(secret.bytes_)));
  return secret;
}

Secret Secret::from_text(std::string_view text) {
  Secret secret;
  unsigned length = 0;
  CCOM_ASSERT(EVP_Digest(text.data(), text.size(), secret.bytes_.data(), &length, EVP_sha256(), nullptr) == 1);
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
  Mac mac;
  unsigned length = mac.size();
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  CCOM_ASSERT(HMAC(EVP_sha256(), key.bytes().data(), static_cast<int>(key.bytes().size()), data, message.size(),
                   mac.data(), &length) != nullptr);
  return mac;
}

bool equal_in_constant_time(ConstBytes a, ConstBytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void fill_random(Bytes bytes) {
  CCOM_ASSERT(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) == 1);
}

uint64_t random_u64() {
  uint64_t value = 0;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace ccom
