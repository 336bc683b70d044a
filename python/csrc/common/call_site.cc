// SPDX-License-Identifier: Apache-2.0
#include "call_site.h"

#include <Python.h>
#include <ccom/ccom.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "reference.h"

namespace ccom_python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNoPython = "a thread without Python code";
constexpr const char* kBackward = "backward";
constexpr const char* kNotTaken = "Python, line not taken";
constexpr size_t kMostKept = 4096;

std::atomic<bool> is_on{false};

// With the GIL. Code objects are kept as long as they stand here.
struct Place {
  PyCodeObject* code;
  int instruction;
  bool operator==(const Place&) const = default;
};
struct PlaceHash {
  size_t operator()(const Place& place) const {
    return reinterpret_cast<uintptr_t>(place.code) / 16 * 31 + static_cast<size_t>(place.instruction);
  }
};
struct Known {
  std::vector<std::string> folders;
  std::unordered_map<Place, const char*, PlaceHash> places;  // null: not the program's
  std::set<std::string> texts;
};
Known& known() {
  static auto* const instance = new Known;
  return *instance;
}

// The stable ABI knows frames and code by their pointers only.
PyObject* object_of(PyFrameObject* frame) { return reinterpret_cast<PyObject*>(frame); }
PyObject* object_of(PyCodeObject* code) { return reinterpret_cast<PyObject*>(code); }

std::string text_of(PyObject* text) {
  const char* const chars = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, nullptr);
  if (chars == nullptr) PyErr_Clear();
  return chars == nullptr ? "?" : chars;
}

std::string attribute_of(PyCodeObject* code, const char* name) {
  PyObject* const value = PyObject_GetAttrString(object_of(code), name);
  std::string text = text_of(value);
  Py_XDECREF(value);
  return text;
}

// "train.py", "package/__init__.py"; of an installed package all below its folder, since trainers have files of the
// same names as torch: "deepspeed/comm/torch.py"
std::string shown(const std::string& path) {
  constexpr std::string_view kInstalled = "-packages/";  // site-packages, Debian's dist-packages
  if (const size_t found = path.rfind(kInstalled); found != std::string::npos) {
    return path.substr(found + kInstalled.size());
  }
  size_t begin = path.rfind('/') + 1;
  if (path.compare(begin, 2, "__") == 0 && begin > 1) begin = path.rfind('/', begin - 2) + 1;
  return path.substr(begin);
}

const char* describe(PyFrameObject* frame, PyCodeObject* code) {
  const std::string file = attribute_of(code, "co_filename");
  const auto is_below = [&](const std::string& folder) { return file.starts_with(folder); };
  if (file.starts_with("<frozen") || std::ranges::any_of(known().folders, is_below)) return nullptr;
  const std::string text =
      shown(file) + ":" + std::to_string(PyFrame_GetLineNumber(frame)) + " (" + attribute_of(code, "co_name") + ")";
  return known().texts.insert(text).first->c_str();
}

// The stable ABI reaches these as attributes only.
#ifdef Py_LIMITED_API
int instruction_of(PyFrameObject* frame) {
  const Reference number(PyObject_GetAttrString(object_of(frame), "f_lasti"));
  return number ? static_cast<int>(PyLong_AsLong(number.get())) : 0;
}
PyFrameObject* caller_of(PyFrameObject* frame) {
  PyObject* const caller = PyObject_GetAttrString(object_of(frame), "f_back");
  if (caller != Py_None) return reinterpret_cast<PyFrameObject*>(caller);
  Py_DECREF(caller);
  return nullptr;
}
#else
int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}
PyFrameObject* caller_of(PyFrameObject* frame) { return PyFrame_GetBack(frame); }
#endif

const char* find(PyFrameObject* frame) {
  PyCodeObject* const code = PyFrame_GetCode(frame);
  auto& places = known().places;
  const Place place{code, instruction_of(frame)};
  if (const auto found = places.find(place); found != places.end()) {
    Py_DECREF(object_of(code));
    return found->second;
  }
  if (places.size() >= kMostKept) {
    for (const auto& [kept, text] : places) Py_DECREF(object_of(kept.code));
    places.clear();
  }
  return places.emplace(place, describe(frame, code)).first->second;
}

// With the GIL.
const char* innermost() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(object_of(frame));
  const char* found = nullptr;
  while (frame != nullptr && found == nullptr) {
    found = find(frame);
    PyFrameObject* const outer = found == nullptr ? caller_of(frame) : nullptr;
    Py_DECREF(object_of(frame));
    frame = outer;
  }
  return found == nullptr ? kNoPython : found;
}

bool is_of_autograd() {
  char name[16] = "";
  return ::pthread_getname_np(::pthread_self(), name, sizeof name) == 0 && std::strncmp(name, "pt_autograd", 11) == 0;
}

// Where a look took long, because another thread kept the GIL, the next one is a hundred times as long away.
thread_local Clock::time_point next_look{};

PyObject* locator = nullptr;  // with the GIL

extern "C" void locate(char* text, size_t size, void*) {
  if (Py_IsInitialized() == 0) return;
  const WithGil gil;
  if (locator == nullptr) return;
  const Reference kept(Py_NewRef(locator));
  const Reference result(PyObject_CallFunctionObjArgs(kept.get(), nullptr));
  if (result) {
    std::snprintf(text, size, "%s", text_of(result.get()).c_str());
  } else {
    PyErr_Clear();
  }
}

}  // namespace

void take_call_sites(std::vector<std::string> folders) {
  known().folders = std::move(folders);
  is_on.store(true, std::memory_order_release);
}

const char* call_site_of_python() {
  if (!is_on.load(std::memory_order_acquire)) return nullptr;
  if (PyGILState_GetThisThreadState() == nullptr) return is_of_autograd() ? kBackward : kNoPython;
  const Clock::time_point begin = Clock::now();
  if (begin < next_look) return kNotTaken;
  const WithGil gil;
  const char* const found = innermost();
  const Clock::duration taken = Clock::now() - begin;
  if (taken > std::chrono::microseconds(50)) next_look = begin + 100 * taken;
  return found;
}

const char* call_site_with_gil() { return is_on.load(std::memory_order_acquire) ? innermost() : nullptr; }

void locate_by(PyObject* function) {
  Py_XINCREF(function);
  Py_XDECREF(std::exchange(locator, function));
  const WithoutGil released;  // one that runs needs the GIL to end
  ccomSetLocator(function == nullptr ? nullptr : &locate, nullptr);
}

}  // namespace ccom_python
