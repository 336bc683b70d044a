// SPDX-License-Identifier: Apache-2.0
//
// What ranks have waited for one another.
#include "base/log.h"
#include "base/options.h"
#include "comm/communicator.h"

namespace ccom {

std::vector<RankWaits> Communicator::known_waits() const {
  return links_->monitor().known_waits(static_cast<double>(monotonic_ns() - links_->begun_ns()) * 1e-9);
}

Result<WaitReport> Communicator::report_waits(CallSite site) {
  std::vector<WaitsOnWire> all(static_cast<size_t>(membership_.nranks));
  Turns::Ticket place = turns_.take();
  if (!wait_for_turn(place)) return leave(place);
  CCOM_TRY(in_turn(place, [&]() -> Status {
    if (is_finalized()) return refuse_finalized();
    const std::vector<RankWaits> known = known_waits();
    const auto own = std::ranges::find(known, membership_.rank, &RankWaits::rank);
    const WaitsOnWire mine = to_wire(own == known.end() ? RankWaits() : *own);
    Request gather = gathering(&mine, sizeof mine, all.data());
    gather.site = site;
    return run_in_turn(gather);
  }));
  std::vector<RankWaits> ranks;
  for (const WaitsOnWire& told : all) ranks.push_back(from_wire(told));
  return ccom::report_waits(std::move(ranks), membership_.nranks);
}

WaitReport Communicator::report_waits_of_host() const { return ccom::report_waits(known_waits(), membership_.nranks); }

// At the end of the communicator, for which ranks do not wait for one another: so of what the host's board says.
void Communicator::log_waits() const noexcept {
  try {
    if (membership_.rank != 0 || membership_.nranks == 1 || sequence() == 0 || option("CCOM_REPORT") != "1") return;
    const std::string text = text_of(report_waits_of_host());
    const std::string whose = config_.name.empty() ? "" : config_.name + ": ";
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      log_always(LogLevel::Info, whose + text.substr(begin, end - begin));
      begin = end + 1;
    }
  } catch (const std::exception&) {  // without memory there is no report
  }
}

// Of programs of one stage, which stays inside a host. The call has been made: nothing is noted without memory.
void Communicator::note_way(const BoundProgram& program) noexcept try {
  const std::vector<CompiledStage>& stages = program.compiled->stages;
  if (host_ == nullptr || stages.size() != 1 || stages[0].kind != CompiledStage::Kind::Host) return;
  recorder_->set_way(host_->last_way(*stages[0].task));
} catch (const std::bad_alloc&) {
}

}  // namespace ccom
