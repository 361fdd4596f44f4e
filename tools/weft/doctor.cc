// weft doctor: what would stop a connection here, and what to do about it.

#include <fmt/format.h>

#include <memory>

#include "weft/commands.h"
#include "weft/doctor_checks.h"
#include "weft/doctor_peer.h"

namespace weft::tools {
namespace {

struct DoctorOptions {
  std::string peer;
  uint16_t port = 0;
  bool json = false;
};

int doctor(const DoctorOptions& options) {
  std::vector<Finding> findings = check_all(gather_facts());
  if (!options.peer.empty()) {
    PeerRequest request{options.peer, std::nullopt};
    if (options.port != 0) request.port = options.port;
    const std::vector<Finding> about_peer = check_peer(request);
    findings.insert(findings.end(), about_peer.begin(), about_peer.end());
  }
  fmt::print("{}", options.json ? as_json(findings).dump(2) + "\n" : as_text(findings));
  return has_problem(findings) ? 1 : 0;
}

}  // namespace

void add_doctor_command(CLI::App& weft, int& status) {
  CLI::App* command = weft.add_subcommand("doctor", "Look for what would stop a connection");
  auto options = std::make_shared<DoctorOptions>();
  CLI::Option* peer =
      command->add_option("--peer", options->peer, "Also look at the way to this host")
          ->type_name("ADDRESS");
  command
      ->add_option("--port", options->port,
                   "Try a TCP connection to this port of the peer (UDP is not tried)")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535))
      ->needs(peer);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Exit status: 0 when nothing stops a connection, else 1. Notes do not count.");
  command->callback([options, &status] { status = doctor(*options); });
}

}  // namespace weft::tools
