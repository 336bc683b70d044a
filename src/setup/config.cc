// SPDX-License-Identifier: Apache-2.0
#include "setup/config.h"

#include <sys/auxv.h>

#include <charconv>
#include <limits>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "base/time.h"
#include "base/variable_names.h"
#include "bootstrap/interface_filter.h"
#include "bootstrap/url.h"

namespace ccom {
namespace {

// A microsecond becomes 1000 seconds. Not below, so that times stay within 64 bits.
constexpr double kLeastScale = 1e-9;

std::string exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// By the XDG Base Directory Specification; empty if the environment names none, or belongs to who started a program
// that has become another user.
std::string user_cache(const EnvironmentLookup& environment) {
  const auto folder = [&](const char* name) {
    const char* const value = environment(name);
    return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
  };
  if (::getauxval(AT_SECURE) != 0) return "";
  if (const std::string cache = folder("XDG_CACHE_HOME"); !cache.empty()) return cache + "/ccom/ways";
  const std::string home = folder("HOME");
  return home.empty() ? "" : home + "/.cache/ccom/ways";
}

std::string name_of_wire(UnitType type) { return type == UnitType::Call ? "off" : std::string(name_of(type)); }

}  // namespace

Result<CommConfig> CommConfig::from_environment() {
  constexpr int64_t kMostMs = Deadline::kMostMs;
  take_number_of_stderr();
  warn_of_unknown_variables();
  CCOM_TRY(check_log_settings());
  CommConfig config;
  CCOM_TRY_ASSIGN(config.timeout_ms, integer_option("CCOM_TIMEOUT_MS", 1, kMostMs));
  CCOM_TRY_ASSIGN(config.init_timeout_ms, integer_option("CCOM_INIT_TIMEOUT_MS", 1, kMostMs));
  CCOM_TRY_ASSIGN(config.max_memory, integer_option("CCOM_MAX_MEMORY", int64_t{1} << 20, int64_t{1} << 46));
  CCOM_TRY_ASSIGN(config.dead_ms, integer_option("CCOM_DEAD_MS", 100, kMostMs));
  CCOM_TRY_ASSIGN(config.warn_ms, integer_option("CCOM_WARN_MS", 0, kMostMs));
  CCOM_TRY_ASSIGN(const int64_t crc, integer_option("CCOM_CRC", 0, 1));
  if (option("CCOM_TCP_STREAMS") != "auto") {
    CCOM_TRY_ASSIGN(const int64_t streams, integer_option("CCOM_TCP_STREAMS", 1, 16));
    config.tcp_streams = static_cast<int>(streams);
  }
  CCOM_TRY_ASSIGN(const int64_t messages, integer_option("CCOM_MESSAGES", 0, 1));
  CCOM_TRY_ASSIGN(const int64_t tls, integer_option("CCOM_TLS", 0, 1));
  CCOM_TRY_ASSIGN(const int64_t verify, integer_option("CCOM_VERIFY", 0, 1));
  CCOM_TRY_ASSIGN(const int64_t witness, integer_option("CCOM_WITNESS", 0, 1));
  CCOM_TRY(config.set_connect(option("CCOM_CONNECT")));
  config.crc = crc != 0;
  config.tls = tls != 0;
  config.verify = verify != 0;
  config.witness = witness != 0;
  config.messages = messages != 0;
  CCOM_TRY_ASSIGN(config.ports, parse_port_range(option("CCOM_PORT_RANGE")));
  config.algorithm = option("CCOM_ALGO");
  config.topology = option("CCOM_TOPOLOGY");
  config.plan = option("CCOM_PLAN");
  config.set_tuning(option("CCOM_TUNING"));
  CCOM_TRY(config.set_emulate_scale(option("CCOM_EMULATE_SCALE")));
  config.set_tuning_save(option("CCOM_TUNING_SAVE"), user_cache(process_environment));
  CCOM_TRY_ASSIGN(const InterfaceFilter interfaces, read_interface_filter(process_environment, list_interfaces()));
  config.ifname = interfaces.text;
  if (interfaces.origin != "CCOM_SOCKET_IFNAME" && !interfaces.origin.empty()) {
    log(LogLevel::Info, "interfaces %s, from %s", interfaces.text.c_str(), interfaces.origin.c_str());
  }
  config.host_rack = option("CCOM_HOST_RACK");
  config.host_id = option("CCOM_HOSTID");
  config.tcp_rails = option("CCOM_TCP_RAILS");
  config.ofi_provider = option("CCOM_OFI_PROVIDER");
  std::istringstream rails(option("CCOM_OFI_RAILS"));
  for (std::string rail; std::getline(rails, rail, ',');) config.ofi_rails.push_back(rail);
  config.sysfs_root = option("CCOM_SYSFS_ROOT");
  config.neuron = neuron_hints(process_environment);
  config.neuron.tool = option("CCOM_NEURON_LS");
  CCOM_TRY_ASSIGN(config.metrics, parse_metrics_target(option("CCOM_METRICS")));
  CCOM_TRY(config.set_transports(option("CCOM_TRANSPORT")));
  CCOM_TRY(config.set_crossing(option("CCOM_CROSSING")));
  CCOM_TRY(config.set_determinism(option("CCOM_DETERMINISM")));
  CCOM_TRY(config.set_rounding(option("CCOM_ROUNDING")));
  CCOM_TRY(config.set_wire(option("CCOM_WIRE")));
  CCOM_TRY_ASSIGN(config.rounding_seed, integer_option("CCOM_ROUNDING_SEED", 0, std::numeric_limits<int64_t>::max()));
  return config;
}

Status CommConfig::set_transports(const std::string& list) {
  transports.clear();
  std::istringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');) {
    if (item != "shm" && item != "tcp" && item != "ofi") {
      return error(ErrorKey::VariableValue, "CCOM_TRANSPORT=%s: '%s' is unknown; there are shm, tcp and ofi",
                   list.c_str(), item.c_str());
    }
    transports.push_back(item);
  }
  return {};
}

