// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/tls_identity.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "base/openssl.h"

namespace ccom {
namespace {

// As a peer checks it whose clock shows that many seconds since 1970.
bool is_valid_at(const TlsIdentity& identity, time_t seconds) {
  using Certificate = std::unique_ptr<X509, OpensslFree<X509_free>>;
  const std::unique_ptr<BIO, OpensslFree<BIO_free_all>> text(
      BIO_new_mem_buf(identity.certificate.data(), static_cast<int>(identity.certificate.size())));
  const Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  const std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>> trusted(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
  if (X509_STORE_add_cert(trusted.get(), certificate.get()) != 1) return false;
  if (X509_STORE_CTX_init(check.get(), trusted.get(), certificate.get(), nullptr) != 1) return false;
  X509_STORE_CTX_set_time(check.get(), 0, seconds);
  return X509_verify_cert(check.get()) == 1;
}

// U17: with a clock before 2000 a rank said that rank 0 had ended.
TEST(TlsIdentity, IsValidWhateverTheClockShows) {
  const TlsIdentity identity = make_tls_identity(Secret::random()).value();
  constexpr time_t kYear = 31556952;
  for (const time_t seconds : {time_t{0}, 10 * kYear, 56 * kYear, 130 * kYear, 8000 * kYear})
    EXPECT_TRUE(is_valid_at(identity, seconds)) << seconds / kYear + 1970;
  EXPECT_FALSE(is_valid_at(identity, -25 * kYear)) << "the check does check";
}

}  // namespace
}  // namespace ccom
