// SPDX-License-Identifier: Apache-2.0
//
// The Python module ccom.torch._backend.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "../common/call_site.h"
#include "../common/wakeups.h"
#include "completions.h"
#include "mapped_memory.h"
#include "process_group.h"

namespace py = pybind11;

namespace ccom_torch {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;

const char* state_of(const FlightRecorder::Entry& entry) {
  switch (entry.state) {
    case FlightRecorder::State::Scheduled: return "scheduled";
    case FlightRecorder::State::Completed: return "completed";
    default: return "started";
  }
}

py::list sizes_of(const FlightRecorder::Shapes& shapes) {
  py::list all;
  size_t next = 0;
  for (size_t i = 0; i < shapes.tensors; ++i) {
    py::list sizes;
    for (int8_t d = 0; d < shapes.dims[i]; ++d) sizes.append(shapes.numbers[next++]);
    all.append(sizes);
  }
  return all;
}

py::list types_of(const FlightRecorder::Shapes& shapes) {
  py::list all;
  for (size_t i = 0; i < shapes.tensors; ++i) all.append(c10::toString(shapes.types[i]));
  return all;
}

// Entries in the format of torch's flight recorder, without process-wide data.
py::list recorded(const ProcessGroup& group) {
  py::list all;
  for (const FlightRecorder::Entry& entry : group.flight_recorder().entries()) {
    py::dict fields;
    fields["record_id"] = entry.record - 1;
    fields["collective_seq_id"] = entry.collective_sequence;
    fields["p2p_seq_id"] = entry.message_sequence;
    fields["op_id"] = entry.record;
    fields["is_p2p"] = entry.is_message;
    fields["peer"] = entry.peer;
    fields["profiling_name"] = entry.title;
    fields["input_sizes"] = sizes_of(entry.inputs);
    fields["input_dtypes"] = types_of(entry.inputs);
    fields["output_sizes"] = sizes_of(entry.outputs);
    fields["output_dtypes"] = types_of(entry.outputs);
    fields["time_created_ns"] = entry.created_ns;
    fields["time_discovered_started_ns"] = entry.started_ns == 0 ? py::object(py::none()) : py::int_(entry.started_ns);
    fields["time_discovered_completed_ns"] =
        entry.completed_ns == 0 ? py::object(py::none()) : py::int_(entry.completed_ns);
    if (entry.completed_ns > 0 && entry.started_ns > 0)
      fields["duration_ms"] = static_cast<double>(entry.completed_ns - entry.started_ns) / 1e6;
    fields["timeout_ms"] = entry.timeout_ms;
    fields["state"] = state_of(entry);
    fields["retired"] = entry.state >= FlightRecorder::State::Completed;
    all.append(fields);
  }
  return all;
}

py::list counted(const ProcessGroup& group) {
  py::list all;
  for (size_t type = 0; type < Statistics::kTypes; ++type) {
    const auto op = static_cast<c10d::OpType>(type);
    const Statistics::Counters& counters = group.statistics().of(op);
    if (counters.count.load() == 0) continue;
    py::dict fields;
    fields["op"] = c10d::opTypeToString(op);
    fields["count"] = counters.count.load();
    fields["bytes"] = counters.bytes.load();
    fields["seconds"] = static_cast<double>(counters.nanoseconds.load()) / 1e9;
    fields["waited_seconds"] = static_cast<double>(counters.waited_nanoseconds.load()) / 1e9;
    all.append(fields);
  }
  return all;
}

// A CCOM_ variable as it is in effect in this process.
std::string variable(const std::string& key) {
  size_t length = 0;
  ccomParamGet(key.c_str(), nullptr, &length, nullptr);
  std::string value(length, '\0');
  TORCH_CHECK(ccomParamGet(key.c_str(), value.data(), &length, nullptr) == ccomSuccess, ccomGetLastError(nullptr));
  value.resize(length - 1);  // without its 0
  return value;
}

}  // namespace

PYBIND11_MODULE(_backend, module) {
  py::module::import("torch._C._distributed_c10d");
  module.attr("torch_version") = CCOM_TORCH_VERSION_TEXT;

  py::class_<ProcessGroup, c10::intrusive_ptr<ProcessGroup>, c10d::Backend>(module, "ProcessGroupCcom")
      .def(py::init(&ProcessGroup::create), py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
           py::arg("name") = "", py::arg("global_ranks") = std::vector<int64_t>(), py::arg("is_default") = false,
           py::arg("stands_for_gloo") = false, py::arg("waits_for_reconfigure") = false, NoGil())
      .def_static("join", &ProcessGroup::join, py::arg("store"), py::arg("key"), py::arg("rank"), py::arg("size"),
                  py::arg("timeout"), py::arg("name"), py::arg("stands_for_gloo"), NoGil())
      .def("grow", &ProcessGroup::grow, py::arg("store"), py::arg("key"), py::arg("size"), NoGil())
      .def_property_readonly("options", &ProcessGroup::options)
      .def_property_readonly("group_label", &ProcessGroup::name)
      .def_property_readonly("generation", &ProcessGroup::generation)
      .def("_set_default_timeout", &ProcessGroup::setTimeout, py::arg("timeout"))
      .def("abort", &ProcessGroup::abort, NoGil())
      .def_property_readonly("stands_for_gloo", &ProcessGroup::stands_for_gloo)
      .def("lost_ranks", &ProcessGroup::lost_ranks, NoGil())
      .def("witness", &ProcessGroup::witness, py::arg("tensors"), NoGil())
      .def("report", &ProcessGroup::report, py::arg("as_json") = false, py::arg("of_host") = false)
      .def("average_with_residual", &ProcessGroup::average_with_residual, py::arg("tensor"), py::arg("residual"),
           NoGil())
      .def("average_as_bfloat16", &ProcessGroup::average_as_bfloat16, py::arg("tensor"), NoGil())
      .def("shutdown", &ProcessGroup::shutdown, NoGil())
      .def("stats", &counted)
      .def("bytes_sent", &ProcessGroup::bytes_sent, NoGil())
      .def("flight_recorder_entries", &recorded);

  module.def("variable", &variable, py::arg("key"));
  module.def("watch_wakeups", &ccom_python::watch_wakeups);
  module.def("take_call_sites", &ccom_python::take_call_sites, py::arg("folders"));
  module.def("locate_by",
             [](const py::object& function) { ccom_python::locate_by(function.is_none() ? nullptr : function.ptr()); });
  module.def("call_site", &ccom_python::call_site_of_python);
  module.def("close_all_groups", &close_all_groups, NoGil());
  module.def("set_failure_hook", [](py::function hook) {
    auto* kept = new py::function(std::move(hook));  // as long as the process
    set_failure_hook([kept] {
      const py::gil_scoped_acquire gil;
      try {
        (*kept)();
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable("ccom.torch's failure hook");
      }
    });
  });
  module.def("enable_mapped_tensors", &enable_mapped_tensors, py::arg("min_bytes"), py::arg("keep_bytes"));
  module.def("is_mapped", [](const at::Tensor& tensor) { return is_mapped(tensor.const_data_ptr(), tensor.nbytes()); });
  module.def("mapped_memory_use", [] {
    const MappedMemoryUse use = mapped_memory_use();
    return std::make_pair(use.in_use, use.kept);
  });
}

}  // namespace ccom_torch
