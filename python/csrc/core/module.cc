// SPDX-License-Identifier: Apache-2.0
//
// ccom._core: ccom for Python without torch. The package's __init__ says what of it is public.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../common/wakeups.h"
#include "calls.h"
#include "collectives.h"
#include "documentation.h"
#include "membership.h"

namespace ccom_core {
namespace {

using namespace nb::literals;

nb::object awaited(nb::object handle) {
  return nb::module_::import_("ccom._handles").attr("awaited")(std::move(handle)).attr("__await__")();
}

void add_handles(nb::module_& module) {
  nb::class_<Handle>(module, "Handle", documentation::kHandle)
      .def("done", &Handle::is_done, documentation::kDone)
      .def("wait", &Handle::wait, "timeout"_a = nb::none(), documentation::kWait)
      .def("add_done_callback", &Handle::add_done_callback, "function"_a, documentation::kAddDoneCallback)
      .def_prop_ro("peer", &Handle::peer, documentation::kHandlePeer)
      .def("__await__", &awaited);
}

void add_operators(nb::class_<Communicator>& communicator) {
  communicator.def("create_op", &create_op, "function"_a, nb::kw_only(), "commutative"_a = false,
                   documentation::kCreateOp);
  communicator.def("premultiplied_sum", &premultiplied_sum, "scalar"_a, "dtype"_a, documentation::kPremultipliedSum);
}

void add_places(nb::module_& module) {
  module.def("watch_wakeups", &ccom_python::watch_wakeups);
  module.def("take_call_sites", &ccom_python::take_call_sites, "folders"_a);
  module.def(
      "locate_by", [](nb::object function) { ccom_python::locate_by(function.is_none() ? nullptr : function.ptr()); },
      "function"_a.none());
}

}  // namespace
}  // namespace ccom_core

NB_MODULE(_core, module) {
  using namespace ccom_core;
  using namespace nb::literals;
  nb::set_leak_warnings(false);  // a program may end with communicators open
  nb::class_<Operator>(module, "Operator", documentation::kOperator)
      .def("destroy", &Operator::destroy, "Frees it. Local; calls that have been made with it are not affected.");
  add_handles(module);
  add_starts(module);
  nb::class_<Communicator> communicator(module, "Communicator", nb::is_weak_referenceable());
  communicator.def(nb::init<Started&>(), "started"_a)
      .def_prop_ro("rank", &Communicator::rank, "This process's rank, from 0.")
      .def_prop_ro("size", &Communicator::size, "The number of ranks.")
      .def_prop_ro("closed", &Communicator::is_closed, "Whether it has been closed.")
      .def_prop_ro(
          "handle", [](const Communicator& self) { return reinterpret_cast<uintptr_t>(self.comm()); },
          documentation::kCommHandle);
  add_collectives(communicator);
  add_collectives_of_parts(communicator);
  add_messages(communicator);
  add_operators(communicator);
  add_membership(communicator);
  add_queries(module, communicator);
  add_memory(module, communicator);
  add_places(module);
  module.def("_start_group", &start_group);
  module.def("_end_group", &end_group);
  module.def("_make_errors_by", &make_errors_by, "factory"_a);
  module.def("_close_all", &Communicator::close_all);
}
