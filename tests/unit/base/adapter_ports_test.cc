#include "base/adapter_ports.h"

#include <gtest/gtest.h>

#include <string>

namespace weft {
namespace {

// The list that users are shown is that of the rule.
TEST(AdapterPorts, AreThoseOfTheList) {
  std::string list;
  for (uint32_t port = 0; port <= 65'536; ++port) {
    if (!is_adapter_port(port)) continue;
    if (port == 0 || !is_adapter_port(port - 1)) {
      list += (list.empty() ? "" : ", ") + std::to_string(port) + "..";
    }
    if (!is_adapter_port(port + 1)) list += std::to_string(port);
  }
  EXPECT_EQ(list, kAdapterPorts);
}

}  // namespace
}  // namespace weft
