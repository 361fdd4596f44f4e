// Small readers for files of /proc and /sys. Nothing when a file is not there or not readable.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::kit {

// The file's words: what blanks and line ends separate.
std::optional<std::vector<std::string>> read_words(const std::string& path);
// The file's words, all of them decimal numbers.
std::optional<std::vector<uint64_t>> read_numbers(const std::string& path);
// The names in a folder, sorted. Empty when there is none; those that were read when it goes away
// meanwhile.
std::vector<std::string> names_in(const std::string& folder);

// The local ports in a table such as /proc/net/tcp (proc(5)); nothing is added when it is not
// readable.
void add_local_ports(const std::string& table, std::set<uint16_t>& ports);

}  // namespace weft::kit
