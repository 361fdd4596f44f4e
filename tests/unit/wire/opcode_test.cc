#include "wire/opcode.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/spec_section.h"
#include "wire/ddp_header.h"

namespace weft::wire {
namespace {

// spec/rdmap 1.4 row by row. Letters: t tagged, s Send, i Immediate Data, e solicited, v
// invalidates, m Send that carries an immediate, r request that a Delivered counts (4.10), x needs
// the extension.
struct Row {
  int opcode;
  const char* name;
  const char* is;
};
constexpr Row kRows[] = {
    {0, "RDMA Write", "tr"},
    {1, "RDMA Read Request", "r"},
    {2, "RDMA Read Response", "t"},
    {3, "Send", "sr"},
    {4, "Send with Invalidate", "svr"},
    {5, "Send with Solicited Event", "ser"},
    {6, "Send with Solicited Event and Invalidate", "sevr"},
    {7, "Terminate", ""},
    {8, "Immediate Data", "irx"},
    {9, "Immediate Data with Solicited Event", "ierx"},
    {10, "Atomic Request", "rx"},
    {11, "Atomic Response", "x"},
    {12, "Send with Immediate", "smrx"},
    {13, "Send with Solicited Event and Immediate", "semrx"},
    {14, "Delivered", "tx"},
    {15, "unassigned opcode", ""},
};

TEST(Opcode, WhatEachIs) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.opcode);
    const auto op = static_cast<Opcode>(row.opcode);
    const auto says = [&](char c) { return std::string(row.is).find(c) != std::string::npos; };
    EXPECT_STREQ(to_string(op), row.name);
    EXPECT_EQ(is_tagged(op), says('t'));
    EXPECT_EQ(is_send(op), says('s'));
    EXPECT_EQ(is_immediate(op), says('i'));
    EXPECT_EQ(is_solicited(op), says('e'));
    EXPECT_EQ(invalidates(op), says('v'));
    EXPECT_EQ(send_carries_immediate(op), says('m'));
    EXPECT_EQ(is_request(op), says('r'));
    EXPECT_EQ(needs_extension(op), says('x'));
  }
}

// docs/spec/rdmap.md, section 1.4: name, model and least ULPDU of each.
TEST(Opcode, TheTableOfTheSpecification) {
  const auto table = test::section_rows("rdmap", "1.4");
  ASSERT_EQ(table.size(), std::size(kRows));
  for (size_t i = 0; i < table.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(table[i][0], std::to_string(i));
    if (i == 15) continue;  // is none
    ASSERT_EQ(table[i].size(), 6U);
    const auto op = static_cast<Opcode>(i);
    EXPECT_EQ(table[i][1].substr(0, table[i][1].find(" (")), to_string(op));
    EXPECT_EQ(table[i][2], is_tagged(op) ? "1" : "0");
    EXPECT_EQ(table[i][5], std::to_string(min_ulpdu(op)));
  }
}

TEST(Opcode, NamesTellThemApart) {
  std::set<std::string> names;
  for (const Row& row : kRows) names.insert(to_string(static_cast<Opcode>(row.opcode)));
  EXPECT_EQ(names.size(), std::size(kRows));
}

}  // namespace
}  // namespace weft::wire
