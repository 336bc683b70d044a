// SPDX-License-Identifier: Apache-2.0
//
// Networks of two levels: hosts in racks, whose uplinks carry a part of what the hosts' cards do, or lead far away.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/text.h"
#include "topology/shapes.h"
#include "topology/topology.h"

namespace ccom {

std::vector<int> Topology::rack_numbers() const {
  std::map<std::string_view, int> numbers;
  std::vector<int> racks;
  racks.reserve(hosts.size());
  for (const Host& host : hosts) {
    const auto next = static_cast<int>(numbers.size());
    racks.push_back(host.rack.name.empty() ? -1 : numbers.try_emplace(host.rack.name, next).first->second);
  }
  return racks;
}

// Of what a rack's hosts say the least counts.
std::vector<RackUplinks> Topology::rack_uplinks() const {
  std::vector<RackUplinks> uplinks;
  std::vector<double> tapers;
  const std::vector<int> racks = rack_numbers();
  for (size_t host = 0; host < racks.size(); ++host) {
    if (racks[host] < 0) continue;
    const auto rack = static_cast<size_t>(racks[host]);
    if (rack >= uplinks.size()) {
      uplinks.resize(rack + 1, {0, {kRackLatencyNs, 0}});
      tapers.resize(rack + 1, 1);
    }
    const Rack& said = hosts[host].rack;
    LinkSpeed& speed = uplinks[rack].speed;
    uplinks[rack].cards_bytes_per_second += host_bytes_per_second(static_cast<int>(host));
    tapers[rack] = std::max(tapers[rack], said.taper);
    if (!said.has_speed()) continue;
    const bool is_first = speed.bytes_per_second == 0;
    speed.latency_ns = is_first ? said.uplinks.latency_ns : std::max(speed.latency_ns, said.uplinks.latency_ns);
    speed.bytes_per_second =
        is_first ? said.uplinks.bytes_per_second : std::min(speed.bytes_per_second, said.uplinks.bytes_per_second);
  }
  for (size_t rack = 0; rack < uplinks.size(); ++rack) {
    double& bytes_per_second = uplinks[rack].speed.bytes_per_second;
    if (bytes_per_second == 0) bytes_per_second = uplinks[rack].cards_bytes_per_second / tapers[rack];
  }
  return uplinks;
}

double Topology::latency_between_racks_ns() const {
  double farthest = 0, next = 0;
  for (const RackUplinks& rack : rack_uplinks()) {
    next = std::max(next, std::min(farthest, rack.speed.latency_ns));
    farthest = std::max(farthest, rack.speed.latency_ns);
  }
  return next == 0 ? farthest : (farthest + next) / 2;
}

double Topology::bytes_between_racks() const {
  if (std::ranges::none_of(hosts, [](const Host& host) { return host.rack.has_speed(); })) return 0;
  double most = 0;
  for (const RackUplinks& rack : rack_uplinks()) most = std::max(most, rack.speed.bytes_per_second);
  return latency_between_racks_ns() * most * 1e-9;
}

double Topology::host_bytes_per_second(int host) const {
  const auto& imposed = hosts[static_cast<size_t>(host)].imposed;
  if (!imposed || imposed->uplinks.empty()) return network.bytes_per_second;
  double sum = 0;
  for (const Uplink& uplink : imposed->uplinks) sum += uplink.speed.bytes_per_second;
  return sum;
}

namespace {

// "25ms", "300us" -> nanoseconds; less than 0: not a time.
double nanoseconds_from(std::string_view text) {
  const double number = take_number(text).value_or(-1);
  const double factor = text == "ms" ? 1e6 : text == "us" ? 1e3 : -1;
  return number > 0 && number * factor <= kLongestRackLatencyNs ? number * factor : -1;
}

}  // namespace

double speed_from(std::string_view text) {
  const double number = take_number(text).value_or(0);
  if (!(number > 0) || !std::isfinite(number)) return 0;
  return text == "Gbit" ? number * 1e9 / 8 : text == "Mbit" ? number * 1e6 / 8 : 0;
}

std::optional<Rack> rack_speed_from(std::string_view text) {
  Rack rack;
  if (text.empty()) return rack;
  std::string_view speed = text.substr(1);
  if (text[0] == '/') {
    rack.taper = take_number(speed).value_or(0);
    if (speed.empty() && rack.taper >= 1 && rack.taper <= kMostTaper) return rack;
    return std::nullopt;
  }
  const size_t comma = speed.find(',');
  if (text[0] != '@' || comma == std::string_view::npos) return std::nullopt;
  rack.uplinks = {nanoseconds_from(speed.substr(comma + 1)), speed_from(speed.substr(0, comma))};
  if (rack.uplinks.latency_ns <= 0 || !rack.has_speed()) return std::nullopt;
  return rack;
}

// The name may have slashes.
Result<Rack> rack_from(std::string_view text) {
  constexpr const char* kCure =
      "write CCOM_HOST_RACK=NAME, NAME/TAPER or NAME@SPEED,LATENCY, as row3/4 or north@200Mbit,25ms";
  const size_t at = std::min(text.find('@') != std::string_view::npos ? text.find('@') : text.rfind('/'), text.size());
  const std::string whole(text);
  if (at == 0 || text.empty())
    return error(Code::ConfigError, "CCOM_HOST_RACK=%s names no rack", whole.c_str()).with_cure(kCure);
  std::optional<Rack> rack = rack_speed_from(text.substr(at));
  if (!rack && text[at] == '/') {
    return error(Code::ConfigError, "CCOM_HOST_RACK=%s: the taper behind the / is not from 1 to %.0f", whole.c_str(),
                 kMostTaper)
        .with_cure(kCure);
  }
  if (!rack) {
    return error(Code::ConfigError, "CCOM_HOST_RACK=%s: behind the @ is no speed and latency", whole.c_str())
        .with_cure(kCure);
  }
  rack->name = text.substr(0, at);
  return *std::move(rack);
}

}  // namespace ccom
