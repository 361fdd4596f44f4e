#include "kit/kernel_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/number_in.h"

namespace weft::kit {

std::optional<std::vector<std::string>> read_words(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

std::optional<std::vector<uint64_t>> read_numbers(const std::string& path) {
  const auto words = read_words(path);
  if (!words) return std::nullopt;
  std::vector<uint64_t> numbers;
  for (const std::string& text : *words) {
    const auto value = number_in<uint64_t>(text);
    if (!value) return std::nullopt;
    numbers.push_back(*value);
  }
  return numbers;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  // Not a range: its steps throw when the folder cannot be read to its end, because the process
  // that it describes ends meanwhile.
  std::filesystem::directory_iterator at{folder, error};
  for (; !error && at != std::filesystem::directory_iterator{}; at.increment(error)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_local_ports(const std::string& table, std::set<uint16_t>& ports) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the headings
  while (std::getline(file, line)) {
    // "  sl: local_address:PORT ...", all hexadecimal; the address has 8 or 32 digits.
    const size_t address = line.find(':') + 2;
    const size_t colon = line.find(':', std::min(address, line.size()));
    if (colon == std::string::npos || line.size() < colon + 5) continue;
    uint16_t port = 0;
    const char* text = line.data() + colon + 1;
    const auto [stopped, error] = std::from_chars(text, text + 4, port, 16);
    if (error == std::errc{} && stopped == text + 4) ports.insert(port);
  }
}

}  // namespace weft::kit
