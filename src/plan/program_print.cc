// SPDX-License-Identifier: Apache-2.0
#include "plan/print.h"

namespace ccom {
namespace {

std::string name_of(Stage::Where where) {
  switch (where) {
    case Stage::Where::Host: return "host";
    case Stage::Where::Across: return "across";
    case Stage::Where::All: return "all";
  }
  return "?";
}

// "0 1 2 @ in[0..2]": blocks, and where they lie, by runs.
std::string list_text(const std::vector<BlockAt>& list) {
  constexpr size_t kShown = 16;
  static constexpr const char* kNames[] = {"in", "out", "tmp"};
  std::string text;
  for (size_t i = 0; i < list.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : " ") + std::to_string(list[i].block) + "@" + kNames[static_cast<int>(list[i].buffer)] + "[" +
            std::to_string(list[i].index) + "]";
  }
  if (list.size() > kShown) text += " ... " + std::to_string(list.size()) + " blocks";
  return text.empty() ? "nothing" : text;
}

// ", float32 to fp8", ", fp8"; nothing for the call's type.
std::string types_text(const Stage& stage) {
  const std::string gives(name_of(stage.gives_type)), gets(name_of(stage.gets_type));
  if (stage.gives_type != stage.gets_type) return ", " + gives + " to " + gets;
  return stage.gives_type == UnitType::Call ? "" : ", " + gives;
}

std::string shape_text(const NodeShape& shape) { return std::string(name_of(shape.scheme)).substr(5); }

}  // namespace

std::string to_text(const NodeChoice& node) {
  std::string text = shape_text(node.staged);
  if (node.asks && node.readable.scheme != node.staged.scheme) text += ", readable " + shape_text(node.readable);
  if (node.asks && node.mapped.scheme != node.staged.scheme) text += ", mapped " + shape_text(node.mapped);
  if (node.reads) text += ", kernel reads";
  if (node.streams) text += ", streamed";
  if (node.claims_lines) text += ", lines claimed by their readers";
  if (node.streams_shared) text += ", shared past the caches";
  if (node.stages_mapped) text += ", mapped as ordinary";
  if (node.tile_bytes != SIZE_MAX) text += ", tiles of " + std::to_string(node.tile_bytes) + " bytes";
  return text;
}

std::string to_text(const NodeChoice& node, const Reach& reach) {
  return to_text(node) + (reach.output ? "; mapped" : reach.input ? "; readable" : "; private");
}

std::string to_text(const Part& part) {
  static constexpr const char* kKinds[] = {"run", "start", "finish"};
  return std::string(kKinds[static_cast<int>(part.kind)]) + " tile " + std::to_string(part.tile) + " stage " +
         std::to_string(part.stage);
}

std::string to_text(const Stage& stage) {
  return name_of(stage.where) + " " + std::string(name_of(stage.collective)) + " (" +
         (stage.where == Stage::Where::Host ? to_text(stage.node) : stage.messages.name) + ")" + types_text(stage) +
         (stage.sums ? ", sums" : "") + (stage.completes ? ", completes" : "");
}

std::string to_text(const Program& program) {
  std::string text =
      std::string(name_of(program.collective)) + " " + program.algorithm + " of " + std::to_string(program.nranks);
  if (program.root >= 0) text += ", root " + std::to_string(program.root);
  text += ": " + std::to_string(program.slices) + (program.slices == 1 ? " slice" : " slices");
  if (program.tile_bytes > 0) text += ", tiles of " + std::to_string(program.tile_bytes) + " bytes";
  text += ", " + std::to_string(program.lanes) + (program.lanes == 1 ? " lane, " : " lanes, ") +
          std::to_string(program.scratch_slots) + " scratch\n";
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage& stage = program.stages[s];
    text += "stage " + std::to_string(s) + " " + to_text(stage) + "\n";
    for (const std::vector<StageMember>& group : stage.groups) {
      text += "  group\n";
      for (const StageMember& member : group) {
        text += "    rank " + std::to_string(member.rank) + " gives " + list_text(program.gives(member)) + "; gets " +
                list_text(program.gets(member)) + "\n";
      }
    }
  }
  return text;
}

}  // namespace ccom
