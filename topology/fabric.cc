// SPDX-License-Identifier: Apache-2.0
//
// Fabrics by name. Presets come from presets.json, which is compiled in; where a speed comes from is said beside it.
// All of them are model input taken from documentation, none was measured by us.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "topology/shapes.h"
#include "topology/topology.h"
#include "topology/tree.h"

namespace ccom {
namespace {

using nlohmann::json;

constexpr char kPresets[] =
#include "presets.inc"
    ;
constexpr std::string_view kGenericNames = "single, ring:N, chain:N, torus:RxC, full:N";
constexpr size_t kMaxFileBytes = size_t{64} << 20;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// What one device may put through the NVSwitch, both directions together: 600 GB/s on A100, 900 GB/s on H100 and H200
// (vendor figures; presets.json has none).
struct SwitchPort {
  std::string_view instance_type;
  double two_way_bytes_per_second;
};
constexpr std::array kSwitchPorts = {SwitchPort{"p4d.24xlarge", 600e9}, SwitchPort{"p5.48xlarge", 900e9},
                                     SwitchPort{"p5en.48xlarge", 900e9}};

Status wrong(std::string_view name, const std::string& what) {
  return error(Code::ConfigError, "topology \"%.*s\": %s", static_cast<int>(name.size()), name.data(), what.c_str());
}

// ---- generic shapes ----

Result<int> parse_count(std::string_view name, std::string_view digits) {
  const auto count = integer_from(digits);
  if (!count) return wrong(name, "\"" + std::string(digits) + "\" is not a number");
  if (*count < 1 || *count > kMaxDevices) {
    return wrong(name, "\"" + std::string(digits) + "\" is not from 1 to " + std::to_string(kMaxDevices));
  }
  return static_cast<int>(*count);
}

Result<std::vector<int>> parse_dims(std::string_view name, std::string_view text) {
  std::vector<int> dims;
  for (;;) {
    const size_t end = text.find('x');
    CCOM_TRY_ASSIGN(const int dim, parse_count(name, text.substr(0, end)));
    dims.push_back(dim);
    if (end == std::string_view::npos) return dims;
    text.remove_prefix(end + 1);
  }
}

Result<Fabric> make_generic(std::string_view name) {
  const size_t colon = name.find(':');
  const auto shape = shape_from(name.substr(0, colon));
  if (!shape || *shape == Fabric::Shape::Other) {
    return wrong(name, "no such shape; there are " + std::string(kGenericNames));
  }
  if (*shape == Fabric::Shape::Single) {
    if (colon != std::string_view::npos) return wrong(name, "single takes no number");
    return make_shape("single", *shape, {}, kGenericLink);
  }
  const bool is_torus = *shape == Fabric::Shape::Torus;
  const std::string form = std::string(name_of(*shape)) + (is_torus ? ":RxC" : ":N");
  if (colon == std::string_view::npos) return wrong(name, "the size is missing, write " + form);
  CCOM_TRY_ASSIGN(const std::vector<int> dims, parse_dims(name, name.substr(colon + 1)));
  if (dims.size() != (is_torus ? 2u : 1u)) return wrong(name, "write " + form);
  const int devices = is_torus ? dims[0] * dims[1] : dims[0];
  if (devices > kMaxDevices) {
    return wrong(name, std::to_string(devices) + " devices, at most " + std::to_string(kMaxDevices) + " are possible");
  }
  if (const std::string what = wrong_with_dims(*shape, dims, devices); !what.empty()) return wrong(name, what);
  return make_shape(std::string(name), *shape, dims, kGenericLink);
}

// ---- presets ----

bool is_machine(const json& entry) { return entry.is_object() && (entry.contains("chips") || entry.contains("like")); }
bool is_several_hosts(const json& entry) { return entry.is_object() && entry.contains("nodes"); }

// The entry with everything that it takes from others by "like".
json resolve(const json& presets, const std::string& name, int depth = 0) {
  CCOM_ASSERT(depth < 8);
  const json& entry = presets.at(name);
  if (!entry.contains("like")) return entry;
  json whole = resolve(presets, entry.at("like").get<std::string>(), depth + 1);
  whole.update(entry);
  whole.erase("like");
  return whole;
}

// Speed of one link in one direction. A two-way figure is halved. A switch gives every pair of devices a link, whose
// speed is its share of the device's port when all pairs talk at once: so the links of a device add up to what its port
// carries.
LinkSpeed link_speed(const std::string& name, const json& preset, int devices) {
  LinkSpeed speed = kGenericLink;
  if (preset.contains("link_gibs_two_way")) {
    speed.bytes_per_second = preset.at("link_gibs_two_way").get<double>() * kGib / 2;
  } else if (preset.contains("link_gbs_one_way")) {
    speed.bytes_per_second = preset.at("link_gbs_one_way").get<double>() * 1e9;
  } else if (const auto port = std::ranges::find(kSwitchPorts, name, &SwitchPort::instance_type);
             port != kSwitchPorts.end()) {
    speed.bytes_per_second = port->two_way_bytes_per_second / 2 / (devices - 1);
  }
  return speed;
}

Fabric fabric_of(const std::string& name, const json& preset) {
  const int devices = preset.at("chips").get<int>();
  const std::string text = preset.value("shape", "single");
  const LinkSpeed speed = link_speed(name, preset, devices);
  Fabric fabric;
  if (text == "single") {
    fabric = make_shape(name, Fabric::Shape::Single, {}, speed);
  } else if (text == "switch") {
    fabric = make_shape(name, Fabric::Shape::Full, {devices}, speed);
  } else if (text == "torus4x4") {
    fabric = make_shape(name, Fabric::Shape::Torus, {4, 4}, speed);
  } else {  // ring12, chain6
    const std::string kind = text.substr(0, text.find_first_of("0123456789"));
    const auto shape = shape_from(kind);
    CCOM_ASSERT(shape == Fabric::Shape::Ring || shape == Fabric::Shape::Chain);
    fabric = make_shape(name, *shape, {std::atoi(text.c_str() + kind.size())}, speed);
  }
  CCOM_ASSERT(fabric.devices == devices);
  fabric.cores_per_device = preset.value("cores", 1) / preset.value("lnc", 1);
  return fabric;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Result<Fabric> make_preset(std::string_view name) {
  const json presets = json::parse(kPresets);
  const auto entry = presets.find(std::string(name));
  if (entry != presets.end() && is_several_hosts(*entry)) {
    return wrong(name, "joins " + std::to_string(entry->at("nodes").get<int>()) +
                           " hosts, but a fabric spans one host; impose the fabric of one of them");
  }
  if (entry == presets.end() || !is_machine(*entry)) {
    return wrong(name, "no such preset; there are " + joined(preset_names()) +
                           "; or a shape: " + std::string(kGenericNames) + "; or the path of a JSON file");
  }
  return fabric_of(std::string(name), resolve(presets, std::string(name)));
}

Result<Fabric> read_fabric_file(const std::string& path) {
  Result<std::string> text = read_file(path, kMaxFileBytes + 1);
  if (!text) return error(Code::ConfigError, "topology file: %s", text.error().message().c_str());
  if (text->size() > kMaxFileBytes) return error(Code::ConfigError, "topology file %s: over 64 MiB", path.c_str());
  Result<Fabric> fabric = fabric_from_json(*text);
  if (!fabric) return std::move(fabric).error().in("topology file " + path);
  return fabric;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  const json presets = json::parse(kPresets);
  for (const auto& [name, entry] : presets.items()) {
    if (is_machine(entry) && !is_several_hosts(entry)) names.push_back(name);
  }
  return names;
}

Result<Fabric> make_fabric(std::string_view name) {
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) return read_fabric_file(std::string(name));
  const bool is_generic = name.find(':') != std::string_view::npos || shape_from(name).has_value();
  return is_generic ? make_generic(name) : make_preset(name);
}

}  // namespace ccom
