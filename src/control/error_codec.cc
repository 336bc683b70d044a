// SPDX-License-Identifier: Apache-2.0
#include "control/error_codec.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "control/control.pb.h"

namespace ccom {
namespace {

// Never splits a UTF-8 character.
std::string cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

bool is_error_code(int code) {
  const auto is_between = [code](Code first, Code last) {
    return code >= static_cast<int>(first) && code <= static_cast<int>(last);
  };
  return is_between(Code::SystemError, Code::Timeout) || is_between(Code::Mismatch, Code::OperatorError);
}

}  // namespace

void put_error(const Status& error, wire::Error& message) {
  CCOM_ASSERT(!error.is_ok());
  message.set_code(static_cast<int>(error.code()));
  message.set_text(error.message());
  message.mutable_ranks()->Assign(error.peers().begin(), error.peers().end());
  message.set_cure(error.cure());
  message.set_key(static_cast<uint32_t>(error.key()));
  message.set_host(error.host());
  message.set_sys_errno(error.sys_errno());
}

std::optional<Status> error_in(const wire::Error& message) {
  if (!is_error_code(message.code())) return std::nullopt;
  return Status(key_of(message.key(), static_cast<Code>(message.code())), message.text())
      .with_peers({message.ranks().begin(), message.ranks().end()})
      .with_host(message.host())
      .with_cure(message.cure())
      .with_errno(message.sys_errno());
}

std::vector<std::byte> encode_error(const Status& error) {
  wire::Error message;
  put_error(error, message);
  message.set_text(cut(error.message(), kMaxErrorText));
  message.set_cure(cut(error.cure(), kMaxErrorCure));
  message.set_host(cut(error.host(), kMaxErrorHost));
  if (error.peers().size() > kMaxErrorRanks) message.mutable_ranks()->Truncate(static_cast<int>(kMaxErrorRanks));
  std::vector<std::byte> bytes(message.ByteSizeLong());
  CCOM_ASSERT(bytes.size() <= kMaxErrorBytes);
  CCOM_ASSERT(message.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())));
  return bytes;
}

std::optional<Status> decode_error(ConstBytes bytes) {
  wire::Error message;
  const bool is_whole =
      bytes.size() <= kMaxErrorBytes && message.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()));
  return is_whole && message.IsInitialized() ? error_in(message) : std::nullopt;
}

}  // namespace ccom
