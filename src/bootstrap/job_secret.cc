// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/job_secret.h"

#include <bitset>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork.h"
#include "base/mutex.h"
#include "base/options.h"
#include "base/private_file.h"

namespace ccom {
namespace {

constexpr size_t kMaxFileBytes = 64 << 10;
constexpr size_t kMinBytes = 16;
constexpr size_t kMinDifferentBytes = 8;

Status check_strength(const char* variable, std::string_view text) {
  std::bitset<256> seen;
  for (const char byte : text) seen.set(static_cast<unsigned char>(byte));
  if (text.size() >= kMinBytes && seen.count() >= kMinDifferentBytes) return {};
  return error(ErrorKey::WeakSecret,
               "%s: a secret of %zu bytes, %zu of them different, can be guessed; needed are %zu, %zu", variable,
               text.size(), seen.count(), kMinBytes, kMinDifferentBytes)
      .with_cure("use random bytes: head -c 32 /dev/urandom > PATH, mode 0600, and CCOM_SECRET_FILE=PATH on all ranks");
}

// A process meets a salt for each url and for each process that makes ids.
constexpr size_t kMostKept = 256;

// What was derived is kept under the hash of its text and salt; the lock is not held while another one is derived.
Secret derive_once(std::string_view text, const std::string& salt) {
  struct Kept {
    Mutex mutex;
    std::map<Mac, Secret> secrets CCOM_GUARDED_BY(mutex);
  };
  static constinit PerProcess<Kept> of_process;
  Kept& kept = of_process.get();
  const Mac digest = hmac_sha256(Secret::from_text(text), std::as_bytes(std::span(salt)));
  {
    const Lock lock(kept.mutex);
    if (const auto found = kept.secrets.find(digest); found != kept.secrets.end()) return found->second;
  }
  const Secret derived = Secret::from_passphrase(text, salt);
  const Lock lock(kept.mutex);
  if (kept.secrets.size() >= kMostKept) kept.secrets.clear();
  kept.secrets.emplace(digest, derived);
  return derived;
}

Result<std::optional<Secret>> checked(const char* variable, std::string_view text, uint64_t salt) {
  CCOM_TRY(check_strength(variable, text));
  return std::optional(derive_once(text, std::to_string(salt)));
}

}  // namespace

Result<std::optional<Secret>> job_secret(uint64_t salt) {
  const bool has_text = option_is_set("CCOM_SECRET");
  if (!option_is_set("CCOM_SECRET_FILE")) {
    if (!has_text) return std::optional<Secret>();
    return checked("CCOM_SECRET", option("CCOM_SECRET"), salt);
  }
  if (has_text) return error(Code::ConfigError, "CCOM_SECRET and CCOM_SECRET_FILE are both set; set only one");
  const std::string path = option("CCOM_SECRET_FILE");
  auto contents = read_private_file(path, kMaxFileBytes);
  if (!contents) return std::move(contents).error().in("CCOM_SECRET_FILE");
  if (!*contents) return error(Code::ConfigError, "CCOM_SECRET_FILE=%s: no such file", path.c_str());
  return checked("CCOM_SECRET_FILE", **contents, salt);
}

}  // namespace ccom
