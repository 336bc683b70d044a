// SPDX-License-Identifier: Apache-2.0
//
// The TLS identity of all holders of the secret: an Ed25519 key and a self-signed certificate, both derived from the
// secret alone. Every holder builds the same bytes (Ed25519 signatures are deterministic, all fields are fixed),
// presents them and trusts nothing else; so mutual TLS authentication proves that the peer holds the secret.
#pragma once

#include <string>

#include "base/secret.h"
#include "base/status.h"

namespace ccom {

// Key and certificate in PEM. The key is wiped on destruction.
struct TlsIdentity {
  TlsIdentity() = default;
  TlsIdentity(TlsIdentity&&) = default;
  TlsIdentity& operator=(TlsIdentity&&) = default;
  ~TlsIdentity();

  std::string certificate;
  std::string key;
  // Of the server: in the certificate, and in the clear in each client's first message. So a server can send away who
  // does not know it before TLS has cost anything. It proves nothing: whoever sees such a message can repeat it.
  std::string name;
};

// A label of a domain name.
std::string tls_name(const Secret& secret);
Result<TlsIdentity> make_tls_identity(const Secret& secret);

}  // namespace ccom
