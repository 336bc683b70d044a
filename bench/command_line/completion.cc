// SPDX-License-Identifier: Apache-2.0
#include "bench/command_line/completion.h"

#include <algorithm>

namespace ccom {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

bool at_place(const WordShape& word) { return word.names.empty(); }

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string first_sentence(const WordShape& word) { return word.help.substr(0, word.help.find(". ")); }

// Words of letters that are no shell's own.
std::string identifier(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string bash_case(const char* indent, const std::string& pattern, const WordShape& word) {
  std::string does;
  if (!word.values.empty()) does += " values='" + joined(word.values, " ") + "'";
  if (word.is_list) does += " list=1";
  if (word.is_file) does += " files=1";
  return indent + pattern + ")" + (does.empty() ? " :" : does) + " ;;\n";
}

std::string for_bash(const ProgramShape& program) {
  std::string options, takers, values, places;
  int place = 0;
  for (const WordShape& word : program.words) {
    if (at_place(word)) {
      places += bash_case("          ", word.is_list ? "*" : std::to_string(place++), word);
      continue;
    }
    options += (options.empty() ? "" : " ") + joined(word.names, " ");
    if (!word.takes_value) continue;
    const std::string pattern = joined(word.names, " | ");
    takers += (takers.empty() ? "" : " | ") + pattern;
    values += bash_case("    ", pattern, word);
  }
  const std::string function = "_" + identifier(program.name);
  return "# bash completion for " + program.name + " -*- shell-script -*-\n" + function + "() {\n" +
         R"(  local current=$2 before=$3 values= list= files= place=0 i prefix=
  if [ "$current" = = ]; then
    current=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
    )" + takers +
         R"()
      i=$((i + 1))
      [ "${COMP_WORDS[i]}" != = ] || i=$((i + 1))
      ;;
    -*) ;;
    *) place=$((place + 1)) ;;
    esac
  done
  case $before in
)" + values +
         R"(    *)
      if [[ $current == -* ]]; then
        values=')" +
         options + R"('
      else
        case $place in
)" + places +
         R"(        esac
      fi
      ;;
  esac
  if [ -n "$list" ] && [[ $current == *,* ]]; then
    prefix=${current%,*},
    current=${current##*,}
  fi
  mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$values" -- "$current")
  if [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -F )" +
         function + " " + program.name + "\n";
}

// What _arguments is to offer for a value.
std::string zsh_action(const WordShape& word) {
  const std::string values = joined(word.values, " ");
  if (word.is_file && !values.empty()) return " _alternative \"values:value:(" + values + ")\" \"files:file:_files\"";
  if (word.is_file) return "_files";
  if (values.empty()) return " ";
  return word.is_list ? "_sequence compadd - " + values : "(" + values + ")";
}

// With "+" a value may follow a short name at once, with "=" a long one.
std::string zsh_name(const std::string& name, bool takes_value) {
  if (!takes_value || name == "-np") return name;
  return name + (name.starts_with("--") ? "=" : "+");
}

std::string zsh_spec(const WordShape& word) {
  const std::string value = ":value:" + zsh_action(word);
  if (at_place(word)) return std::string("'") + (word.is_list ? "*" : "") + value + "'";
  std::vector<std::string> names;
  for (const std::string& name : word.names) names.push_back(zsh_name(name, word.takes_value));
  std::string help = first_sentence(word);
  for (const char* special : {"\\", "[", "]", ":"}) help = replaced(help, special, std::string("\\") + special);
  std::string spec = "'(" + joined(word.names, " ") + ")'";
  spec += names.size() == 1 ? names.front() : "{" + joined(names, ",") + "}";
  spec += "'[" + replaced(help, "'", "'\\''") + "]";
  return spec + (word.takes_value ? value : "") + "'";
}

std::string for_zsh(const ProgramShape& program) {
  const std::string function = "_" + program.name;
  std::string text = "#compdef " + program.name + "\n" + function + "() {\n  _arguments";
  for (const WordShape& word : program.words) text += " \\\n    " + zsh_spec(word);
  return text + "\n}\nif [ \"$funcstack[1]\" = " + function + " ]; then\n  " + function + " \"$@\"\nelse\n  compdef " +
         function + " " + program.name + "\nfi\n";
}

std::string fish_line(const ProgramShape& program, const WordShape& word) {
  std::string line = "complete -c " + program.name;
  for (const std::string& name : word.names) {
    const bool is_long = name.starts_with("--");
    line += is_long ? " -l " + name.substr(2) : (name.size() == 2 ? " -s " : " -o ") + name.substr(1);
  }
  if (!at_place(word)) line += word.is_file ? " -r -F" : word.takes_value ? " -x" : "";
  if (at_place(word) && word.is_file) line += " -F";
  const std::string values = joined(word.values, " ");
  if (!values.empty()) line += word.is_list ? " -a '(__fish_append , " + values + ")'" : " -a '" + values + "'";
  if (at_place(word)) return line + "\n";
  return line + " -d '" + replaced(replaced(first_sentence(word), "\\", "\\\\"), "'", "\\'") + "'\n";
}

std::string for_fish(const ProgramShape& program) {
  std::string text = "# fish completion for " + program.name + "\ncomplete -c " + program.name + " -f\n";
  for (const WordShape& word : program.words) text += fish_line(program, word);
  return text;
}

}  // namespace

std::optional<std::string> completion_for(std::string_view shell, const ProgramShape& program) {
  if (shell == "bash") return for_bash(program);
  if (shell == "zsh") return for_zsh(program);
  if (shell == "fish") return for_fish(program);
  return std::nullopt;
}

}  // namespace ccom
