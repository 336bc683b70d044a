// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/user_secret.h"

#include <unistd.h>

#include <cerrno>
#include <span>

#include "base/private_file.h"

namespace ccom {
namespace {

// Of processes that do this at once, one makes it.
Status make_secret_file(const std::string& path) {
  const Secret random = Secret::random();
  Status written = write_private_file(path, {reinterpret_cast<const char*>(random.bytes().data()), Secret::kBytes});
  return written.sys_errno() == EEXIST ? Status::ok() : written;
}

}  // namespace

Result<Secret> user_secret(const std::string& base) {
  const std::string folder = base + "/ccom-user-" + std::to_string(::geteuid());
  CCOM_TRY(make_private_folder(folder));
  const std::string path = folder + "/secret";
  CCOM_TRY_ASSIGN(std::optional<std::string> contents, read_private_file(path, Secret::kBytes));
  if (!contents) {
    CCOM_TRY(make_secret_file(path));
    CCOM_TRY_ASSIGN(contents, read_private_file(path, Secret::kBytes));
  }
  if (!contents || contents->size() != Secret::kBytes) {
    return error(Code::ConfigError, "%s does not hold %zu bytes", path.c_str(), Secret::kBytes)
        .with_cure("remove it; it is made again");
  }
  return Secret(
      std::span<const uint8_t, Secret::kBytes>(reinterpret_cast<const uint8_t*>(contents->data()), Secret::kBytes));
}

}  // namespace ccom
