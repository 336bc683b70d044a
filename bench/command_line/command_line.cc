// SPDX-License-Identifier: Apache-2.0
#include "bench/command_line/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "bench/command_line/completion.h"

namespace ccom {
namespace {

constexpr int kUsage = 3;

template <class T>
CLI::Option* add(CLI::App& app, const std::string& names, T& value, const std::string& help) {
  return app.add_option(names, value, help);
}

template <class T>
CLI::Option* add(CLI::App& app, const std::string& names, std::vector<T>& values, const std::string& help) {
  return app.add_option(names, values, help)->delimiter(',');
}

// "-b, --begin", as other programs and their man pages have it.
class HelpFormat final : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string names = Formatter::make_option_name(option, is_positional);
    const size_t comma = names.find(",-");
    return comma == std::string::npos ? names : names.substr(0, comma) + ", " + names.substr(comma + 1);
  }
};

}  // namespace

struct CommandLine::Hint {
  std::vector<std::string> words;
  bool is_file = false;
};

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
  hint_->words.assign(words.begin(), words.end());
  option_->check(CLI::IsMember(hint_->words));
  return *this;
}
const Option& Option::offers(std::vector<std::string> words) const {
  hint_->words = std::move(words);
  return *this;
}
const Option& Option::file() const {
  hint_->is_file = true;
  if (hint_->words.empty()) option_->type_name("FILE");
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
  app_->formatter(std::make_shared<HelpFormat>());
  app_->set_version_flag("--version", name + " " CCOM_VERSION_TEXT, "Print the version and exit");
  const auto ignored = [](const std::string&) {};  // parse() looks at it
  added(app_->add_option_function<std::string>("--completion", ignored, "Print this shell's completions and exit"))
      .one_of({"bash", "zsh", "fish"});
}

CommandLine::~CommandLine() = default;

Option CommandLine::option(const std::string& names, int& value, const std::string& help) {
  return added(add(*app_, names, value, help));
}
Option CommandLine::option(const std::string& names, size_t& value, const std::string& help) {
  return added(add(*app_, names, value, help));
}
Option CommandLine::option(const std::string& names, float& value, const std::string& help) {
  return added(add(*app_, names, value, help));
}
Option CommandLine::option(const std::string& names, double& value, const std::string& help) {
  return added(add(*app_, names, value, help));
}
Option CommandLine::option(const std::string& names, std::string& value, const std::string& help) {
  return added(add(*app_, names, value, help));
}
Option CommandLine::option(const std::string& names, std::vector<int>& values, const std::string& help) {
  return added(add(*app_, names, values, help));
}
Option CommandLine::option(const std::string& names, std::vector<size_t>& values, const std::string& help) {
  return added(add(*app_, names, values, help));
}
Option CommandLine::option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return added(add(*app_, names, values, help));
}
Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  return added(app_->add_flag(names, value, help));
}

Option CommandLine::added(CLI::Option* option) { return {option, &hints_[option]}; }

ProgramShape CommandLine::shape() const {
  ProgramShape shape{.name = app_->get_name(), .words = {}};
  for (const CLI::Option* option : app_->get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    WordShape& word = shape.words.emplace_back();
    for (const std::string& name : option->get_snames()) word.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) word.names.push_back("--" + name);
    if (option->get_lnames() == std::vector<std::string>{"np"}) word.names.insert(word.names.begin(), "-np");
    word.help = option->get_description();
    word.takes_value = option->get_expected_max() != 0;  // 0: a flag
    word.is_list = option->get_delimiter() == ',';
    if (const auto hint = hints_.find(option); hint != hints_.end()) {
      word.values = hint->second.words;
      word.is_file = hint->second.is_file;
    }
  }
  return shape;
}

CommandLine::Parsed CommandLine::complete(const std::string& shell) const {
  Parsed parsed{.answer = completion_for(shell, shape()), .wrong = {}};
  if (!parsed.answer) parsed.wrong = "--completion: expected bash, zsh or fish, not \"" + shell + "\"";
  return parsed;
}

CommandLine::Parsed CommandLine::parse(const std::vector<std::string>& words) {
  if (words.size() == 2 && words.front() == "--completion") return complete(words.back());
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