Status CommConfig::set_crossing(const std::string& kind) {
  if (kind != "auto" && kind != "one" && kind != "all") {
    return error(ErrorKey::VariableValue, "CCOM_CROSSING=%s: there are auto, one and all", kind.c_str());
  }
  crossing = kind == "one" ? InterHostMode::One : kind == "all" ? InterHostMode::All : InterHostMode::Auto;
  return {};
}

Status CommConfig::set_connect(const std::string& kind) {
  if (kind != "auto" && kind != "start" && kind != "use") {
    return error(ErrorKey::VariableValue, "CCOM_CONNECT=%s: there are auto, start and use", kind.c_str());
  }
  connect = kind == "start" ? Connect::Start : kind == "use" ? Connect::Use : Connect::Auto;
  return {};
}

Status CommConfig::set_emulate_scale(const std::string& number) {
  emulate_scale = 0;
  if (number.empty()) return {};
  const char* const last = number.data() + number.size();
  const auto [end, failure] = std::from_chars(number.data(), last, emulate_scale);
  if (failure == std::errc() && end == last && emulate_scale >= kLeastScale && emulate_scale <= 1) return {};
  return error(ErrorKey::VariableValue, "CCOM_EMULATE_SCALE=%s: expected a number from %g to 1, e.g. 1e-3",
               number.c_str(), kLeastScale);
}

Status CommConfig::set_rounding(const std::string& kind) {
  if (kind != "nearest" && kind != "once" && kind != "stochastic") {
    return error(Code::ConfigError, "rounding '%s' is unknown; there are nearest, once and stochastic", kind.c_str());
  }
  rounding = kind == "stochastic" ? Rounding::Stochastic : Rounding::NearestEven;
  rounds_once = kind != "nearest";
  return {};
}

Status CommConfig::set_determinism(const std::string& kind) {
  if (kind != "shape" && kind != "full") {
    return error(ErrorKey::VariableValue, "determinism '%s' is unknown; there are shape and full", kind.c_str())
        .with_cure("correct or unset CCOM_DETERMINISM, or ccomConfig_t.determinism");
  }
  determinism = kind == "full" ? Determinism::Full : Determinism::Shape;
  return {};
}

