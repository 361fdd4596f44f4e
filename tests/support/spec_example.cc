#include "tests/support/spec_example.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace weft::test {
namespace {

namespace fs = std::filesystem;

struct Block {
  bool is_text = false;
  std::string name;
  std::string text;
};

// The fenced blocks of a page that have a name.
std::vector<Block> blocks_of(const fs::path& page) {
  std::ifstream file(page);
  if (!file) throw std::runtime_error("no page " + page.string());
  std::vector<Block> blocks;
  std::string line;
  bool inside = false;
  bool is_text = false;
  bool first = false;
  bool named = false;
  while (std::getline(file, line)) {
    if (line.starts_with("```")) {
      inside = first = !inside;
      is_text = line == "```text";
      named = false;
    } else if (inside && first && line.starts_with("# ")) {
      blocks.push_back({is_text, line.substr(2), {}});
      named = true;
      first = false;
    } else if (named) {
      blocks.back().text += line + "\n";
    } else {
      first = false;
    }
  }
  return blocks;
}

void append_words(std::string& words, const std::string& line) {
  std::istringstream in(line);
  for (std::string word; in >> word;) words += (words.empty() ? "" : " ") + word;
}

SpecExample decoded(const Block& block) {
  SpecExample e{.name = block.name, .bytes = {}, .words = {}};
  std::istringstream in(block.text);
  bool in_words = false;
  for (std::string line; std::getline(in, line);) {
    if (!in_words && line.starts_with("=")) {
      in_words = true;
      line.erase(0, 1);
    }
    if (in_words) {
      append_words(e.words, line);
    } else if (line.starts_with("...")) {
      e.bytes.resize(std::stoul(line.substr(3)));
    } else {
      const Buffer more = from_hex(line);
      e.bytes.insert(e.bytes.end(), more.begin(), more.end());
    }
  }
  return e;
}

Block block_named(std::string_view name, bool is_text) {
  std::vector<Block> found;
  for (const auto& entry : fs::directory_iterator(WEFT_SPEC_DIR)) {
    if (entry.path().extension() != ".md") continue;
    for (Block& b : blocks_of(entry.path())) {
      if (b.name == name && b.is_text == is_text) found.push_back(std::move(b));
    }
  }
  if (found.size() == 1) return std::move(found.front());
  throw std::runtime_error("'# " + std::string(name) + "' stands in docs/spec " +
                           std::to_string(found.size()) + " times");
}

}  // namespace

std::vector<SpecExample> examples_on(std::string_view page) {
  std::vector<SpecExample> all;
  for (const Block& b : blocks_of(fs::path(WEFT_SPEC_DIR) / page)) {
    if (!b.is_text) all.push_back(decoded(b));
  }
  return all;
}

Buffer example(std::string_view name) {
  return decoded(block_named(name, false)).bytes;
}

std::string example_text(std::string_view name) {
  return block_named(name, true).text;
}

}  // namespace weft::test
