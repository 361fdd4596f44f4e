#include "measure/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTable =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop\n"
    "    lo: 18446744073709 11 0 0 0 0 0 0 18446744073710 11 0 0 0 0 0 0\n"
    "  eth0:1001 12 1 2 3 4 5 6 2002 13 0 0 0 0 0 0\n"
    " eth01: 3003 1 0 0 0 0 0 0 4004 1 0 0 0 0 0 0\n";

TEST(ParseInterface, CountsWhatArrivesUnlessTold) {
  EXPECT_EQ(parse_interface("eth0")->name, "eth0");
  EXPECT_FALSE(parse_interface("eth0")->sent);
  EXPECT_FALSE(parse_interface("eth0:rx")->sent);
  EXPECT_TRUE(parse_interface("eth0.5:tx")->sent);
  EXPECT_EQ(parse_interface("eth0.5:tx")->name, "eth0.5");
  for (const char* wrong : {"", ":rx", "eth0:", "eth0:both"}) EXPECT_FALSE(parse_interface(wrong));
}

TEST(InterfaceBytes, AreThoseOfTheNameAndTheWay) {
  const FakeTree proc;
  proc.write("self/net/dev", kTable);
  EXPECT_EQ(*interface_bytes(proc.root(), {.name = "eth0"}), 1001U);
  EXPECT_EQ(*interface_bytes(proc.root(), {.name = "eth0", .sent = true}), 2002U);
  EXPECT_EQ(*interface_bytes(proc.root(), {.name = "eth01"}), 3003U);
  EXPECT_EQ(*interface_bytes(proc.root(), {.name = "lo", .sent = true}), 18446744073710U);
}

TEST(InterfaceBytes, SaysThatThereIsNoSuchInterface) {
  const FakeTree proc;
  proc.write("self/net/dev", kTable);
  const auto bytes = interface_bytes(proc.root(), {.name = "eth"});
  ASSERT_FALSE(bytes);
  EXPECT_THAT(bytes.error().reason, HasSubstr("no interface eth"));
}

}  // namespace
}  // namespace weft::measure
