// SPDX-License-Identifier: Apache-2.0
//
// File and line of a place in a program, from its debug information.
//
// libdw of elfutils reads it, opened when first needed: without it, or without debug information in the file itself,
// places stay what they are. Takes milliseconds, once per file; so it is for those who read a board, never for calls.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace ccom {

// "step.c:88 (step)" for "/path/program+0x1234 step"; "program+0x1234 (step)" if nothing more is known, or is to be
// read from files; the text itself if it is none of a return address. What call_elsewhere() says keeps its beginning,
// "in allreduce #2 of communicator f4ab04 at". Results are kept. Thread-safe.
std::string with_source_line(std::string_view site, bool reads_files = true);

// The same for the ranks of a job. Those of other hosts may name any program: files are read of such as ranks here run.
class SourceLines {
 public:
  explicit SourceLines(bool reads_files) : reads_files_(reads_files) {}
  std::string of_this_host(std::string_view site);
  // After those of this host.
  std::string of_another_host(std::string_view site) const;

 private:
  const bool reads_files_;
  std::set<std::string> programs_{};  // paths
};

}  // namespace ccom
