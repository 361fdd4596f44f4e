#include "weft/info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weft::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

device::Device device_with(const config::Options& options,
                           std::vector<device::LocalAddress> addresses) {
  return device::make_device(options, addresses, 0x1e43ef0d5d9b41adU);
}

device::LocalAddress ethernet() {
  device::LocalAddress a;
  a.gid = Gid::from_ipv4(0xc0000201);
  a.interface = "eth0";
  a.link_mtu = 9000;
  return a;
}

TEST(DeviceAsText, SaysWhatProgramsSee) {
  const config::Options options;
  const std::string text = device_as_text(device_with(options, {ethernet()}), options);
  EXPECT_THAT(text, HasSubstr("weft0"));
  EXPECT_THAT(text, HasSubstr("GUID 1e43ef0d5d9b41ad"));
  EXPECT_THAT(text, HasSubstr("ib: channel adapter, transport InfiniBand"));
  EXPECT_THAT(text, HasSubstr("active, link layer Ethernet, active MTU 4096, LID 513"));
  EXPECT_THAT(text, HasSubstr("GID 0      192.0.2.1 (eth0, MTU 9000)"));
  EXPECT_THAT(text, HasSubstr("max_sge         30"));
}

TEST(DeviceAsText, WithoutAddress) {
  const config::Options options;
  const std::string text = device_as_text(device_with(options, {}), options);
  EXPECT_THAT(text, HasSubstr("port 1     down"));
  EXPECT_THAT(text, HasSubstr("none: no interface that is up has an IP address"));
}

TEST(DeviceAsJson, CarriesTheSame) {
  config::Options options;
  options.identity = config::Identity::iwarp;
  const auto json = device_as_json(device_with(options, {ethernet()}), options);
  EXPECT_EQ(json["device"], "weft0");
  EXPECT_EQ(json["identity"], "iwarp");
  EXPECT_EQ(json["node_type"], "RNIC");
  EXPECT_EQ(json["port"]["state"], "active");
  EXPECT_EQ(json["port"]["lid"], 513);
  EXPECT_EQ(json["gids"][0],
            (nlohmann::json{{"gid", "192.0.2.1"}, {"interface", "eth0"}, {"mtu", 9000}}));
  EXPECT_EQ(json["limits"]["max_qp_wr"], 16384);
}

TEST(OptionsAsText, MarksWhatIsSet) {
  config::Options options;
  const std::string before = options_as_text(options);
  EXPECT_THAT(before, HasSubstr("WEFT_CRC=on\n"));
  EXPECT_THAT(before, Not(HasSubstr("(set)")));
  options.crc = false;
  EXPECT_THAT(options_as_text(options), HasSubstr("WEFT_CRC=off  (set)\n"));
}

TEST(OptionsAsJson, EveryOptionWithItsValue) {
  config::Options options;
  options.rnr_wait = std::chrono::milliseconds(5);
  const auto json = options_as_json(options);
  ASSERT_EQ(json.size(), config::table().size());
  const auto found =
      std::find_if(json.begin(), json.end(), [](const auto& o) { return o["name"] == "rnr_wait"; });
  ASSERT_NE(found, json.end());
  EXPECT_EQ((*found)["env"], "WEFT_RNR_WAIT");
  EXPECT_EQ((*found)["unit"], "ms");
  EXPECT_EQ((*found)["default"], "10000");
  EXPECT_EQ((*found)["value"], "5");
}

TEST(OptionsAsMarkdown, OneRowEachWithBarsEscaped) {
  const std::string text = options_as_markdown();
  for (const config::OptionInfo& info : config::table()) {
    EXPECT_THAT(text, HasSubstr("| `" + info.env + "` | "));
  }
  EXPECT_THAT(text, HasSubstr("| `WEFT_IDENTITY` | ib\\|iwarp\\|ib-lid | ib | "));
}

}  // namespace
}  // namespace weft::tools
