// What a command says of itself to shells and to man: made from its options, so that it is never stale.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace modelflow::tools {

/// By option ("--precision"), the words that it takes where CLI11 does not know them.
using Words = std::map<std::string, std::vector<std::string>>;

/// Adds `--completion SHELL` and `--manual`, which print and end the parsing with success.
void describes_itself(CLI::App& app, const Words& words = {});

/// A script for bash, zsh or fish.
std::string completion(const CLI::App& app, const std::string& shell, const Words& words);
/// The manual page as troff reads it.
std::string manual(const CLI::App& app);

}  // namespace modelflow::tools
