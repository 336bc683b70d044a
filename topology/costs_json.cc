// SPDX-License-Identifier: Apache-2.0
#include "topology/costs_json.h"

#include <cstddef>
#include <iterator>

namespace ccom {
namespace {

template <typename Costs>
struct Field {
  const char* name;
  double Costs::*member;
};

constexpr Field<MemoryCosts> kMemoryFields[] = {
    {"line_ns", &MemoryCosts::line_ns},
    {"further_line_ns", &MemoryCosts::further_line_ns},
    {"remote_line_ns", &MemoryCosts::remote_line_ns},
    {"remote_further_line_ns", &MemoryCosts::remote_further_line_ns},
    {"domain_line_ns", &MemoryCosts::domain_line_ns},
    {"reader_ns", &MemoryCosts::reader_ns},
    {"barrier_ns", &MemoryCosts::barrier_ns},
    {"call_ns", &MemoryCosts::call_ns},
    {"switch_ns", &MemoryCosts::switch_ns},
    {"cached_load_ns", &MemoryCosts::cached_load_ns},
    {"cached_store_ns", &MemoryCosts::cached_store_ns},
    {"far_load_ns", &MemoryCosts::far_load_ns},
    {"far_store_ns", &MemoryCosts::far_store_ns},
    {"memory_load_ns", &MemoryCosts::memory_load_ns},
    {"memory_store_ns", &MemoryCosts::memory_store_ns},
    {"streamed_store_ns", &MemoryCosts::streamed_store_ns},
    {"shared_load_ns", &MemoryCosts::shared_load_ns},
    {"shared_store_ns", &MemoryCosts::shared_store_ns},
    {"long_shared_load_ns", &MemoryCosts::long_shared_load_ns},
    {"long_shared_store_ns", &MemoryCosts::long_shared_store_ns},
    {"remote_factor", &MemoryCosts::remote_factor},
    {"reduced_byte_ns", &MemoryCosts::reduced_byte_ns},
    {"read_call_ns", &MemoryCosts::read_call_ns},
    {"read_byte_ns", &MemoryCosts::read_byte_ns},
    {"read_contention", &MemoryCosts::read_contention},
    {"domain_byte_ns", &MemoryCosts::domain_byte_ns},
    {"domain_remote_byte_ns", &MemoryCosts::domain_remote_byte_ns},
};
static_assert(sizeof(MemoryCosts) == std::size(kMemoryFields) * sizeof(double), "a member without a name");

constexpr Field<NetworkCosts> kNetworkFields[] = {
    {"message_ns", &NetworkCosts::message_ns},
    {"flow_byte_ns", &NetworkCosts::flow_byte_ns},
};
static_assert(sizeof(NetworkCosts) == std::size(kNetworkFields) * sizeof(double), "a member without a name");

constexpr Field<LineCosts> kLineFields[] = {
    {"plain_ns", &LineCosts::plain_ns},
    {"claimed_ns", &LineCosts::claimed_ns},
    {"streamed_ns", &LineCosts::streamed_ns},
};
static_assert(sizeof(LineCosts) == std::size(kLineFields) * sizeof(double), "a member without a name");

constexpr Field<OwnCosts> kOwnFields[] = {
    {"far_load_ns", &OwnCosts::far_load_ns},
    {"far_store_ns", &OwnCosts::far_store_ns},
    {"streamed_store_ns", &OwnCosts::streamed_store_ns},
    {"read_call_ns", &OwnCosts::read_call_ns},
    {"read_byte_ns", &OwnCosts::read_byte_ns},
};
static_assert(sizeof(OwnCosts) == std::size(kOwnFields) * sizeof(double), "a member without a name");

constexpr double kMaxCostNs = 1e9;

template <typename Costs, size_t kCount>
std::string text_of(const Costs& costs, const Field<Costs> (&fields)[kCount]) {
  JsonObjectText object;
  for (const auto& field : fields) {
    if (costs.*field.member != Costs().*field.member) object.add(field.name, costs.*field.member);
  }
  return object.text();
}

template <typename Costs, size_t kCount>
Costs read(const JsonAt& at, const Field<Costs> (&fields)[kCount]) {
  JsonObject object(at);
  Costs costs;
  for (const auto& field : fields) {
    if (object.has(field.name)) costs.*field.member = object.at(field.name).number(0, kMaxCostNs);
  }
  object.finish();
  return costs;
}

}  // namespace

std::string json_text(const MemoryCosts& costs) { return text_of(costs, kMemoryFields); }
std::string json_text(const NetworkCosts& costs) { return text_of(costs, kNetworkFields); }
std::string json_text(const OwnCosts& costs) { return text_of(costs, kOwnFields); }
MemoryCosts read_memory_costs(const JsonAt& at) { return read(at, kMemoryFields); }
NetworkCosts read_network_costs(const JsonAt& at) { return read(at, kNetworkFields); }
OwnCosts read_own_costs(const JsonAt& at) { return read(at, kOwnFields); }

MeasuredCosts read_measured_costs(const JsonAt& at) {
  JsonObject object(at);
  MeasuredCosts costs;
  if (object.has("lines")) costs.lines = read(object.at("lines"), kLineFields);
  if (object.has("own_memory")) costs.own = read_own_costs(object.at("own_memory"));
  object.finish();
  return costs;
}

std::string to_json(const MeasuredCosts& costs) {
  JsonObjectText object;
  if (costs.lines != LineCosts()) object.add_text("lines", text_of(costs.lines, kLineFields));
  if (costs.own != OwnCosts()) object.add_text("own_memory", json_text(costs.own));
  return object.text();
}

}  // namespace ccom
