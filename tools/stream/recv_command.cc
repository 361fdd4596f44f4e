// `weft stream recv`.
#include <fmt/format.h>

#include <bit>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/adapter_ports.h"
#include "cli/command_line.h"
#include "kit/failure.h"
#include "stream/address_options.h"
#include "stream/command.h"
#include "stream/output/file_layout.h"
#include "stream/receiver.h"
#include "stream/shape_options.h"
#include "stream/side_options.h"
#include "stream/verbs_device.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

const std::map<std::string, Layout> kLayouts{{"blocks", Layout::blocks},
                                             {"packets", Layout::packets},
                                             {"dada", Layout::dada},
                                             {"guppi", Layout::guppi},
                                             {"vdif", Layout::vdif}};

// What kit::Failure says is wrong with the command.
template <class F>
void check_usage(F&& f) {
  try {
    f();
  } catch (const kit::Failure& failure) {
    cli::wrong_usage(failure.what());
  }
}

void expect_circuits(ReceiverOptions& o) {
  if (o.inlet.transport != Transport::uc) cli::wrong_usage("--static is for --transport uc");
  auto& from = o.inlet.circuits;
  for (const std::string& address : from) check_address("--static", address);
  if (from.size() == 1) from.resize(o.ring.streams, from[0]);
  if (from.size() != o.ring.streams) {
    cli::wrong_usage("--static takes one address, or one for each stream");
  }
  // So a packet's place follows from the bits of its number that the immediate has.
  if (!std::has_single_bit(o.ring.blocks * o.ring.packets_per_block)) {
    cli::wrong_usage("--static needs --blocks and --block that are powers of two");
  }
  if (o.inlet.udp_port == 0) o.inlet.udp_port = kStaticPort;
  // As WEFT_UC_PORT (docs/options.md), of which weft's library would only warn.
  const auto port = o.inlet.udp_port;
  if (!is_adapter_port(port)) {
    cli::wrong_usage(
        fmt::format("--udp-port {}: with --static it is as WEFT_UC_PORT: {}", port, kAdapterPorts));
  }
  ::setenv("WEFT_UC", "static", 1);
  // All streams at one port, however many CPUs there are.
  ::setenv("WEFT_ENGINES", "1", 0);
  // Their datagrams have none, and would all be refused.
  ::setenv("WEFT_DATAGRAM_CRC", "off", 1);
  ::setenv("WEFT_UC_PORT", std::to_string(o.inlet.udp_port).c_str(), 1);
}

struct ReceiveCommand {
  ReceiverOptions options;
  std::string start;
  std::vector<std::string> rotation;
  std::vector<std::string> groups;
};

// Throws kit::Failure.
void join_groups(ReceiveCommand& c) {
  InletOptions& inlet = c.options.inlet;
  for (const std::string& text : c.groups) {
    const auto some = groups_of(text);
    inlet.groups.insert(inlet.groups.end(), some.begin(), some.end());
  }
  if (inlet.groups.empty()) return;
  if (inlet.transport != Transport::udp) throw kit::Failure{"--group is for --transport udp"};
  const size_t groups = inlet.groups.size();
  if (!inlet.shape.names_streams() && groups != 1 && groups != c.options.ring.streams) {
    throw kit::Failure{fmt::format(
        "--group: {} groups for {} streams; it takes one, or one for each, or any number where "
        "packets name their stream (--stream-number)",
        groups, c.options.ring.streams)};
  }
}

