// SPDX-License-Identifier: Apache-2.0
//
// What ccomExplain and ccomTopoExplain say, for programs and for people.
#pragma once

#include <ccom/ccom.h>

#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/launch/outcome.h"
#include "bench/options.h"

namespace ccom::bench {

struct Explanation {
  bool supported = true;  // false: no algorithm for this collective here, and `text` says why.
  std::string text;       // The JSON object.
};
// Local. Every rank gets the same.
launch::Outcome explain(ccomComm_t comm, const Case& what, Explanation* explanation);

// Prints what would be done in each case on options.topology, which need not be here. Starts no ranks.
launch::Outcome explain_offline(const Options& options);

// For people: candidates, cheapest first, then what wires carry. Ends with a line feed.
std::string explanation_table(const std::string& json);

// Names of the candidates that are legal. Empty if the text holds none.
std::vector<std::string> legal_algorithms(const std::string& json);
// Name of the choice; "-" if the text names none.
std::string chosen_algorithm(const std::string& json);

}  // namespace ccom::bench
