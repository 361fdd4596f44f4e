#include "kit/printable.h"

#include <gtest/gtest.h>

namespace weft::kit {
namespace {

TEST(Printable, ControlCharactersAreGone) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\a"), "?[2J?]0;title?");
  EXPECT_EQ(printable("a\r\nb\tc\x7f"), "a??b?c?");
  EXPECT_EQ(printable(std::string{"a\0b", 3}), "a?b");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "2Jb\xc2\x80"),
            "a?2Jb?");
}

TEST(Printable, OtherTextStays) {
  for (const char* text : {"", "no receiver at 192.0.2.1:4347", "\xc3\xbc\xe2\x82\xac", "\xc2\xa0",
                           "\xc2", "\xff\xfe"}) {
    EXPECT_EQ(printable(text), text);
  }
}

}  // namespace
}  // namespace weft::kit
