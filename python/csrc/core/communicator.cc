// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "handle.h"

namespace ccom_core {
namespace {

// With the GIL. Never destroyed: the interpreter may end before the process does.
std::vector<Communicator*>& all() {
  static auto* const instance = new std::vector<Communicator*>;
  return *instance;
}

int is_interrupted(void* user) { return static_cast<Interrupt*>(user)->look() ? 1 : 0; }

// What is left of a communicator that closes. With the GIL.
struct Ending {
  ccomComm_t comm = nullptr;
  ccomStream_t stream = nullptr;
  std::shared_ptr<const int> users;
  Operators operators;  // they may refer to the communicator

  void run() const {
    const WithoutGil released;  // operators in Python need it to end
    while (has_users()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stream != nullptr) ccomStreamDestroy(stream);
    ccomCommDestroy(comm);
  }

 private:
  bool has_users() const {
    const ccom_python::WithGil gil;
    return *users > 0;
  }
};

struct Setting {
  const char* name;
  const char* ccomConfig_t::*text = nullptr;
  int64_t ccomConfig_t::*number = nullptr;
};
constexpr Setting kSettings[] = {
    {"name", &ccomConfig_t::commName, nullptr},
    {"transport", &ccomConfig_t::transport, nullptr},
    {"algorithm", &ccomConfig_t::algorithm, nullptr},
    {"topology", &ccomConfig_t::topology, nullptr},
    {"ifname", &ccomConfig_t::ifname, nullptr},
    {"host_id", &ccomConfig_t::hostId, nullptr},
    {"rounding", &ccomConfig_t::rounding, nullptr},
    {"determinism", &ccomConfig_t::determinism, nullptr},
    {"wire", &ccomConfig_t::wire, nullptr},
    {"max_memory", nullptr, &ccomConfig_t::maxMemory},
    {"rounding_seed", nullptr, &ccomConfig_t::roundingSeed},
    // Seconds in Python.
    {"timeout", nullptr, &ccomConfig_t::timeoutMs},
    {"init_timeout", nullptr, &ccomConfig_t::initTimeoutMs},
};

void set(ccomConfig_t& config, const std::string& name, nb::handle value) {
  if (name == "messages") {
    config.messages = nb::cast<bool>(value) ? 1 : 0;
    return;
  }
  const auto* const found = std::ranges::find_if(kSettings, [&](const Setting& one) { return one.name == name; });
  if (found == std::end(kSettings)) {
    std::string names = "messages";
    for (const Setting& one : kSettings) names += ", " + std::string(one.name);
    throw nb::type_error(("there is no setting '" + name + "'; needs one of " + names).c_str());
  }
  if (found->text != nullptr) {
    if (!nb::isinstance<nb::str>(value)) throw nb::type_error((name + ": needs a text").c_str());
    config.*found->text = PyUnicode_AsUTF8AndSize(value.ptr(), nullptr);
    if (config.*found->text == nullptr) throw nb::python_error();
  } else if (name.ends_with("timeout")) {
    const double seconds = PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    if (!(seconds > 0)) throw nb::value_error((name + ": needs seconds, more than 0").c_str());
    config.*found->number = std::max<int64_t>(1, static_cast<int64_t>(std::min(seconds, 1e12) * 1000));
  } else {
    config.*found->number = nb::cast<int64_t>(value);
  }
}

}  // namespace

ccomConfig_t config_of(const nb::dict& settings, Interrupt& interrupt) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  for (const auto& [name, value] : settings) {
    if (!value.is_none()) set(config, nb::cast<std::string>(name), value);
  }
  config.interrupted = &is_interrupted;
  config.interruptedUser = &interrupt;
  return config;
}

Started::~Started() {
  if (comm != nullptr) ccomCommDestroy(comm);
}

Communicator::Communicator(Started& started)
    : comm_(std::exchange(started.comm, nullptr)), interrupt_(std::move(started.interrupt)) {
  if (comm_ == nullptr) throw nb::value_error("this communicator has been taken");
  check(ccomCommUserRank(comm_, &rank_));
  check(ccomCommCount(comm_, &size_));
  all().push_back(this);
}

Communicator::~Communicator() {
  std::erase(all(), this);
  close();
}

ccomComm_t Communicator::comm() const {
  if (comm_ == nullptr) throw nb::value_error("the communicator is closed");
  return comm_;
}

ccomStream_t Communicator::stream() {
  if (stream_ == nullptr) check(ccomStreamCreate(&stream_));
  return stream_;
}

void Communicator::close() {
  const auto ending = std::make_shared<Ending>();
  ending->comm = std::exchange(comm_, nullptr);
  ending->stream = std::exchange(stream_, nullptr);
  ending->users = users_;
  ending->operators.swap(operators_);
  if (ending->comm == nullptr || owner_ != ::getpid()) return;
  if (!WithinCallback::is_here()) return ending->run();
  const nb::object thread = nb::module_::import_("threading").attr("Thread");
  thread(nb::arg("target") = nb::cpp_function([ending] { ending->run(); }), nb::arg("name") = "ccom-close")
      .attr("start")();
}

void Communicator::close_all() {
  while (!all().empty()) {
    Communicator* const last = all().back();
    all().pop_back();
    last->close();
  }
}

}  // namespace ccom_core
