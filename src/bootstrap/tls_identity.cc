// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/openssl.h"

namespace ccom {
namespace {

using Key = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, OpensslFree<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using Sink = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;

// Fixed, because all holders of the secret must build the same bytes. Validity is not limited by time: the secret lives
// as long as the job, and the clock of a machine without a battery begins in 1970. The first moment that a certificate
// can name.
constexpr char kNotBefore[] = "500101000000Z";
constexpr char kNotAfter[] = "99991231235959Z";

bool add_extension(X509* certificate, int kind, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_name(X509_NAME* name) {
  const auto* text = reinterpret_cast<const unsigned char*>("ccom");
  return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, text, -1, -1, 0) == 1;
}

// Certificate authority and end entity in one: the only root that either side trusts, and it signs only itself.
Certificate make_certificate(EVP_PKEY* key, const std::string& name) {
  Certificate made(X509_new());
  X509* x = made.get();
  const bool good = x != nullptr && X509_set_version(x, X509_VERSION_3) == 1 &&
                    ASN1_INTEGER_set(X509_get_serialNumber(x), 1) == 1 &&
                    ASN1_TIME_set_string_X509(X509_getm_notBefore(x), kNotBefore) == 1 &&
                    ASN1_TIME_set_string_X509(X509_getm_notAfter(x), kNotAfter) == 1 && X509_set_pubkey(x, key) == 1 &&
                    add_name(X509_get_subject_name(x)) && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
                    add_extension(x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(x, NID_subject_alt_name, ("DNS:" + name).c_str()) &&
                    X509_sign(x, key, nullptr) > 0;  // Ed25519 includes hashing
  return good ? std::move(made) : nullptr;
}

std::string text_of(BIO* sink) {
  char* text = nullptr;
  const long length = BIO_get_mem_data(sink, &text);
  return {text, static_cast<size_t>(length)};
}

Status failure(const char* what) {
  return openssl_error(what, "check that OpenSSL's configuration allows Ed25519 and X.509 certificates")
      .in("create the rendezvous server's TLS identity");
}

}  // namespace

std::string tls_name(const Secret& secret) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string name = "ccom-";
  const Secret derived = secret.derive("ccom bootstrap tls name v1");  // outlives the loop
  for (const uint8_t byte : derived.bytes().first(16)) {
    name.push_back(kDigits[byte >> 4]);
    name.push_back(kDigits[byte & 15]);
  }
  return name;
}

TlsIdentity::~TlsIdentity() { OPENSSL_cleanse(key.data(), key.size()); }

Result<TlsIdentity> make_tls_identity(const Secret& secret) {
  const Secret seed = secret.derive("ccom bootstrap tls ed25519 v1");
  std::string name = tls_name(secret);
  const OpensslUse use;
  ERR_clear_error();
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.bytes().data(), seed.bytes().size()));
  if (key == nullptr) return failure("Ed25519 key");
  const Certificate certificate = make_certificate(key.get(), name);
  if (certificate == nullptr) return failure("certificate");
  const Sink certificate_text(BIO_new(BIO_s_mem()));
  const Sink key_text(BIO_new(BIO_s_secmem()));  // wiped when freed
  if (certificate_text == nullptr || PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      key_text == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failure("PEM");
  }
  TlsIdentity identity;
  identity.certificate = text_of(certificate_text.get());
  identity.key = text_of(key_text.get());
  identity.name = std::move(name);
  return identity;
}

}  // namespace ccom
