// SPDX-License-Identifier: Apache-2.0
//
// The secret that the user gives to all ranks of a job.
#pragma once

#include <cstdint>
#include <optional>

#include "base/secret.h"
#include "base/status.h"

namespace ccom {

// From CCOM_SECRET or the file CCOM_SECRET_FILE; nothing if the user has set neither. Derived slowly, see
// Secret::from_passphrase(), once for each text and salt: something that all ranks know before they meet, and that is
// another one for other jobs, so that no table of guesses serves two of them. Thread-safe. ConfigError for a secret
// that could be guessed - shorter than 16 bytes, or of fewer than 8 different ones - and for a file that others could
// have read.
Result<std::optional<Secret>> job_secret(uint64_t salt);

}  // namespace ccom
