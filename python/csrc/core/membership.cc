// SPDX-License-Identifier: Apache-2.0
#include "membership.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "communicator.h"
#include "documentation.h"

namespace ccom_core {
namespace {

using namespace nb::literals;

nb::object launch() {
  int rank = 0, ranks = 1, local_rank = -1, local_ranks = -1;
  const ccomResult_t result = ccomGetLaunch(&rank, &ranks, &local_rank, &local_ranks);
  if (result == ccomInvalidUsage) return nb::none();  // no launcher
  check(result);
  return nb::make_tuple(rank, ranks, local_rank, local_ranks);
}

nb::bytes bytes_of_id(const ccomUniqueId& id) { return nb::bytes(id.internal, sizeof id.internal); }

ccomUniqueId id_of(const nb::bytes& bytes) {
  ccomUniqueId id{};
  if (bytes.size() != sizeof id.internal)
    throw nb::value_error("unique_id: needs the 128 bytes that ccom.unique_id() returns");
  std::memcpy(id.internal, bytes.c_str(), sizeof id.internal);
  return id;
}

nb::bytes unique_id() {
  ccomUniqueId id{};
  check(ccomGetUniqueId(&id));
  return bytes_of_id(id);
}

// Rank 0's file or port is waited for in a thread, which this one leaves behind if a signal ends the wait.
nb::bytes unique_id_from_url(const std::string& url, int size, int rank) {
  struct Search {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<ccomResult_t> result;
    ccomUniqueId id{};
    ccomErrorInfo_t info = CCOM_ERROR_INFO_INIT;
  };
  const auto search = std::make_shared<Search>();
  std::thread([search, url, size, rank] {
    ccomUniqueId id{};
    const ccomResult_t result = ccomUniqueIdFromUrl(url.c_str(), size, rank, &id);
    const ccomErrorInfo_t info = error_info(result);
    const std::lock_guard lock(search->mutex);
    search->id = id;
    search->info = info;
    search->result = result;
    search->ended.notify_all();
  }).detach();
  while (true) {
    std::optional<ccomResult_t> result;
    {
      const WithoutGil released;
      std::unique_lock lock(search->mutex);
      search->ended.wait_for(lock, Interrupt::kInterval, [&] { return search->result.has_value(); });
      result = search->result;
    }
    if (result && *result != ccomSuccess) raise(search->info);
    if (result) return bytes_of_id(search->id);
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// start(parent, &comm, &config), collective, of a communicator with an interrupt of its own. `parent` stays open
// meanwhile.
template <typename Start>
Started started(Communicator* parent, const nb::dict& settings, Start start) {
  Started made;
  const ccomConfig_t config = config_of(settings, *made.interrupt);
  const auto call = [&](ccomComm_t whole) { return start(whole, &made.comm, &config); };
  if (parent != nullptr) {
    try {
      parent->run(call);
    } catch (nb::python_error&) {
      if (made.interrupt->restore()) throw nb::python_error();
      throw;
    }
    return made;
  }
  tell_call_site();
  ccomResult_t result;
  {
    const WithoutGil released;
    result = call(nullptr);
  }
  check(result, made.interrupt.get());
  return made;
}

Started start(const nb::bytes& unique_id, int rank, int size, const nb::dict& settings) {
  const ccomUniqueId id = id_of(unique_id);
  return started(nullptr, settings, [&](ccomComm_t, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommInitRankConfig(comm, size, id, rank, config);
  });
}

std::vector<Started> start_all(int size, const nb::dict& settings) {
  if (size < 1) throw nb::value_error("size: needs 1 or more");
  std::vector<Started> all(static_cast<size_t>(size));
  for (Started& one : all) one.interrupt = all.front().interrupt;
  const ccomConfig_t config = config_of(settings, *all.front().interrupt);
  std::vector<ccomComm_t> comms(all.size());
  ccomResult_t result;
  {
    const WithoutGil released;
    result = ccomCommInitAll(comms.data(), size, &config);
  }
  check(result, all.front().interrupt.get());
  for (size_t i = 0; i < all.size(); ++i) all[i].comm = comms[i];
  return all;
}

Started split(Communicator& self, int color, int key, const nb::dict& settings) {
  return started(&self, settings, [&](ccomComm_t whole, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommSplit(whole, color, key, comm, config);
  });
}

Started create_group(Communicator& self, const std::vector<int>& ranks, const nb::dict& settings) {
  return started(&self, settings, [&](ccomComm_t whole, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommCreateGroup(whole, ranks.data(), static_cast<int>(ranks.size()), comm, config);
  });
}

Started shrink(Communicator& self, const std::vector<int>& exclude, bool abort, const nb::dict& settings) {
  return started(&self, settings, [&](ccomComm_t whole, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommShrink(whole, exclude.empty() ? nullptr : exclude.data(), static_cast<int>(exclude.size()), comm,
                          config, abort ? CCOM_SHRINK_ABORT : CCOM_SHRINK_DEFAULT);
  });
}

Started grow(Communicator& self, int size, const nb::object& unique_id, const nb::dict& settings) {
  std::optional<ccomUniqueId> id;
  if (!unique_id.is_none()) id = id_of(nb::cast<nb::bytes>(unique_id));
  return started(&self, settings, [&](ccomComm_t whole, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommGrow(whole, size, id ? &*id : nullptr, -1, comm, config);
  });
}

Started join(const nb::bytes& unique_id, int rank, int size, const nb::dict& settings) {
  const ccomUniqueId id = id_of(unique_id);
  return started(nullptr, settings, [&](ccomComm_t, ccomComm_t* comm, const ccomConfig_t* config) {
    return ccomCommGrow(nullptr, size, &id, rank, comm, config);
  });
}

nb::tuple agree(Communicator& self, int flags) {
  std::vector<int> lost(static_cast<size_t>(self.size()));
  int count = 0;
  self.run([&](ccomComm_t comm) { return ccomCommAgree(comm, &flags, lost.data(), &count); });
  lost.resize(static_cast<size_t>(count));
  return nb::make_tuple(flags, lost);
}

}  // namespace

void add_starts(nb::module_& module) {
  nb::class_<Started>(module, "Started", "A communicator before Communicator(started) owns it.")
      .def_prop_ro("is_none", [](const Started& self) { return self.comm == nullptr; });
  module.def("launch", &launch, documentation::kLaunch);
  module.def("unique_id", &unique_id, documentation::kUniqueId);
  module.def("unique_id_from_url", &unique_id_from_url, "url"_a, "size"_a, "rank"_a, documentation::kUniqueIdFromUrl);
  module.def("start", &start, "unique_id"_a, "rank"_a, "size"_a, "settings"_a);
  module.def("start_all", &start_all, "size"_a, "settings"_a);
  module.def("join", &join, "unique_id"_a, "rank"_a, "size"_a, "settings"_a);
}

void add_membership(nb::class_<Communicator>& type) {
  type.def("_split", &split, "color"_a, "key"_a, "settings"_a);
  type.def("_create_group", &create_group, "ranks"_a, "settings"_a);
  type.def("_shrink", &shrink, "exclude"_a, "abort"_a, "settings"_a);
  type.def("_grow", &grow, "size"_a, "unique_id"_a.none(), "settings"_a);
  type.def("agree", &agree, "flags"_a = -1, documentation::kAgree);
  type.def(
      "unique_id_to_grow",
      [](Communicator& self) {
        ccomUniqueId id{};
        self.run([&](ccomComm_t comm) { return ccomCommGetUniqueId(comm, &id); });
        return bytes_of_id(id);
      },
      documentation::kUniqueIdToGrow);
  type.def(
      "abort", [](Communicator& self) { check(ccomCommAbort(self.comm())); }, documentation::kAbort);
  type.def(
      "revoke", [](Communicator& self) { check(ccomCommRevoke(self.comm(), 0)); }, documentation::kRevoke);
  type.def(
      "finalize", [](Communicator& self) { self.run(ccomCommFinalize); }, documentation::kFinalize);
  type.def("close", &Communicator::close, documentation::kClose);
  type.def(
      "set_timeout",
      [](Communicator& self, double seconds) {
        if (!(seconds > 0)) throw nb::value_error("seconds: needs more than 0");
        const auto milliseconds = static_cast<int64_t>(std::min(seconds, 1e12) * 1000);
        check(ccomCommSetTimeout(self.comm(), std::max<int64_t>(1, milliseconds)));
      },
      "seconds"_a, documentation::kSetTimeout);
}

}  // namespace ccom_core
