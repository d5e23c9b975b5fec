// Scripts of shells and manual pages from the options of a command.
#include "self_description.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>

#include "modelflow/modelflow.h"
#include "terminal.h"

namespace modelflow::tools {
namespace {

enum class Takes { nothing, words, files, anything };

struct Described {
  std::vector<std::string> names;  ///< with their dashes
  std::string doc;
  Takes takes = Takes::nothing;
  std::vector<std::string> words = {};
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + at) {
    if (c != at) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::exchange(part, ""));
    }
  }
  return parts;
}

/// What CLI::IsMember allows stands in the name of the type: "TEXT:{auto,always,never}".
std::vector<std::string> allowed(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  return open == std::string::npos || close < open ? std::vector<std::string>()
                                                   : split(type.substr(open + 1, close - open - 1), ',');
}

/// Options say FILE, DIR, "a folder" or "model" where they take one.
bool names_files(const CLI::Option& option) {
  const std::string& doc = option.get_description();
  return std::ranges::any_of(std::initializer_list<const char*>{"FILE", "DIR", "model", ".so"},
                             [&](const char* word) { return doc.find(word) != std::string::npos; });
}

std::vector<Described> described(const CLI::App& app, const Words& words) {
  std::vector<Described> all;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    Described one{.names = {}, .doc = option->get_description()};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (option->get_expected_max() > 0 && option->get_type_size() > 0) {
      const auto known = words.find("--" + (option->get_lnames().empty() ? "" : option->get_lnames().front()));
      one.words = known != words.end() ? known->second : allowed(*option);
      const bool number = option->get_type_name().find("TEXT") == std::string::npos;
      one.takes = !one.words.empty()     ? Takes::words
                  : number               ? Takes::anything
                  : names_files(*option) ? Takes::files
                                         : Takes::anything;
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string join(const std::vector<std::string>& list, const char* between) {
  return fmt::format("{}", fmt::join(list, between));
}

/// What a menu has room for.
std::string short_doc(const std::string& doc) { return doc.size() <= 76 ? doc : doc.substr(0, 73) + "..."; }

std::string bash(const std::string& command, const std::vector<Described>& options) {
  const std::string function = "_" + std::string(command == "optimize" ? "optimize" : "modelflow_bench");
  std::string cases, all;
  for (const Described& option : options) {
    all += join(option.names, " ") + " ";
    const std::string names = join(option.names, "|");
    if (option.takes == Takes::words)
      cases += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", names,
                           join(option.words, " "));
    else if (option.takes == Takes::anything)
      cases += fmt::format("    {}) return ;;\n", names);
    else if (option.takes == Takes::files)
      cases += fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", names);
  }
  return fmt::format(
      "# Completion of {0} for bash: eval \"$({0} --completion bash)\"\n{1}() {{\n  local "
      "word=${{COMP_WORDS[COMP_CWORD]}}\n"
      "  case ${{COMP_WORDS[COMP_CWORD-1]}} in\n{2}  esac\n"
      "  case $word in\n    -*) COMPREPLY=($(compgen -W '{3}' -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen -f -- "
      "\"$word\")) ;;\n  esac\n}}\n"
      "complete -o filenames -F {1} {0}\n",
      command, function, cases, all);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string zsh(const std::string& command, const std::vector<Described>& options) {
  std::string lines;
  for (const Described& option : options) {
    std::string doc = short_doc(option.doc);
    for (const char* special : {"\\", "[", "]", ":"}) doc = replaced(doc, special, std::string("\\") + special);
    doc = replaced(doc, "'", "'\\''");
    const std::string value = option.takes == Takes::nothing ? ""
                              : option.takes == Takes::words ? ":value:(" + join(option.words, " ") + ")"
                              : option.takes == Takes::files ? ":file:_files"
                                                             : ":value: ";
    for (const std::string& name : option.names) lines += fmt::format("  '*{}[{}]{}' \\\n", name, doc, value);
  }
  return fmt::format(
      "#compdef {0}\n# Completion of {0} for zsh: source <({0} --completion zsh)\n_{0}() {{\n  _arguments -s \\\n{1}  "
      "'*:model:_files'\n}}\n"
      "if [ \"$funcstack[1]\" = \"_{0}\" ]; then _{0} \"$@\"; else compdef _{0} {0}; fi\n",
      command, lines);
}

std::string fish(const std::string& command, const std::vector<Described>& options) {
  std::string lines = fmt::format("# Completion of {0} for fish: {0} --completion fish | source\n", command);
  for (const Described& option : options) {
    std::string line = "complete -c " + command;
    for (const std::string& name : option.names)
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (option.takes == Takes::words) line += " -x -a '" + join(option.words, " ") + "'";
    if (option.takes == Takes::anything) line += " -x";
    if (option.takes == Takes::files) line += " -r";
    lines += line + " -d '" + replaced(replaced(short_doc(option.doc), "\\", "\\\\"), "'", "\\'") + "'\n";
  }
  return lines;
}

/// For troff: a hyphen of an option is one that can be copied, and no line is a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const std::string& line : split(replaced(replaced(text, "\\", "\\e"), "-", "\\-"), '\n'))
    out += (line.starts_with(".") || line.starts_with("'") ? "\\&" : "") + line + "\n";
  return out;
}

}  // namespace

std::string completion(const CLI::App& app, const std::string& shell, const Words& words) {
  const std::vector<Described> options = described(app, words);
  return shell == "bash"  ? bash(app.get_name(), options)
         : shell == "zsh" ? zsh(app.get_name(), options)
                          : fish(app.get_name(), options);
}

std::string manual(const CLI::App& app) {
  const std::string name = app.get_name();
  std::string text = fmt::format(
      ".TH \"{}\" \"1\" \"\" \"ModelFlow {}\" \"User Commands\"\n.SH NAME\n{} \\- {}.SH SYNOPSIS\n.B {}\n[OPTIONS] ",
      name, version(), name, roff(app.get_description()), name);
  std::string places, options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      text += fmt::format("[{}] ", option->get_name(true));
      places += fmt::format(".TP\n.I {}\n{}", option->get_name(true), roff(option->get_description()));
      continue;
    }
    const std::vector<std::string> words = allowed(*option);
    const std::string doc = option->get_description() + (words.empty() ? "" : "; one of " + join(words, ", "));
    options += fmt::format(".TP\n.B {}{}", roff(replaced(option->get_name(false, true), ",", ", ")), roff(doc));
  }
  std::string footer = app.get_footer();
  const std::size_t codes = footer.find("Exit codes:");
  text += fmt::format("\n.SH ARGUMENTS\n{}.SH OPTIONS\n{}", places, options);
  text += ".SH EXAMPLES\n.nf\n" + roff(replaced(footer.substr(0, codes), "Examples:\n", "")) + ".fi\n";
  if (codes != std::string::npos) text += ".SH EXIT STATUS\n" + roff(footer.substr(codes + 12));
  return text + ".SH SEE ALSO\n" + (name == "optimize" ? "modelflow\\-bench(1)" : "optimize(1)") + "\n";
}

void describes_itself(CLI::App& app, const Words& words) {
  app.add_option_function<std::string>(
         "--completion",
         [&app, words](const std::string& shell) {
           print(completion(app, shell, words));
           throw CLI::Success();
         },
         "print a script that completes this command in a shell")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->trigger_on_parse();
  app.add_flag_callback(
         "--manual",
         [&app] {
           print(manual(app));
           throw CLI::Success();
         },
         "print the manual page, for `man -l -`")
      ->trigger_on_parse();
}

}  // namespace modelflow::tools
