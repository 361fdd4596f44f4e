// Sentences and tables of docs/spec, for tests that hold them against the code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::test {

// All of a page such as "wdp-uc", with single blanks. Throws where there is none.
std::string page_text(std::string_view page);

// What stands under the heading "## 3." or "### 3.2" of a page, up to the next heading, with single
// blanks. Throws where there is no such section.
std::string section_text(std::string_view page, std::string_view number);

// The cells of its tables' rows, without headings.
std::vector<std::vector<std::string>> section_rows(std::string_view page, std::string_view number);

}  // namespace weft::test
