// weft doctor: what would stop a connection here, or on the way to a peer, and what to do about it.

#include "doctor/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "doctor/checks.h"
#include "doctor/listener.h"
#include "doctor/local_port.h"
#include "doctor/path_checks.h"
#include "doctor/path_probe.h"
#include "doctor/route.h"
#include "kit/json_text.h"

namespace weft::doctor {
namespace {

constexpr int kLifetime = 3600;  // seconds, of a listener
constexpr std::chrono::milliseconds kConnectTimeout{3000};

struct Options {
  std::string peer;
  bool listen = false;
  uint16_t port = kDoctorPort;
  uint16_t connect = 0;
  uint16_t local_port = 0;
  int lifetime = kLifetime;
  bool json = false;
};

void append(std::vector<Finding>& to, std::vector<Finding>&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

// Tests the path to the first of the addresses at which a doctor answers.
std::vector<Finding> probe_first(const std::vector<port::Address>& addresses,
                                 const std::vector<RouteFacts>& routes, const Options& options) {
  std::string why = "no way there";
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (!routes[i].error.empty()) continue;
    try {
      std::vector<Finding> findings = check_path(probe_path(addresses[i], routes[i].interface));
      if (addresses.size() > 1) {
        findings.push_back({Severity::note, "path",
                            fmt::format("{} has several addresses, and only the way to {} was "
                                        "examined",
                                        options.peer, routes[i].peer),
                            "give --peer another one of its addresses to examine that"});
      }
      return findings;
    } catch (const kit::Failure& failed) {
      why = failed.what();
    }
  }
  return {path_not_tested(options.peer, options.port, why)};
}

std::vector<Finding> check_peer(const Options& options) {
  std::string error;
  std::vector<port::Address> addresses = addresses_of(options.peer, options.port, error);
  if (addresses.empty()) return {name_not_found(options.peer, error)};
  std::vector<RouteFacts> routes;
  std::vector<Finding> findings;
  for (const port::Address& address : addresses) {
    routes.push_back(gather_route(address));
    findings.push_back(check_route(routes.back()));
  }
  // A name with several addresses, such as one of each family: one that works is enough.
  const bool any = std::any_of(routes.begin(), routes.end(),
                               [](const RouteFacts& r) { return r.error.empty(); });
  for (size_t i = 0; i < routes.size(); ++i) {
    if (any && !routes[i].error.empty()) findings[i].severity = Severity::note;
  }
  if (any) append(findings, probe_first(addresses, routes, options));
  for (size_t i = 0; i < routes.size() && options.connect != 0; ++i) {
    if (!routes[i].error.empty()) continue;
    addresses[i].set_port(options.connect);
    findings.push_back(check_connection(addresses[i], kConnectTimeout));
  }
  return findings;
}

int run_checks(const Options& options) {
  std::vector<Finding> findings = check_all(gather_facts());
  if (options.local_port != 0) findings.push_back(check_local_port(options.local_port));
  if (!options.peer.empty()) append(findings, check_peer(options));
  const Scope scope = options.peer.empty() ? Scope::this_host : Scope::this_host_and_peer;
  fmt::print("{}",
             options.json ? kit::text_of(as_json(findings), 2) + "\n" : as_text(findings, scope));
  return all_well(findings) ? 0 : 1;
}

// Throws nothing: a listener goes on if nobody reads what it says.
void log(const std::string& sentence) {
  cli::write_output(sentence + "\n");
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> texts;
  for (const AddressFact& a : gather_facts().addresses) {
    if (!a.loopback) texts.push_back(a.address);
  }
  return texts;
}

int listen(const Options& options) {
  cli::catch_stop_signals();
  try {
    Listener listener(options.port, log);
    const std::vector<std::string> own = own_addresses();
    log(fmt::format(
        "listens on port {} (TCP and UDP), and on port {} as programs on weft do, for "
        "{} seconds; Ctrl-C ends it. On the other host:\n"
        "    weft doctor --peer {}{}",
        listener.port(), listener.program_port(), options.lifetime,
        own.empty() ? "ADDRESS" : own.front(),
        listener.port() == kDoctorPort ? "" : fmt::format(" --port {}", listener.port())));
    if (own.size() > 1) log(fmt::format("This host's addresses: {}", fmt::join(own, ", ")));
    listener.run(cli::stop_descriptor(), std::chrono::seconds{options.lifetime});
    return 0;
  } catch (const kit::Failure& failed) {
    fmt::print(stderr, "weft doctor --listen: {}\n", failed.what());
    return 1;
  }
}

}  // namespace

void add_doctor_command(CLI::App& weft, int& status) {
  CLI::App* command = weft.add_subcommand("doctor", "Look for what would stop a connection");
  auto options = std::make_shared<Options>();
  CLI::Option* peer =
      command
          ->add_option("--peer", options->peer,
                       "Also examine the way to this host, on which 'weft doctor --listen' runs")
          ->type_name("ADDRESS");
  CLI::Option* listen_flag = command->add_flag(
      "--listen", options->listen, "Answer the probes of a doctor on another host, until Ctrl-C");
  listen_flag->excludes(peer);
  CLI::Option* port =
      command
          ->add_option(
              "--port", options->port,
              fmt::format("TCP and UDP port of the doctor that listens (default {})", kDoctorPort))
          ->type_name("PORT")
          ->check(cli::between(1, 65535));
  command
      ->add_option("--for", options->lifetime,
                   fmt::format("With --listen: end after so long (default {})", kLifetime))
      ->type_name("SECONDS")
      ->check(cli::between(1, 7 * 24 * 3600))
      ->needs(listen_flag);
  CLI::Option* connect =
      command
          ->add_option("--connect", options->connect,
                       "Also connect to this TCP port of the peer, and close: a server that takes "
                       "one client, such as perftest's, takes this for it and ends")
          ->type_name("PORT")
          ->check(cli::between(1, 65535))
          ->needs(peer);
  CLI::Option* local =
      command
          ->add_option("--local-port", options->local_port,
                       "Also say who holds this port of this host, for a program that gets "
                       "\"Address already in use\"")
          ->type_name("PORT")
          ->check(cli::between(1, 65535));
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  for (CLI::Option* other : {connect, local, json}) other->excludes(listen_flag);
  cli::set_examples(
      *command,
      {{"weft doctor", "look at this host"},
       {"weft doctor --listen", "on one host, and then on the other one:"},
       {"weft doctor --peer 192.0.2.7", "examine the way between the two"},
       {"weft doctor --local-port 18515", "who holds the port that a program cannot have?"}},
      "Exit status: 0 when all was looked at and nothing stops a connection; 1 when something "
      "does,\n"
      "or could not be tested; 2 for wrong usage. Notes do not count. --listen ends with 0 at a "
      "signal.\n"
      "See docs/doctor.md.");
  command->callback([options, port, &status] {
    if (port->count() != 0 && options->peer.empty() && !options->listen) {
      throw CLI::RequiresError("--port", "--peer or --listen");
    }
    status = options->listen ? listen(*options) : run_checks(*options);
  });
}

}  // namespace weft::doctor
