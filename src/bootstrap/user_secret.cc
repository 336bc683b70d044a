// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/user_secret.h"

#include <unistd.h>

#include <cerrno>
#include <span>

#include "bootstrap/private_file.h"

namespace ccom {
namespace {

// A link appears at once with all bytes in it, and only one process's.
Status make_secret_file(const std::string& path) {
  const Secret random = Secret::random();
  const std::string_view bytes(reinterpret_cast<const char*>(random.bytes().data()), Secret::kBytes);
  const std::string made = path + "." + std::to_string(random_u64());
  CCOM_TRY(write_private_file(made, bytes));
  const int failure = ::link(made.c_str(), path.c_str()) == 0 ? 0 : errno;
  CCOM_TRY(remove_private_file(made));
  return failure == 0 || failure == EEXIST ? Status() : system_error(failure, "create %s", path.c_str());
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
  return Secret(std::span<const uint8_t, Secret::kBytes>(reinterpret_cast<const uint8_t*>(contents->data()),
                                                         Secret::kBytes));
}

}  // namespace ccom
