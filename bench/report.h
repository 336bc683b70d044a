// SPDX-License-Identifier: Apache-2.0
//
// The output of rank 0: a header, one line per row, a summary; and the rows as JSON, one object per line.
#pragma once

#include <ccom/ccom.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/launch/outcome.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/statistics.h"

namespace ccom::bench {

// "Intel(R) Xeon(R) ..."
std::string cpu_model();
int allowed_cores();

// Medians, in microseconds.
struct Overlap {
  double compute = 0;
  double both = 0;
  double hidden = 0;
};

struct RowResult {
  Case what;
  Times times;
  std::optional<Overlap> overlap;
  double algbw = 0;
  double busbw = 0;
  uint64_t wrong = 0;
  std::string algorithm;
};
RowResult row_result(const Case& what, Measurement measurement, std::string algorithm);

// No-ops on all ranks but 0.
class Report {
 public:
  Report(const Options& options, int rank) : options_(options), speaks_(rank == 0) {}

  launch::Outcome open();
  // Once, with the first measured communicator.
  void header(const ccomCommInfo_t& info);
  void row(const RowResult& result);
  // A row that is not possible: reported once per collective.
  void skipped(const Case& what, const std::string& reason);
  void explanation(const Case& what, const std::string& json);
  // bytes[from * ranks + to].
  void links(const std::vector<uint64_t>& bytes, int ranks);
  void foot(uint64_t wrong);
  // Whether all lines are in the JSON file.
  launch::Outcome close() const;
  // "12/64 allreduce ..." on a terminal, replaced by the next one; "" wipes it.
  void progress(const std::string& text);

 private:
  bool prints_table() const { return speaks_ && options_.json != "-"; }
  void json(const RowResult& result);

  const Options& options_;
  const bool speaks_;
  bool header_printed_ = false;
  bool progress_shown_ = false;
  ccomCommInfo_t info_ = CCOM_COMM_INFO_INIT;
  std::ofstream json_file_;
  size_t rows_ = 0;
  std::vector<Collective> skipped_;
  double busbw_sum_ = 0;
};

}  // namespace ccom::bench
