// SPDX-License-Identifier: Apache-2.0
#include "api/structs.h"

#include <string>

namespace ccom {
namespace {

StructHead head_of(const void* given) {
  StructHead head;
  std::memcpy(&head, given, sizeof head);
  return head;
}

// "0.9.0" of 900.
std::string version_text(uint32_t code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

}  // namespace

Status check_head(const void* given, const StructNames& names) {
  if (given == nullptr) return error(Code::InvalidArgument, "%s is NULL", names.argument);
  const StructHead head = head_of(given);
  if (head.magic != CCOM_STRUCT_MAGIC || head.size < sizeof head || head.size % alignof(StructHead) != 0)
    return error(ErrorKey::NotInitialised, "%s was not initialised with %s", names.argument, names.macro);
  return {};
}

Status check_unknown(const void* given, size_t known, const StructNames& names) {
  const StructHead head = head_of(given);
  const char* const bytes = static_cast<const char*>(given);
  if (head.size <= known) return {};
  if (std::all_of(bytes + known, bytes + head.size, [](char byte) { return byte == 0; })) return {};
  const std::string mine = version_text(CCOM_VERSION_CODE);
  const std::string theirs = version_text(head.version);
  return error(ErrorKey::UnknownFields,
               "%s sets fields that this library, ccom %s, does not know: the program was compiled for ccom %s, whose "
               "%s has %zu bytes instead of %zu",
               names.argument, mine.c_str(), theirs.c_str(), names.argument, head.size, known)
      .with_cure("load libccom " + theirs + " or later, or leave what came after " + mine + " at its default");
}

}  // namespace ccom