Status CommConfig::set_wire(const std::string& kind) {
  for (const UnitType type : {UnitType::Call, UnitType::Float8Blocks, UnitType::Int8Blocks}) {
    if (kind != name_of_wire(type)) continue;
    wire = type;
    return {};
  }
  return error(ErrorKey::VariableValue, "wire '%s' is unknown; there are off, fp8 and int8", kind.c_str())
      .with_cure("correct or unset CCOM_WIRE, or ccomConfig_t.wire");
}

// Sums that cross as blocks depend on where the ranks are, and are rounded twice.
Status CommConfig::check() const {
  if (wire == UnitType::Call || (determinism == Determinism::Shape && !rounds_once)) return {};
  const bool is_full = determinism == Determinism::Full;
  return error(Code::InvalidArgument, "wire=%s contradicts %s, which promises sums of full precision",
               name_of_wire(wire).c_str(),
               is_full                            ? "determinism=full"
               : rounding == Rounding::Stochastic ? "rounding=stochastic"
                                                  : "rounding=once")
      .with_cure("leave CCOM_WIRE (ccomConfig_t.wire) off, or the other setting at its default");
}

void CommConfig::set_tuning(const std::string& text) {
  tries_ways = text != "off";
  tuning = text == "off" || text == "auto" ? "" : text;
}

// Times under an imposed speed are no guide for others.
void CommConfig::set_tuning_save(const std::string& text, const std::string& cache) {
  tuning_save = text == "off" || text == "auto" ? "" : text;
  ways_cache = text == "auto" && tries_ways && tuning.empty() && emulate_scale == 0 ? cache : "";
}

std::string CommConfig::fingerprint() const {
  std::string list;
  for (const std::string& transport : transports) list += (list.empty() ? "" : ",") + transport;
  constexpr const char* kCrossings[] = {"auto", "one", "all"};
  constexpr const char* kConnects[] = {"auto", "start", "use"};
  const bool is_stochastic = rounding == Rounding::Stochastic;
  const std::pair<const char*, std::string> settings[] = {
      {"CCOM_TRANSPORT", list},
      {"CCOM_ALGO", algorithm},
      {"CCOM_TOPOLOGY", topology},
      {"CCOM_EMULATE_SCALE", exact(emulate_scale)},
      {"CCOM_TCP_STREAMS", std::to_string(tcp_streams)},
      {"CCOM_CONNECT", kConnects[static_cast<int>(connect)]},
      {"CCOM_CRC", std::to_string(crc)},
      {"CCOM_CROSSING", kCrossings[static_cast<int>(crossing)]},
      {"CCOM_TLS", std::to_string(tls)},
      {"CCOM_OFI_PROVIDER", ofi_provider},
      {"CCOM_MAX_MEMORY", std::to_string(max_memory)},
      {"CCOM_MESSAGES", std::to_string(messages)},
      {"CCOM_TUNING", tries_ways ? "auto" : "off"},
      {"CCOM_DETERMINISM", determinism == Determinism::Full ? "full" : "shape"},
      {"CCOM_ROUNDING", is_stochastic ? "stochastic"
                        : rounds_once ? "once"
                                      : "nearest"},
      {"CCOM_WIRE", name_of_wire(wire)},
      {"CCOM_WITNESS", std::to_string(witness)},
      {"CCOM_ROUNDING_SEED", is_stochastic ? std::to_string(rounding_seed) : ""},
  };
  std::string text;
  for (const auto& [variable, value] : settings) text += std::string(variable) + "=" + value + "\n";
  return text;
}

std::string difference_of_settings(const std::string& theirs, const std::string& first) {
  std::istringstream one(theirs), other(first);
  std::string text, a, b;
  while (std::getline(one, a) && std::getline(other, b)) {
    if (a == b) continue;
    const auto value = [](const std::string& line) {
      const size_t begin = line.find('=') + 1;
      return begin == line.size() ? std::string("unset") : line.substr(begin);
    };
    text += (text.empty() ? "" : ", ") + a.substr(0, a.find('=')) + " (" + value(a) + " against " + value(b) + ")";
  }
  return text;
}

}  // namespace ccom
