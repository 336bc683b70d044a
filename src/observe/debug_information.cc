// SPDX-License-Identifier: Apache-2.0
//
// libdw is opened at run time, not linked: a library that only error texts need, and only where there is debug
// information, shall not keep ccom from loading where it is not installed.
#include "observe/debug_information.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/descriptor.h"
#include "base/fork.h"

#if __has_include(<elfutils/libdw.h>)
#include <dwarf.h>
#include <elfutils/libdw.h>
#define CCOM_HAS_LIBDW 1
#endif

namespace ccom {

#ifdef CCOM_HAS_LIBDW
namespace {

// The functions of libdw that are used; null if one is missing.
struct Libdw {
  decltype(&::dwarf_begin) begin;
  decltype(&::dwarf_end) end;
  decltype(&::dwarf_addrdie) addrdie;
  decltype(&::dwarf_nextcu) nextcu;
  decltype(&::dwarf_offdie) offdie;
  decltype(&::dwarf_haspc) haspc;
  decltype(&::dwarf_getsrc_die) getsrc;
  decltype(&::dwarf_linesrc) linesrc;
  decltype(&::dwarf_lineno) lineno;
  decltype(&::dwarf_getscopes) getscopes;
  decltype(&::dwarf_tag) tag;
  decltype(&::dwarf_diename) diename;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

std::optional<Libdw> open_libdw() {
  void* const library = ::dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Libdw dw{};
  const bool has_all = find(library, "dwarf_begin", dw.begin) && find(library, "dwarf_end", dw.end) &&
                       find(library, "dwarf_addrdie", dw.addrdie) && find(library, "dwarf_nextcu", dw.nextcu) &&
                       find(library, "dwarf_offdie", dw.offdie) && find(library, "dwarf_haspc", dw.haspc) &&
                       find(library, "dwarf_getsrc_die", dw.getsrc) && find(library, "dwarf_linesrc", dw.linesrc) &&
                       find(library, "dwarf_lineno", dw.lineno) && find(library, "dwarf_getscopes", dw.getscopes) &&
                       find(library, "dwarf_tag", dw.tag) && find(library, "dwarf_diename", dw.diename);
  return has_all ? std::optional(dw) : std::nullopt;
}

const std::optional<Libdw>& libdw() {
  static constinit MadeOnce<std::optional<Libdw>> instance;
  return instance.get(open_libdw);
}

// By the table of addresses, which not all compilers write, or by asking every compilation unit.
bool find_unit(const Libdw& dw, Dwarf* dwarf, uint64_t address, Dwarf_Die& unit) {
  if (dw.addrdie(dwarf, address, &unit) != nullptr) return true;
  Dwarf_Off offset = 0, next = 0;
  size_t header = 0;
  while (dw.nextcu(dwarf, offset, &next, &header, nullptr, nullptr, nullptr) == 0) {
    if (dw.offdie(dwarf, offset + header, &unit) != nullptr && dw.haspc(&unit, address) == 1) return true;
    offset = next;
  }
  return false;
}

std::string function_at(const Libdw& dw, Dwarf_Die& unit, uint64_t address) {
  Dwarf_Die* scopes = nullptr;
  const int count = dw.getscopes(&unit, address, &scopes);
  std::string name;
  for (int i = 0; i < count && name.empty(); ++i) {
    const int tag = dw.tag(&scopes[i]);
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
    const char* const found = dw.diename(&scopes[i]);
    if (found != nullptr) name = found;
  }
  ::free(scopes);
  return name;
}

std::optional<SourceLine> look_up(const Libdw& dw, Dwarf* dwarf, uint64_t address) {
  Dwarf_Die unit{};
  if (!find_unit(dw, dwarf, address, unit)) return std::nullopt;
  Dwarf_Line* const line = dw.getsrc(&unit, address);
  if (line == nullptr) return std::nullopt;
  const char* const file = dw.linesrc(line, nullptr, nullptr);
  SourceLine found;
  if (file == nullptr || dw.lineno(line, &found.line) != 0) return std::nullopt;
  found.file = file;
  found.function = function_at(dw, unit, address);
  return found;
}

}  // namespace

std::optional<SourceLine> find_source_line(const PlaceInModule& place) {
  constexpr off_t kMostBytes = off_t{1} << 30;
  if (!libdw()) return std::nullopt;
  const Descriptor file(::open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || status.st_size > kMostBytes) return std::nullopt;
  Dwarf* const dwarf = libdw()->begin(file.get(), DWARF_C_READ);
  if (dwarf == nullptr) return std::nullopt;
  std::optional<SourceLine> found = look_up(*libdw(), dwarf, place.offset);
  libdw()->end(dwarf);
  return found;
}
#else
std::optional<SourceLine> find_source_line(const PlaceInModule&) { return std::nullopt; }
#endif

}  // namespace ccom