// What is written, and where.
void complete_sink(ReceiveCommand& c) {
  SinkOptions& sink = c.options.sink;
  for (const std::string& text : c.rotation) {
    if (!parse_rotation(text, sink.rotation)) {
      cli::wrong_usage(
          fmt::format("--rotate {}: a time as 10s, 5min or 1h, or a size as 500MB or "
                      "2GiB",
                      text));
    }
  }
  if (!c.start.empty()) sink.start = time_option("--start", c.start);
  const FileName name{sink.file};
  if (const std::string unknown = name.unknown(); !unknown.empty()) {
    cli::wrong_usage(fmt::format("--file {}: {} is none of {{stream}}, {{number}} and {{time}}",
                                 sink.file, unknown));
  }
  const bool one_file = sink.layout == Layout::blocks;
  if (!one_file && c.options.ring.streams > 1 && !name.tells_stream()) {
    cli::wrong_usage(
        fmt::format("--file {}: each stream has files of its own, so that {{stream}} "
                    "has to be in the name",
                    sink.file));
  }
  if (one_file && name.tells_stream()) {
    cli::wrong_usage("--file: blocks of all streams are in one file; {stream} is for --as");
  }
  if (sink.rotation.any() && !name.tells_number() && !name.tells_time()) {
    cli::wrong_usage(
        fmt::format("--file {}: with --rotate {{number}} or {{time}} has to be in the "
                    "name",
                    sink.file));
  }
  if (one_file && !sink.rotation.any() && (name.tells_number() || name.tells_time())) {
    cli::wrong_usage("--file: {number} and {time} are for --rotate and --as");
  }
  if (!sink.header.empty() && sink.layout != Layout::dada && sink.layout != Layout::guppi) {
    cli::wrong_usage("--header is for --as dada and guppi");
  }
  check_usage([&] {
    if (!one_file) (void)make_file_layout(sink.layout, c.options.inlet.shape, {});
  });
}

int receive(ReceiveCommand& c) {
  ReceiverOptions& o = c.options;
  o.ring.shape = o.inlet.shape;
  o.ring.slot_bytes = slot_bytes_for(o.inlet.shape.packet_bytes());
  o.ring.landing = o.inlet.transport == Transport::uc || o.inlet.transport == Transport::rc;
  o.ring.apart = o.inlet.transport == Transport::uc && o.inlet.circuits.empty();
  if (o.hold + o.ring.blocks / 4 + 2 > o.ring.blocks) {
    cli::wrong_usage("--hold leaves too few blocks; take more --blocks");
  }
  const int sinks =
      (o.ring.name.empty() ? 0 : 1) + (o.sink.file.empty() ? 0 : 1) + (o.sink.to_stdout ? 1 : 0);
  if (sinks > 1) cli::wrong_usage("--ring, --file and --stdout exclude each other");
  if (o.sink.to_stdout && o.report.json) {
    cli::wrong_usage("--stdout leaves no place for --json; --prometheus has the counters, too");
  }
  complete_sink(c);
  if (!o.inlet.circuits.empty()) {
    expect_circuits(o);
  } else if (o.inlet.udp_port != 0 && o.inlet.transport != Transport::udp) {
    cli::wrong_usage("--udp-port is for --transport udp, and for --static");
  }
  check_usage([&] { o.ring.check(); });
  check_own_address(o.inlet.address);
  check_usage([&] { join_groups(c); });
  const bool port_each = o.inlet.transport == Transport::udp && o.inlet.udp_port != 0 &&
                         !o.inlet.shape.names_streams() && o.inlet.groups.size() != o.ring.streams;
  if (port_each) check_ports("--udp-port", o.inlet.udp_port, o.ring.streams);
  begin_side(o.inlet.library, o.report, o.inlet.address);
  o.report.who = "weft stream recv";
  return Receiver{o}.run();
}

}  // namespace

