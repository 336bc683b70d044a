// SPDX-License-Identifier: Apache-2.0
//
// The output of ccomExplain and ccomTopoExplain, as JSON and as text.
#pragma once

#include <ccom/ccom.h>

#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/launch/outcome.h"
#include "bench/options.h"

namespace ccom::bench {

struct Explanation {
  bool supported = true;  // false: no algorithm for this collective; `text` is the reason.
  std::string text;       // The JSON object.
};
// Local. Equal on every rank.
launch::Outcome explain(ccomComm_t comm, const Case& what, Explanation* explanation);

// Prints the choice for each case on options.topology, which may be hypothetical. Starts no ranks.
launch::Outcome explain_offline(const Options& options);

// As text: candidates, cheapest first, then the load of the wires. Ends with a line feed.
std::string explanation_table(const std::string& json);

// Names of the valid candidates. Empty if the text contains none.
std::vector<std::string> legal_algorithms(const std::string& json);
// Name of the choice; "-" if the text contains none.
std::string chosen_algorithm(const std::string& json);

}  // namespace ccom::bench
