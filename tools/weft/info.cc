// weft info: the device as programs see it, and every option.

#include "weft/info.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/crc32c.h"
#include "cli/command_line.h"
#include "kit/json_text.h"
#include "weft/commands.h"
#include "weft/same_host.h"

namespace weft::tools {
namespace {

struct InfoOptions {
  bool options = false;
  bool json = false;
  bool markdown = false;
};

const char* name_of(device::PortState state) {
  return state == device::PortState::active ? "active" : "down";
}
const char* name_of(device::LinkLayer layer) {
  return layer == device::LinkLayer::ethernet ? "Ethernet" : "InfiniBand";
}
const char* name_of(device::NodeType type) {
  return type == device::NodeType::rnic ? "RNIC" : "channel adapter";
}
const char* name_of(device::Transport transport) {
  return transport == device::Transport::iwarp ? "iWARP" : "InfiniBand";
}

// An option's unit behind its value: "30000 ms", "on".
std::string with_unit(const std::string& value, std::string_view unit) {
  if (value.empty()) return "-";
  return unit.empty() ? value : fmt::format("{} {}", value, unit);
}

// The limits by the names of ibv_query_device(3).
std::vector<std::pair<const char*, uint64_t>> limits_of(const device::DeviceAttributes& a) {
  return {{"max_qp", a.max_qp},
          {"max_qp_wr", a.max_qp_wr},
          {"max_sge", a.max_sge},
          {"max_inline_data", device::kMaxInline},
          {"max_qp_rd_atom", a.max_qp_rd_atom},
          {"max_cq", a.max_cq},
          {"max_cqe", a.max_cqe},
          {"max_mr", a.max_mr},
          {"max_pd", a.max_pd},
          {"max_ah", a.max_ah},
          {"max_srq", a.max_srq},
          {"max_msg_sz", device::kMaxMessage}};
}

std::string identity_of(const config::Options& options) {
  for (const config::OptionInfo& info : config::table()) {
    if (info.name == "identity") return config::value_of(options, info);
  }
  return {};
}

// "|" separates the columns of a Markdown table.
std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

int info(const InfoOptions& wanted) {
  if (wanted.markdown) {
    fmt::print("{}", options_as_markdown());
    return 0;
  }
  const config::Options& options = config::options();
  if (wanted.options) {
    fmt::print("{}", wanted.json ? kit::text_of(options_as_json(options), 2) + "\n"
                                 : options_as_text(options));
    return 0;
  }
  const device::Device device = device::query_device(options);
  const std::string same_host = same_host_here(options);
  if (wanted.json) {
    nlohmann::json all = device_as_json(device, options);
    all["same_host"] = same_host;
    fmt::print("{}\n", kit::text_of(all, 2));
  } else {
    fmt::print("{}  same host  {}\n", device_as_text(device, options), same_host);
  }
  return 0;
}

}  // namespace

std::string device_as_text(const device::Device& device, const config::Options& options) {
  const device::DeviceAttributes& a = device.attributes;
  std::string text =
      fmt::format("{}  firmware {}  GUID {:016x}\n", device::kDeviceName, a.firmware, a.node_guid);
  text += fmt::format("  identity   {}: {}, transport {}\n", identity_of(options),
                      name_of(a.node_type), name_of(a.transport));
  text += fmt::format("  port {}     {}, link layer {}, active MTU {}, LID {}\n", device::kPort,
                      name_of(device.port.state), name_of(device.port.link_layer),
                      device::bytes_of(device.port.active_mtu), device.port.lid);
  for (size_t i = 0; i < device.gids.size(); ++i) {
    const device::GidEntry& entry = device.gids[i];
    text += fmt::format("  GID {:<6} {} ({}, MTU {})\n", i, entry.gid.to_string(), entry.interface,
                        entry.link_mtu);
  }
  if (device.gids.empty()) text += "  GID        none: no interface that is up has an IP address\n";
  text += fmt::format("  CRC32C     {}\n", crc32c_engine());
  for (const auto& [name, value] : limits_of(a)) text += fmt::format("  {:<15} {}\n", name, value);
  return text;
}

nlohmann::json device_as_json(const device::Device& device, const config::Options& options) {
  const device::DeviceAttributes& a = device.attributes;
  auto gids = nlohmann::json::array();
  for (const device::GidEntry& entry : device.gids) {
    gids.push_back(
        {{"gid", entry.gid.to_string()}, {"interface", entry.interface}, {"mtu", entry.link_mtu}});
  }
  auto limits = nlohmann::json::object();
  for (const auto& [name, value] : limits_of(a)) limits[name] = value;
  return {{"device", device::kDeviceName},
          {"firmware", a.firmware},
          {"guid", fmt::format("{:016x}", a.node_guid)},
          {"identity", identity_of(options)},
          {"node_type", name_of(a.node_type)},
          {"transport", name_of(a.transport)},
          {"port",
           {{"number", device::kPort},
            {"state", name_of(device.port.state)},
            {"link_layer", name_of(device.port.link_layer)},
            {"active_mtu", device::bytes_of(device.port.active_mtu)},
            {"lid", device.port.lid}}},
          {"gids", gids},
          {"crc32c", crc32c_engine()},
          {"limits", limits}};
}

std::string options_as_text(const config::Options& options) {
  std::string text;
  for (const config::OptionInfo& info : config::table()) {
    const std::string value = config::value_of(options, info);
    text +=
        fmt::format("{}={}{}\n    {}\n    {}; default {}\n", info.env, value,
                    value == info.default_text ? "" : "  (set)", info.sentence,
                    with_unit(info.accepted, info.unit), with_unit(info.default_text, info.unit));
  }
  return text;
}

nlohmann::json options_as_json(const config::Options& options) {
  auto list = nlohmann::json::array();
  for (const config::OptionInfo& info : config::table()) {
    list.push_back({{"name", info.name},
                    {"env", info.env},
                    {"unit", info.unit},
                    {"accepted", info.accepted},
                    {"default", info.default_text},
                    {"value", config::value_of(options, info)},
                    {"sentence", info.sentence}});
  }
  return list;
}

std::string options_as_markdown() {
  std::string text =
      "# Options\n\n"
      "<!-- Written by scripts/gen-docs from `weft info --options --markdown`; edit "
      "src/config/options.cc. -->\n\n"
      "Options are environment variables of the program that runs on weft. `weft run --env "
      "NAME=VALUE -- PROGRAM` sets\n"
      "one, `weft info --options` prints the values that hold now. `weft run` refuses a name or a "
      "value "
      "that does not\n"
      "exist. A program that was started otherwise reports it, and the default is kept.\n\n"
      "| variable | accepted | default | what it does |\n"
      "|---|---|---|---|\n";
  for (const config::OptionInfo& info : config::table()) {
    text += fmt::format(
        "| `{}` | {} | {} | {} |\n", info.env, markdown_cell(with_unit(info.accepted, info.unit)),
        markdown_cell(with_unit(info.default_text, info.unit)), markdown_cell(info.sentence));
  }
  return text;
}

void add_info_command(CLI::App& weft, int& status) {
  CLI::App* command =
      weft.add_subcommand("info", "Print the device as programs see it, or the options");
  auto wanted = std::make_shared<InfoOptions>();
  CLI::Option* options = command->add_flag("--options", wanted->options,
                                           "Print every option with its default and its value");
  CLI::Option* json = command->add_flag("--json", wanted->json, "Print JSON");
  command->add_flag("--markdown", wanted->markdown, "Print the options as docs/options.md has them")
      ->needs(options)
      ->excludes(json);
  cli::set_examples(*command, {{"weft info", "the device, its GIDs and its limits"},
                               {"weft info --options", "every option with its value"},
                               {"weft info --options --json", "the same for programs"}});
  command->callback([wanted, &status] { status = info(*wanted); });
}

}  // namespace weft::tools
