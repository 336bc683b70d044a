// SPDX-License-Identifier: Apache-2.0
//
// ccom-topo: prints the machine as ccom sees it, or a fabric, as text or JSON. Ends with 0, or with 3 and a line on
// stderr if the command line or the environment is wrong.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "base/options.h"
#include "topology/topology.h"

namespace {

constexpr int kConfigError = 3;

struct Request {
  std::string fabric;  // "" = the machine
  std::string root;
  bool is_json = false;
  bool is_list = false;
};

int fail(const ccom::Status& status) {
  std::fprintf(stderr, "ccom-topo: %s\n", status.message().c_str());
  if (!status.cure().empty()) std::fprintf(stderr, "%s\n", status.cure().c_str());
  return kConfigError;
}

template <typename T>
int print(const T& value, bool is_json) {
  std::fputs((is_json ? ccom::to_json(value) + "\n" : ccom::to_text(value)).c_str(), stdout);
  return 0;
}

// The machine with the environment's overrides, as a rank would report it.
ccom::Result<ccom::Host> look(const std::string& root) {
  CCOM_TRY_ASSIGN(ccom::Host host, ccom::discover(root, ccom::option("CCOM_HOSTID")));
  if (const std::string name = ccom::option("CCOM_TOPOLOGY"); !name.empty()) {
    CCOM_TRY_ASSIGN(host.imposed, ccom::make_fabric(name));
  }
  return host;
}

int run(const Request& request) {
  if (request.is_list) {
    for (const std::string& name : ccom::preset_names()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (!request.fabric.empty()) {
    const auto fabric = ccom::make_fabric(request.fabric);
    return fabric ? print(*fabric, request.is_json) : fail(fabric.error());
  }
  const auto host = look(request.root);
  return host ? print(*host, request.is_json) : fail(host.error());
}

}  // namespace

int main(int argc, char** argv) {
  Request request{.fabric = "", .root = ccom::option("CCOM_SYSFS_ROOT")};
  CLI::App app("Prints this machine, or the fabric that is named, as ccom sees it.", "ccom-topo");
  auto* fabric = app.add_option("fabric", request.fabric,
                                "A preset (see --list), single, ring:N, chain:N, torus:RxC, full:N, or a JSON file");
  auto* root = app.add_option("--root", request.root, "Read the machine from a recorded tree that holds sys and proc");
  app.add_flag("--json", request.is_json, "Print JSON on one line");
  auto* list = app.add_flag("--list", request.is_list, "List the presets");
  fabric->excludes(root);
  list->excludes(fabric)->excludes(root);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : kConfigError;
  }
  return run(request);
}