void add_recv_command(CLI::App& parent, int& status) {
  CLI::App* command =
      parent.add_subcommand("recv", "Receive streams into a ring of blocks with validity maps");
  const auto c = std::make_shared<ReceiveCommand>();
  ReceiverOptions& o = c->options;
  add_transport_options(*command, o.inlet.transport, o.inlet.library);
  const auto shape = std::make_shared<ShapeOptions>(*command, o.inlet.shape);
  command->add_option("--streams", o.ring.streams, "How many streams")
      ->check(cli::between(1U, 4096U))
      ->capture_default_str();
  command->add_option("--port", o.control_port, "Where senders say hello (TCP)")
      ->check(cli::between(0U, 65535U))
      ->capture_default_str();
  command->add_option("--bind", o.inlet.address,
                      "Listen at this address only, and join groups by its interface");
  command
      ->add_option("--group", c->groups,
                   "udp: join this multicast group, or with +N the N behind it, too; one for all "
                   "streams, or one each, all at --udp-port")
      ->type_name("ADDRESS[+N][@SOURCE]");
  command
      ->add_option("--udp-port", o.inlet.udp_port,
                   "udp: the first stream's port, the others behind it; takes senders without "
                   "control, too. With --static: the port for circuits (4348)")
      ->check(cli::between(0U, 65535U));
  command
      ->add_option("--static", o.inlet.circuits,
                   "uc: takes streams of circuits, without a word before them, from this address, "
                   "or from one for each stream; says what they have to be told")
      ->type_name("ADDRESS");
  command->add_option("--block", o.ring.packets_per_block, "Packets of a block")
      ->check(cli::between(1U, WEFT_STREAM_MOST_PACKETS))
      ->capture_default_str();
  command->add_option("--blocks", o.ring.blocks, "Blocks of each stream's ring")
      ->check(cli::between(4U, 992U))
      ->capture_default_str();
  command
      ->add_option("--hold", o.hold, "udp and uc: blocks that wait for packets that were overtaken")
      ->check(cli::between(0U, 256U))
      ->capture_default_str();
  command->add_option("--ring", o.ring.name, "Show the ring to other programs as /dev/shm/NAME")
      ->type_name("NAME");
  CLI::Option* file =
      command
          ->add_option("--file", o.sink.file,
                       "Write blocks to this file, behind those that it has, or to a device; with "
                       "--as or --rotate a name of files, in which {stream}, {number} and {time} "
                       "may be")
          ->type_name("PATH");
  command
      ->add_option("--as", o.sink.layout,
                   "What the files are: blocks, or for each stream packets (a recording), dada, "
                   "guppi or vdif")
      ->transform(cli::one_of(kLayouts))
      ->default_str("blocks")
      ->needs(file);
  command
      ->add_option("--rotate", c->rotation,
                   "Begin another file after such a time or size, as 10s or 1GB; twice: what comes "
                   "first. A file has its name when it is whole, and .part behind it before")
      ->type_name("TIME|SIZE")
      ->needs(file);
  command
      ->add_option("--header", o.sink.header,
                   "dada and guppi: keywords and values for the headers of files")
      ->type_name("FILE")
      ->needs(file);
  command
      ->add_option("--start", c->start,
                   "Write nothing that was taken before this moment: UTC, as 2026-11-25T09:30:00")
      ->type_name("TIME")
      ->needs(file);
  command->add_flag("--overwrite", o.sink.overwrite, "Start the file anew, whatever it holds")
      ->needs(file);
  command->add_flag("--stdout", o.sink.to_stdout, "Write packets to standard output");
  command->add_option("--duration", o.duration, "Seconds; without: until a signal")
      ->check(cli::seconds(0.001));
  command->add_flag("--once", o.once, "End when each stream had a sender that ended");
  command
      ->add_option("--idle", o.idle_ms,
                   "udp without control, and --static: milliseconds of silence that end a sender")
      ->check(cli::milliseconds(1))
      ->capture_default_str();
  add_report_options(*command, o.report);
  cli::set_examples(
      *command,
      {{"weft stream recv --streams 4 --ring sky", "into shared memory"},
       {"weft stream recv --file blocks --once", "into a file, one sender"},
       {"weft stream recv --streams 4 --as dada --file '{time}_{stream}.dada' --rotate 10s "
        "--header sky.hdr",
        "PSRDADA's files, of 10 seconds each"},
       {"weft stream recv --transport udp --udp-port 4346", "also from senders without control"},
       {"weft stream recv --transport udp --udp-port 7148 --group 239.2.1.150+3 --streams 4 "
        "--format spead",
        "MeerKAT's digitisers, a multicast group each"},
       {"weft stream recv --transport udp --udp-port 50000 --format vdif --vtp "
        "--frames-per-second 15625",
        "VDIF of 1 Gb/s"}},
      "SIGINT or SIGTERM ends it within a second, with its report. Exit status: 0, 1 when a file "
      "or a\n"
      "pipe did not take what was received, 2 for wrong usage; 130 or 143 when it had to be cut "
      "off.\n"
      "docs/streams.md explains it.");
  command->callback([c, shape, &status] {
    shape->complete();
    status = receive(*c);
  });
}

}  // namespace weft::stream
