// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/speeds.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/page.h"
#include "base/text.h"
#include "bench/cores.h"
#include "node/lines.h"
#include "node/own_memory.h"

namespace ccom {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kPatience(50);  // a rank's is shorter: others wait for it

LineCosts measure_pair(int from, int to) {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(page_bytes(), kLineProbe), &std::free);
  if (memory == nullptr) return {};
  auto* const bytes = static_cast<std::byte*>(memory.get());
  std::memset(bytes, 0, kLineProbe);
  std::jthread loads([&] {
    const bench::Pinned pinned({to});
    probe_lines(bytes, false, kPatience);
  });
  const bench::Pinned pinned({from});
  return probe_lines(bytes, true, kPatience).value_or(LineCosts());
}

}  // namespace

MachineSpeeds measure_speeds(size_t second_cache_bytes) {
  MachineSpeeds speeds;
  speeds.own = measure_own_costs(second_cache_bytes);
  const std::vector<int> cores = bench::usable_cores();
  for (size_t other = 1; other < cores.size(); ++other)
    speeds.pairs.push_back({cores[0], cores[other], measure_pair(cores[0], cores[other])});
  return speeds;
}

std::string to_text(const MachineSpeeds& speeds) {
  const OwnCosts& own = speeds.own;
  std::string text = "nanoseconds a byte, measured now; they differ from run to run on a virtual machine\n";
  text += "own memory, in the last cache: " + printed("loaded %.3f, stored %.3f, stored past the caches %.3f\n",
                                                      own.far_load_ns, own.far_store_ns, own.streamed_store_ns);
  if (own.read_call_ns > 0) {
    text += "copied from another process by the kernel: " +
            printed("%.3f, and %.0f ns a call\n", own.read_byte_ns, own.read_call_ns);
  } else {
    text += "copied from another process by the kernel: not allowed here\n";
  }
  if (speeds.pairs.empty()) text += "between cores: this process may use one core only\n";
  for (const CorePairCosts& pair : speeds.pairs) {
    text += printed("core %d to core %d: ", pair.from, pair.to);
    text += pair.lines == LineCosts() ? "not measured, the two were not running at the same time\n"
                                      : printed("%.3f, claimed %.3f, past the caches %.3f\n", pair.lines.plain_ns,
                                                pair.lines.claimed_ns, pair.lines.streamed_ns);
  }
  return text;
}

std::string to_json(const MachineSpeeds& speeds) {
  const auto& [own, pairs] = speeds;
  json object = {{"own_memory",
                  {{"far_load_ns", own.far_load_ns},
                   {"far_store_ns", own.far_store_ns},
                   {"streamed_store_ns", own.streamed_store_ns},
                   {"read_call_ns", own.read_call_ns},
                   {"read_byte_ns", own.read_byte_ns}}},
                 {"core_pairs", json::array()}};
  for (const CorePairCosts& pair : pairs) {
    object["core_pairs"].push_back({{"from", pair.from},
                                    {"to", pair.to},
                                    {"plain_ns", pair.lines.plain_ns},
                                    {"claimed_ns", pair.lines.claimed_ns},
                                    {"streamed_ns", pair.lines.streamed_ns}});
  }
  return object.dump();
}

}  // namespace ccom
