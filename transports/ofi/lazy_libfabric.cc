// SPDX-License-Identifier: Apache-2.0
//
// Loads libfabric when the first ofi transport is opened, not with ccom.
//
// Loading it also loads its providers' libraries, one of which on Debian (libinfinipath) installs handlers for SIGSEGV,
// SIGBUS, SIGTERM and others when loaded. A program that does not use ofi keeps its signal handlers this way; for one
// that does, that library is told not to install them. These are libfabric's non-inline functions under their own names
// (the headers' inline functions call them); ccom's symbols are hidden, so other libraries are not affected.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>

#include "base/fork.h"
#include "base/log.h"

namespace ccom::ofi {
namespace {

struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;

  Library() {
    ::setenv("IPATH_NO_BACKTRACE", "1", 0);
    // The host's comes first: it knows the host's devices, as EFA's does. The other one is in ccom's wheel.
    void* handle = ::dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) handle = ::dlopen("libccom-fabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      log(LogLevel::Warn, "ofi: load libfabric: %s", ::dlerror());
      return;
    }
    const auto find = [handle](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    };
    find(getinfo, "fi_getinfo");
    find(freeinfo, "fi_freeinfo");
    find(dupinfo, "fi_dupinfo");
    find(fabric, "fi_fabric");
    find(strerror, "fi_strerror");
  }
};

// Stays loaded: its providers start threads and keep state.
const Library& library() {
  static constinit MadeOnce<Library> loaded;
  return loaded.get([] { return Library(); });
}

}  // namespace
}  // namespace ccom::ofi

using ccom::ofi::library;

extern "C" {

int fi_getinfo(uint32_t version, const char* node, const char* service, uint64_t flags, const struct fi_info* hints,
               struct fi_info** info) {
  return library().getinfo != nullptr ? library().getinfo(version, node, service, flags, hints, info) : -FI_ENOSYS;
}

void fi_freeinfo(struct fi_info* info) {
  if (library().freeinfo != nullptr) library().freeinfo(info);
}

struct fi_info* fi_dupinfo(const struct fi_info* info) {
  return library().dupinfo != nullptr ? library().dupinfo(info) : nullptr;
}

int fi_fabric(struct fi_fabric_attr* attr, struct fid_fabric** fabric, void* context) {
  return library().fabric != nullptr ? library().fabric(attr, fabric, context) : -FI_ENOSYS;
}

const char* fi_strerror(int number) {
  return library().strerror != nullptr ? library().strerror(number) : std::strerror(number);
}

}  // extern "C"
