// SPDX-License-Identifier: Apache-2.0
#include "bench/command_line/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

namespace ccom {
namespace {

constexpr int kUsage = 3;

template <class T>
CommandLine::Option add(CLI::App& app, const std::string& names, T& value, const std::string& help) {
  return CommandLine::Option(app.add_option(names, value, help));
}

template <class T>
CommandLine::Option add(CLI::App& app, const std::string& names, std::vector<T>& values, const std::string& help) {
  return CommandLine::Option(app.add_option(names, values, help)->delimiter(','));
}

}  // namespace

using Option = CommandLine::Option;

const Option& Option::range(int low, int high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}
const Option& Option::range(double low, double high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}
const Option& Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}
const Option& Option::non_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}
const Option& Option::one_of(std::initializer_list<const char*> words) const {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return *this;
}
const Option& Option::size() const {
  option_->transform(CLI::AsSizeValue(false));
  return *this;
}
const Option& Option::required() const {
  option_->required();
  return *this;
}
const Option& Option::hidden() const {
  option_->group("");
  return *this;
}
const Option& Option::excludes(const Option& other) const {
  option_->excludes(other.option_);
  return *this;
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& footer)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->footer(footer);
  app_->set_version_flag("--version", name + " " CCOM_VERSION_TEXT);
}

CommandLine::~CommandLine() = default;

Option CommandLine::option(const std::string& names, int& value, const std::string& help) {
  return add(*app_, names, value, help);
}
Option CommandLine::option(const std::string& names, size_t& value, const std::string& help) {
  return add(*app_, names, value, help);
}
Option CommandLine::option(const std::string& names, float& value, const std::string& help) {
  return add(*app_, names, value, help);
}
Option CommandLine::option(const std::string& names, double& value, const std::string& help) {
  return add(*app_, names, value, help);
}
Option CommandLine::option(const std::string& names, std::string& value, const std::string& help) {
  return add(*app_, names, value, help);
}
Option CommandLine::option(const std::string& names, std::vector<int>& values, const std::string& help) {
  return add(*app_, names, values, help);
}
Option CommandLine::option(const std::string& names, std::vector<size_t>& values, const std::string& help) {
  return add(*app_, names, values, help);
}
Option CommandLine::option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return add(*app_, names, values, help);
}
Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

CommandLine::Parsed CommandLine::parse(const std::vector<std::string>& words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
  std::ranges::replace(reversed, std::string("-np"), std::string("--np"));
  try {
    app_->parse(std::move(reversed));
    return {};
  } catch (const CLI::CallForHelp&) {
    return {.answer = app_->help(), .wrong = {}};
  } catch (const CLI::CallForVersion& version) {
    return {.answer = std::string(version.what()) + "\n", .wrong = {}};
  } catch (const CLI::Error& wrong) {
    return {.answer = {}, .wrong = wrong.what() + (" (" + app_->get_name() + " --help lists the flags)")};
  }
}

std::optional<int> CommandLine::exit_code(const std::vector<std::string>& words) {
  const Parsed parsed = parse(words);
  if (parsed.answer) {
    std::fputs(parsed.answer->c_str(), stdout);
    return 0;
  }
  if (parsed.wrong) {
    std::fprintf(stderr, "%s: %s\n", app_->get_name().c_str(), parsed.wrong->c_str());
    return kUsage;
  }
  return std::nullopt;
}

}  // namespace ccom
