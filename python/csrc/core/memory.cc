// SPDX-License-Identifier: Apache-2.0
//
// Memory that ranks of a host can map, registered arrays, and windows.
#include <optional>

#include "communicator.h"
#include "documentation.h"
#include "membership.h"

namespace ccom_core {
namespace {

using namespace nb::literals;
using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

Bytes allocate(size_t bytes) {
  void* memory = nullptr;
  check(ccomMemAlloc(&memory, std::max<size_t>(bytes, 1)));
  const nb::capsule owner(memory, [](void* pointer) noexcept { ccomMemFree(pointer); });
  return Bytes(memory, {bytes}, owner);
}

// Declared to one communicator until close() or the communicator's end.
class Registration {
 public:
  Registration(nb::object communicator, nb::handle array)
      : communicator_(std::move(communicator)), array_(Array(array, "array", true)) {
    owner().run([&](ccomComm_t comm) { return ccomCommRegister(comm, array_->data(), array_->bytes(), &handle_); });
  }
  ~Registration() {
    if (handle_ != nullptr && !owner().is_closed()) ccomCommDeregister(owner().comm(), handle_);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  void close() {
    void* const handle = std::exchange(handle_, nullptr);
    if (handle != nullptr && !owner().is_closed())
      owner().run([&](ccomComm_t comm) { return ccomCommDeregister(comm, handle); });
    array_.reset();
  }

 private:
  Communicator& owner() const { return nb::cast<Communicator&>(communicator_); }

  nb::object communicator_;
  std::optional<Array> array_;
  void* handle_ = nullptr;
};

class Window {
 public:
  Window(nb::object communicator, nb::handle array)
      : communicator_(std::move(communicator)), array_(Array(array, "array", true)) {
    sizes_.resize(static_cast<size_t>(owner().size()));
    const auto own = static_cast<int64_t>(array_->bytes());
    owner().run([&](ccomComm_t comm) { return ccomAllGather(&own, sizes_.data(), 1, ccomInt64, comm, nullptr); });
    owner().run(
        [&](ccomComm_t comm) { return ccomCommWindowRegister(comm, array_->data(), array_->bytes(), &window_, 0); });
  }
  ~Window() {
    if (window_ != nullptr && !owner().is_closed()) ccomCommWindowDeregister(owner().comm(), window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  Bytes peer(int rank) const {
    if (window_ == nullptr) throw nb::value_error("the window is closed");
    void* pointer = nullptr;
    check(ccomWinGetPeerPtr(window_, rank, &pointer));
    return Bytes(pointer, {static_cast<size_t>(sizes_[static_cast<size_t>(rank)])}, nb::find(*this));
  }
  const char* type_name() const { return name_of(array_->type()); }
  void close() {
    const ccomWindow_t window = std::exchange(window_, nullptr);
    if (window != nullptr && !owner().is_closed())
      owner().run([&](ccomComm_t comm) { return ccomCommWindowDeregister(comm, window); });
    array_.reset();
  }

 private:
  Communicator& owner() const { return nb::cast<Communicator&>(communicator_); }

  nb::object communicator_;
  std::optional<Array> array_;
  std::vector<int64_t> sizes_;
  ccomWindow_t window_ = nullptr;
};

}  // namespace

void add_memory(nb::module_& module, nb::class_<Communicator>& communicator) {
  module.def("_allocate", &allocate, "bytes"_a);
  nb::class_<Registration>(module, "Registration", documentation::kRegistration)
      .def("close", &Registration::close, "Ends the registration. Again: nothing. Local.")
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Registration& self, nb::args) { self.close(); });
  nb::class_<Window>(module, "Window", documentation::kWindow)
      .def("_peer", &Window::peer, "rank"_a)
      .def_prop_ro("_dtype", &Window::type_name)
      .def(
          "peer",
          [](nb::object self, int rank) {
            return nb::module_::import_("ccom._communicator").attr("window_of_peer")(self, rank);
          },
          "rank"_a, documentation::kPeer)
      .def("close", &Window::close, "Ends the window of this rank. Again: nothing. Local.")
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Window& self, nb::args) { self.close(); });
  communicator.def(
      "register", [](nb::object self, nb::handle array) { return new Registration(std::move(self), array); },
      nb::rv_policy::take_ownership, "array"_a, documentation::kRegister);
  communicator.def(
      "window", [](nb::object self, nb::handle array) { return new Window(std::move(self), array); },
      nb::rv_policy::take_ownership, "array"_a, documentation::kMakeWindow);
}

}  // namespace ccom_core
