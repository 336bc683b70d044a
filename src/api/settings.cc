// SPDX-License-Identifier: Apache-2.0
//
// A caller's ccomConfig_t, over the settings that it does not set.
#include "api/handles.h"
#include "api/structs.h"

namespace ccom {
namespace {

constexpr int64_t kLeastMemory = int64_t{1} << 20;

// Over what the environment says.
Result<CommConfig> settings_over(const ccomConfig_t* of_caller, CommConfig config) {
  if (of_caller == nullptr) return config;
  CCOM_TRY_ASSIGN(const ccomConfig_t given, read_struct(of_caller, CCOM_CONFIG_INIT, {"config", "CCOM_CONFIG_INIT"}));
  if (given.reserved != 0) return error(Code::InvalidArgument, "config.reserved is %d; it must be 0", given.reserved);
  const auto text = [](const char* from, std::string& to) {
    if (from != nullptr) to = from;
  };
  const auto number = [](int64_t from, int64_t& to, const char* name) -> Status {
    if (from == -1) return {};
    if (from <= 0)
      return error(Code::InvalidArgument, "config.%s is %lld; it must be positive, or -1 for the default", name,
                   static_cast<long long>(from));
    to = from;
    return {};
  };
  text(given.commName, config.name);
  text(given.algorithm, config.algorithm);
  text(given.topology, config.topology);
  text(given.ifname, config.ifname);
  text(given.hostId, config.host_id);
  CCOM_TRY(number(given.timeoutMs, config.timeout_ms, "timeoutMs"));
  CCOM_TRY(number(given.initTimeoutMs, config.init_timeout_ms, "initTimeoutMs"));
  CCOM_TRY(number(given.maxMemory, config.max_memory, "maxMemory"));
  if (config.max_memory < kLeastMemory) {
    return error(Code::InvalidArgument, "config.maxMemory is %lld bytes; the minimum is %lld",
                 static_cast<long long>(config.max_memory), static_cast<long long>(kLeastMemory));
  }
  if (given.transport != nullptr) CCOM_TRY(config.set_transports(given.transport));
  if (given.rounding != nullptr) CCOM_TRY(config.set_rounding(given.rounding));
  if (given.messages < -1 || given.messages > 1)
    return error(Code::InvalidArgument, "config.messages is %d; it must be 0 or 1, or -1 for the default",
                 given.messages);
  if (given.messages >= 0) config.messages = given.messages == 1;
  if (given.roundingSeed < -1) {
    return error(Code::InvalidArgument, "config.roundingSeed is %lld; it must be 0 or more, or -1 for the default",
                 static_cast<long long>(given.roundingSeed));
  }
  if (given.roundingSeed >= 0) config.rounding_seed = given.roundingSeed;
  if (given.blocking < -1 || given.blocking > 1)
    return error(Code::InvalidArgument, "config.blocking is %d; it must be 0 or 1, or -1 for the default",
                 given.blocking);
  if (given.blocking >= 0) config.blocking = given.blocking == 1;
  if (given.reserved2 != 0)
    return error(Code::InvalidArgument, "config.reserved2 is %d; it must be 0", given.reserved2);
  if (given.interruptedOften < 0 || given.interruptedOften > 1)
    return error(Code::InvalidArgument, "config.interruptedOften is %d; it must be 0 or 1", given.interruptedOften);
  if (given.reserved3 != 0)
    return error(Code::InvalidArgument, "config.reserved3 is %d; it must be 0", given.reserved3);
  if (given.determinism != nullptr) CCOM_TRY(config.set_determinism(given.determinism));
  if (given.wire != nullptr) CCOM_TRY(config.set_wire(given.wire));
  if (given.interrupted != nullptr) {
    config.interrupted_often = given.interruptedOften == 1;
    config.interrupted = [function = given.interrupted, user = given.interruptedUser] { return function(user) != 0; };
  }
  return config;
}

}  // namespace

Result<CommConfig> settings_of(const ccomConfig_t* of_caller, CommConfig config) {
  CCOM_TRY_ASSIGN(CommConfig settings, settings_over(of_caller, std::move(config)));
  CCOM_TRY(settings.check());
  return settings;
}

}  // namespace ccom
