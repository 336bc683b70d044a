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

// The name in the certificate, independent of the address.
inline constexpr char kTlsName[] = "ccom";

// Both in PEM. The key is wiped on destruction.
struct TlsIdentity {
  TlsIdentity() = default;
  TlsIdentity(TlsIdentity&&) = default;
  TlsIdentity& operator=(TlsIdentity&&) = default;
  ~TlsIdentity();

  std::string certificate;
  std::string key;
};

Result<TlsIdentity> make_tls_identity(const Secret& secret);

}  // namespace ccom
