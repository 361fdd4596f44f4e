#include "base/nearest_word.h"

#include <algorithm>
#include <vector>

namespace weft {
namespace {

// The optimal string alignment distance.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> two_before(b.size() + 1);
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) before[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({before[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_before[j - 2] + 1);
    }
    two_before.swap(before);
    before.swap(row);
  }
  return before[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view given, std::span<const std::string> known) {
  std::string nearest;
  size_t fewest = std::max<size_t>(given.size() / 3, 1) + 1;
  for (const std::string& word : known) {
    const size_t edits = edits_between(given, word);
    if (edits >= fewest || edits >= word.size()) continue;
    fewest = edits;
    nearest = word;
  }
  return nearest;
}

}  // namespace weft
