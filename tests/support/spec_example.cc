#include "tests/support/spec_example.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>

namespace weft::test {
namespace {

// Appends to `found` what the page has under `title`.
void look_for(std::string_view title, const std::filesystem::path& page,
              std::optional<std::string>& found) {
  std::ifstream file(page);
  std::string line;
  bool in_block = false;
  bool wanted = false;
  while (std::getline(file, line)) {
    if (line.starts_with("```")) {
      in_block = !in_block;
      wanted = false;
    } else if (in_block && line == title) {
      if (found) throw std::runtime_error(std::string(title) + " stands in docs/spec twice");
      found = std::string();
      wanted = true;
    } else if (wanted) {
      *found += line + "\n";
    }
  }
}

}  // namespace

Buffer example(std::string_view name) {
  const std::string title = "# " + std::string(name);
  std::optional<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(WEFT_SPEC_DIR)) {
    if (entry.path().extension() == ".md") look_for(title, entry.path(), found);
  }
  if (!found) throw std::runtime_error("no example '" + title + "' in docs/spec");
  return from_hex(*found);
}

}  // namespace weft::test
