// SPDX-License-Identifier: Apache-2.0
//
// What describes machines: JSON of topologies and their parts, names of fabrics and clusters, what neuron-ls prints.
#include "tests/fuzz/target.h"
#include "topology/neuron_ls.h"
#include "topology/topology.h"

namespace ccom {
namespace {

using fuzz::require;
using fuzz::text_of;

// Accepted text gives a value whose own text gives the same value.
template <typename T>
void check_json(Result<T> (*from_json)(std::string_view), std::string_view text) {
  const Result<T> read = from_json(text);
  if (!read) return require(!read.error().message().empty());
  const std::string written = to_json(*read);
  const Result<T> again = from_json(written);
  require(again && to_json(*again) == written);
}

CCOM_FUZZ_TARGET(topology_json) {
  if (input.empty()) return;
  const std::string_view text = text_of(input.subspan(1));
  switch (static_cast<char>(input[0])) {
    case 't': return check_json(topology_from_json, text);
    case 'f': return check_json(fabric_from_json, text);
    case 'h': return check_json(host_from_json, text);
    case 'l': return check_json(locality_from_json, text);
    case 'c': return check_json(calibration_from_json, text);
    default: return;
  }
}

CCOM_FUZZ_TARGET(neuron_ls) {
  const std::string_view text = text_of(input);
  parse_neighbours(text);
  const std::optional<NeuronListing> listing = parse_neuron_ls(text);
  if (!listing) return;
  for (size_t i = 1; i < listing->devices.size(); ++i)
    require(listing->devices[i - 1].number < listing->devices[i].number);
}

// Large machines take long to make and are no fault; names of files are read as such.
CCOM_FUZZ_TARGET(topology_name) {
  constexpr size_t kMostDigits = 2;
  const std::string_view text = text_of(input.first(std::min<size_t>(input.size(), 64)));
  size_t digits = 0;
  for (const char c : text) digits = c >= '0' && c <= '9' ? digits + 1 : digits > kMostDigits ? digits : 0;
  if (digits > kMostDigits || text.find('/') != text.npos || text.find(".json") != text.npos) return;
  const Result<Fabric> fabric = make_fabric(text);
  if (!fabric) require(!fabric.error().message().empty());
  if (text.find('*') != text.npos) return;
  const Result<Topology> topology = make_topology(text);
  if (topology) require(topology->nranks() > 0);
}

}  // namespace
}  // namespace ccom
