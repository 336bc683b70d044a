// SPDX-License-Identifier: Apache-2.0
//
// A choice as text. The JSON is written by hand, but for its strings: names of users' topologies and plans are among
// them.
#include "base/call.h"
#include "base/json_text.h"
#include "base/text.h"
#include "plan/print.h"
#include "planner/link_loads.h"
#include "planner/planner.h"

namespace ccom {
namespace {

void append_bound(std::string& text, const Bound& bound) {
  text += printed(",\"bound\":{\"time_us\":%.3f,\"bandwidth_us\":%.3f,\"latency_us\":%.3f,\"narrowest\":\"%s\"}",
                  bound.time_ns() / 1e3, bound.bandwidth_ns / 1e3, bound.latency_ns / 1e3, bound.narrowest);
}

void append_account(std::string& text, const LinkLoadReport& account) {
  if (!account.missing.empty()) {
    text += ",\"links_note\":" + json_text(account.missing);
    return;
  }
  if (!account.note.empty()) text += ",\"links_note\":" + json_text(account.note);
  text += printed(",\"rounds\":%zu,\"messages\":%llu,\"links\":[", account.rounds,
                  static_cast<unsigned long long>(account.messages));
  for (const WireKind& kind : account.kinds) {
    text += std::string(&kind == &account.kinds.front() ? "" : ",") + "{\"kind\":" + json_text(kind.name);
    text += printed(",\"there\":%u,\"used\":%u,\"bytes\":%.0f,\"most\":%.0f}", kind.wires, kind.used, kind.bytes,
                    kind.most);
  }
  text += "]";
  if (account.busiest.empty()) return;
  text += ",\"busiest\":{\"name\":" + json_text(account.busiest);
  text += printed(",\"bytes\":%.0f,\"time_us\":%.3f}", account.busiest_bytes, account.busiest_ns / 1e3);
}

// What the chosen program does, stage by stage.
void append_stages(std::string& text, const Program& program) {
  text += ",\"stages\":[";
  for (const Stage& stage : program.stages) {
    text += (&stage == program.stages.data() ? "" : ",") + json_text(to_text(stage));
  }
  text += printed("],\"tile_bytes\":%zu", program.tile_bytes);
}

// How far above the bound, and why it was chosen or not.
void append_verdict(std::string& text, const Candidate& candidate, const Details& details, size_t index) {
  if (candidate.legal && details.bound.time_ns() > 0) {
    text += printed(",\"times_bound\":%.3f", candidate.time_ns / details.bound.time_ns());
  }
  text += ",\"why\":" + json_text(details.why[index]);
}

}  // namespace

std::string explain_json(const Question& question, const Choice& choice, const Details* details,
                         const std::string& more) {
  std::string text = "{\"collective\":\"" + call_name(question.collective, question.is_v) + "\"";
  text += printed(",\"bytes\":%zu", question.bytes);
  text += ",\"algorithm\":" + json_text(choice.program().algorithm) + ",\"reason\":" + json_text(choice.reason);
  if (question.order != SumOrder::Any) {
    text += printed(",\"order\":\"%s\"", question.order == SumOrder::Canonical ? "canonical" : "ranks");
  }
  if (question.rounds_once) text += ",\"rounds_once\":true";
  if (question.wire != UnitType::Call) text += ",\"wire\":\"" + std::string(name_of(question.wire)) + "\"";
  append_stages(text, choice.program());
  if (details != nullptr) {
    text += printed(",\"ranks\":%d", details->ranks);
    append_bound(text, details->bound);
    append_account(text, details->chosen);
  }
  text += ",\"candidates\":[";
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const Candidate& candidate = choice.candidates[i];
    text += (i == 0 ? "{\"algorithm\":" : ",{\"algorithm\":") + json_text(candidate.program.algorithm);
    text += printed(",\"legal\":%s,\"steps\":%.0f,\"bytes_sent\":%.0f,\"time_us\":%.3f,\"roundings\":%d",
                    candidate.legal ? "true" : "false", candidate.steps, candidate.bytes, candidate.time_ns / 1e3,
                    candidate.roundings);
    text += ",\"note\":" + json_text(details != nullptr ? details->notes[i] : candidate.note);
    if (details != nullptr) append_verdict(text, candidate, *details, i);
    text += "}";
  }
  return text + "]" + more + "}";
}

}  // namespace ccom
