#include "kit/script.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/output.h"
#include "kit/launch.h"

namespace weft::kit {
namespace {

// Debian's, for which Debian's packages are: another one in PATH may lack them.
constexpr const char* kPython = "/usr/bin/python3";

int become_script(const std::string& script, const std::vector<std::string>& words) {
  if (::access(script.c_str(), R_OK) != 0) {
    fmt::print(stderr, "weft: {}: {}; build or install weft again\n", script, std::strerror(errno));
    return kStatusOwnFailure;
  }
  // -B: an installed weft's folders are not for caches of one user.
  std::vector<std::string> all{kPython, "-B", script};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  cli::restore_sigpipe();
  ::execv(kPython, argv.data());
  fmt::print(stderr, "weft: {}: {}; remedy: apt-get install python3\n", kPython,
             std::strerror(errno));
  return kStatusOwnFailure;
}

}  // namespace

void add_script_command(CLI::App& parent, int& status, const char* name, const char* sentence,
                        const char* script, std::vector<std::string> leading) {
  CLI::App* command = parent.add_subcommand(name, sentence);
  command->set_help_flag();
  command->prefix_command();
  const std::string path = own_library_folder() + "/report/" + script;
  command->callback([command, path, leading = std::move(leading), &status] {
    std::vector<std::string> words = leading;
    for (const std::string& word : command->remaining()) words.push_back(word);
    status = become_script(path, words);
  });
}

std::vector<std::string> words_of_weft(const char* version) {
  std::error_code error;
  return {"--weft", std::filesystem::read_symlink("/proc/self/exe", error).string(),
          "--version-of-weft", version};
}

}  // namespace weft::kit
