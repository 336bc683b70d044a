// SPDX-License-Identifier: Apache-2.0
//
// Fabrics by name: generic shapes and files; presets are in presets.cc.
#include <cstdlib>

#include "base/files.h"
#include "topology/presets.h"
#include "topology/shapes.h"
#include "topology/sysfs_root.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr std::string_view kGenericNames = "single, ring:N, chain:N, torus:RxC, torus:LxRxC, full:N, switch:N";
constexpr std::string_view kRouted = "+routed";

// ---- generic shapes ----

Result<int> parse_count(std::string_view name, std::string_view digits) {
  const auto count = integer_from(digits);
  if (!count) return wrong_topology(name, "\"" + std::string(digits) + "\" is not a number");
  if (*count < 1 || *count > kMaxDevices) {
    return wrong_topology(name, "\"" + std::string(digits) + "\" is not from 1 to " + std::to_string(kMaxDevices));
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
    return wrong_topology(name, "no such shape; there are " + std::string(kGenericNames));
  }
  if (*shape == Fabric::Shape::Single) {
    if (colon != std::string_view::npos) return wrong_topology(name, "single takes no number");
    return make_shape("single", *shape, {}, kGenericLink);
  }
  const bool is_torus = *shape == Fabric::Shape::Torus;
  const std::string form = is_torus ? "torus:RxC or torus:LxRxC" : std::string(name_of(*shape)) + ":N";
  if (colon == std::string_view::npos) return wrong_topology(name, "the size is missing, write " + form);
  CCOM_TRY_ASSIGN(const std::vector<int> dims, parse_dims(name, name.substr(colon + 1)));
  if (is_torus ? dims.size() < 2 || dims.size() > 3 : dims.size() != 1) return wrong_topology(name, "write " + form);
  int64_t product = 1;
  for (const int dim : dims) product *= dim;
  const int devices = static_cast<int>(std::min<int64_t>(product, INT32_MAX));
  if (devices > kMaxDevices) {
    return wrong_topology(
        name, std::to_string(devices) + " devices, at most " + std::to_string(kMaxDevices) + " are possible");
  }
  if (const std::string what = wrong_with_dims(*shape, dims, devices); !what.empty()) return wrong_topology(name, what);
  return make_shape(std::string(name), *shape, dims, kGenericLink);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Result<Fabric> read_fabric_file(const std::string& path) {
  Result<std::string> text = read_file(path, kMaxTopologyBytes);
  if (!text) return error(ErrorKey::TopologyFile, "topology file: %s", text.error().message().c_str());
  Result<Fabric> fabric = fabric_from_json(*text);
  if (!fabric) return std::move(fabric).error().in("topology file " + path);
  return fabric;
}

}  // namespace

Result<Fabric> make_fabric(std::string_view name) {
  if (name.ends_with(kRouted)) {
    CCOM_TRY_ASSIGN(Fabric fabric, make_fabric(name.substr(0, name.size() - kRouted.size())));
    fabric.name = name;
    fabric.routed = true;
    return fabric;
  }
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) return read_fabric_file(std::string(name));
  if (is_preset(name)) return make_preset(name);
  const bool is_generic = name.find(':') != std::string_view::npos || shape_from(name).has_value();
  if (is_generic) return make_generic(name);
  return wrong_topology(name, "no such preset; there are " + joined(preset_names()) +
                                  "; or a shape: " + std::string(kGenericNames) + "; or the path of a JSON file");
}

}  // namespace ccom
