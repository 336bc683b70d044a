// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/ccom_library.h"

#include <dlfcn.h>

namespace ccom::mpi {
namespace {

const CcomLibrary* load() {
  auto* const made = new CcomLibrary;
  void* const library = ::dlopen("libccom.so.0", RTLD_NOW | RTLD_LOCAL);  // along this library's RUNPATH
  if (library == nullptr) {
    made->why_not = ::dlerror();
    return made;
  }
#define CCOM_LIBRARY_FIND(function)                                                                \
  made->function = reinterpret_cast<decltype(made->function)>(::dlsym(library, "ccom" #function)); \
  if (made->function == nullptr) {                                                                 \
    made->why_not = "libccom.so.0 has no function ccom" #function;                                 \
    return made;                                                                                   \
  }
  CCOM_LIBRARY_FUNCTIONS(CCOM_LIBRARY_FIND)
#undef CCOM_LIBRARY_FIND
  made->is_loaded = true;
  return made;
}

}  // namespace

const CcomLibrary& ccom_library() {
  static const CcomLibrary* const loaded = load();
  return *loaded;
}

}  // namespace ccom::mpi
