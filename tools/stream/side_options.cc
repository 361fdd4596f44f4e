#include "stream/side_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "cli/command_line.h"
#include "cli/stop.h"
#include "kit/launch.h"
#include "measure/energy_option.h"
#include "stream/utc.h"
#include "stream/verbs_device.h"

namespace weft::stream {
namespace {

const std::map<std::string, Transport> kTransportOptions{
    {"tcp", Transport::tcp}, {"udp", Transport::udp}, {"rc", Transport::rc}, {"uc", Transport::uc}};

}  // namespace

void add_transport_options(CLI::App& command, Transport& transport, std::string& library) {
  command.add_option("--transport", transport, "tcp, udp, rc or uc")
      ->transform(cli::one_of(kTransportOptions))
      ->default_str("uc");
  command.add_option("--library", library, "Use this libibverbs.so.1 instead of weft's")
      ->type_name("PATH");
}

void add_report_options(CLI::App& command, ReportOptions& report) {
  command.add_flag("--json", report.json, "A JSON document a second, and one at the end");
  command
      .add_option("--prometheus", report.prometheus,
                  "Keep the counters in this file, as Prometheus reads them")
      ->type_name("FILE");
  measure::add_energy_option(command, report.energy, "the first of them but ipmi that can be read");
}

int64_t time_option(const std::string& name, const std::string& text) {
  const auto ns = parse_utc(text);
  if (!ns) {
    cli::wrong_usage(fmt::format("{} {}: a time is as 2026-11-25T09:30:00.5, in UTC", name, text));
  }
  return *ns;
}

void begin_side(std::string& library, ReportOptions& report, const std::string& address) {
  if (library.empty()) library = kit::own_library_folder() + "/" + kit::kLibraries[0];
  report.live = !report.json && ::isatty(STDERR_FILENO) == 1;
  cli::catch_stop_signals();
  // The device takes the address of a route otherwise.
  if (!address.empty()) prefer_address(address);
  // Both sides look by themselves at least every 2 ms: the helper thread need not, which would be a
  // wake-up more each time.
  ::setenv("WEFT_TAKEOVER", "10000", 0);
}

}  // namespace weft::stream
