// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/job_secret.h"

#include <bitset>
#include <string>
#include <string_view>
#include <utility>

#include "base/fork.h"
#include "base/mutex.h"
#include "base/options.h"
#include "bootstrap/private_file.h"

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

// The last text's secret is kept, as its hash; the lock is not held while another one is derived.
Secret derive_once(std::string_view text) {
  struct Kept {
    Mutex mutex;
    std::optional<std::pair<Secret, Secret>> last CCOM_GUARDED_BY(mutex);
  };
  static constinit PerProcess<Kept> of_process;
  Kept& kept = of_process.get();
  const Secret digest = Secret::from_text(text);
  {
    const Lock lock(kept.mutex);
    if (kept.last && equal_in_constant_time(std::as_bytes(kept.last->first.bytes()), std::as_bytes(digest.bytes()))) {
      return kept.last->second;
    }
  }
  const Secret derived = Secret::from_passphrase(text);
  const Lock lock(kept.mutex);
  kept.last.emplace(digest, derived);
  return derived;
}

Result<std::optional<Secret>> checked(const char* variable, std::string_view text) {
  CCOM_TRY(check_strength(variable, text));
  return std::optional(derive_once(text));
}

}  // namespace

Result<std::optional<Secret>> job_secret() {
  const bool has_text = option_is_set("CCOM_SECRET");
  if (!option_is_set("CCOM_SECRET_FILE")) {
    if (!has_text) return std::optional<Secret>();
    return checked("CCOM_SECRET", option("CCOM_SECRET"));
  }
  if (has_text) return error(Code::ConfigError, "CCOM_SECRET and CCOM_SECRET_FILE are both set; set only one");
  const std::string path = option("CCOM_SECRET_FILE");
  auto contents = read_private_file(path, kMaxFileBytes);
  if (!contents) return std::move(contents).error().in("CCOM_SECRET_FILE");
  if (!*contents) return error(Code::ConfigError, "CCOM_SECRET_FILE=%s: no such file", path.c_str());
  return checked("CCOM_SECRET_FILE", **contents);
}

}  // namespace ccom
