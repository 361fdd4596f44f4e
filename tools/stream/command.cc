#include "stream/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

#include "cli/command_line.h"
#include "cli/stop.h"
#include "kit/failure.h"
#include "kit/launch.h"
#include "measure/energy_option.h"
#include "stream/address_options.h"
#include "stream/output/file_layout.h"
#include "stream/receiver.h"
#include "stream/sample_time.h"
#include "stream/sender.h"
#include "stream/shape_options.h"
#include "stream/utc.h"
#include "stream/verbs_device.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

const std::map<std::string, Transport> kTransports{
    {"tcp", Transport::tcp}, {"udp", Transport::udp}, {"rc", Transport::rc}, {"uc", Transport::uc}};

const std::map<std::string, Layout> kLayouts{{"blocks", Layout::blocks},
                                             {"packets", Layout::packets},
                                             {"dada", Layout::dada},
                                             {"guppi", Layout::guppi},
                                             {"vdif", Layout::vdif}};

void add_transport_options(CLI::App& command, Transport& transport, std::string& library) {
  command.add_option("--transport", transport, "tcp, udp, rc or uc")
      ->transform(cli::one_of(kTransports))
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

// What kit::Failure says is wrong with the command.
template <class F>
void check_usage(F&& f) {
  try {
    f();
  } catch (const kit::Failure& failure) {
    cli::wrong_usage(failure.what());
  }
}

void complete(std::string& library, ReportOptions& report) {
  if (library.empty()) library = kit::own_library_folder() + "/" + kit::kLibraries[0];
  report.live = !report.json && ::isatty(STDERR_FILENO) == 1;
  cli::catch_stop_signals();
}

// What weft's library is told, unless the user told it something else.
void lead_library(const std::string& address) {
  // The device takes the address of a route otherwise.
  if (!address.empty()) prefer_address(address);
  // Both sides look by themselves at least every 2 ms: the helper thread need not, which would be a
  // wake-up more each time.
  ::setenv("WEFT_TAKEOVER", "10000", 0);
}

int64_t time_option(const std::string& name, const std::string& text) {
  const auto ns = parse_utc(text);
  if (!ns) {
    cli::wrong_usage(fmt::format("{} {}: a time is as 2026-11-25T09:30:00.5, in UTC", name, text));
  }
  return *ns;
}

struct SendCommand {
  SenderOptions options;
  double rate_mbps = -1;
  std::string start;
  CLI::Option* streams_given = nullptr;
  uint64_t first = 0;
  CLI::Option* first_given = nullptr;
};

// Where packets come from.
void complete_source(SendCommand& c) {
  SourceOptions& source = c.options.source;
  const Shape& shape = c.options.outlet.shape;
  const int sources = (source.file.empty() ? 0 : 1) + (source.pcap.empty() ? 0 : 1) +
                      (source.recordings.empty() ? 0 : 1);
  if (sources > 1) cli::wrong_usage("--file, --pcap and --recording exclude each other");
  if (!source.recordings.empty()) {
    const auto files = static_cast<uint32_t>(source.recordings.size());
    if (c.streams_given->count() > 0 && c.options.outlet.streams != files) {
      cli::wrong_usage(fmt::format("--streams {}, and {} recordings: a stream has a file each",
                                   c.options.outlet.streams, files));
    }
    c.options.outlet.streams = files;
  }
  if (c.start.empty()) return;
  if (source.pcap.empty() && source.recordings.empty()) {
    cli::wrong_usage("--start is for --pcap and --recording");
  }
  if (source.pcap.empty() && !tells_time(shape)) {
    cli::wrong_usage(
        fmt::format("--start needs packets that tell their time: those of --format {} "
                    "do not, but a capture of them does (--pcap)",
                    name_of(shape.format)));
  }
  source.start = time_option("--start", c.start);
}

int send(SendCommand& c) {
  SenderOptions& o = c.options;
  complete_source(c);
  if (o.receiver.empty() == o.udp_receiver.empty()) {
    cli::wrong_usage("name the receiver: ADDRESS, or --plain-udp ADDRESS:PORT");
  }
  if (!o.receiver.empty()) check_place("receiver", o.receiver, false);
  if (!o.udp_receiver.empty()) {
    o.outlet.transport = Transport::udp;
    check_place("--plain-udp", o.udp_receiver, true);
    o.outlet.address = o.udp_receiver.substr(0, o.udp_receiver.find(':'));
  }
  const bool verbs = o.outlet.transport == Transport::rc || o.outlet.transport == Transport::uc;
  if (!verbs) o.outlet.group = 1;
  o.own_pace = c.rate_mbps < 0;
  if (c.rate_mbps < 0) {
    o.packets_per_second = o.outlet.shape.packets_per_second();
  } else {
    o.packets_per_second = c.rate_mbps * 1e6 / 8 / o.outlet.shape.packet_bytes();
  }
  if (c.first_given->count() > 0) o.first = c.first;
  check_own_address(o.outlet.own_address);
  o.outlet.interface = o.outlet.own_address;
  complete(o.outlet.library, o.report);
  lead_library(o.outlet.own_address);
  o.report.who = "weft stream send";
  return Sender{o}.run();
}

void add_send_command(CLI::App& parent, int& status) {
  CLI::App* command = parent.add_subcommand("send", "Send streams of packets at a station's pace");
  const auto c = std::make_shared<SendCommand>();
  SenderOptions& o = c->options;
  command->add_option("receiver", o.receiver, "Where `weft stream recv` runs")
      ->type_name("ADDRESS[:PORT]");
  command
      ->add_option("--plain-udp", o.udp_receiver,
                   "UDP to this port and those behind it, one a stream, without a connection "
                   "for control: to any program")
      ->type_name("ADDRESS:PORT");
  add_transport_options(*command, o.outlet.transport, o.outlet.library);
  const auto shape = std::make_shared<ShapeOptions>(*command, o.outlet.shape);
  c->streams_given = command
                         ->add_option("--streams", o.outlet.streams,
                                      "How many streams; of recordings: as many as there are files")
                         ->check(cli::between(1U, 4096U))
                         ->capture_default_str();
  command->add_option("--first-stream", o.first_stream, "What the receiver calls the first one")
      ->capture_default_str();
  command
      ->add_option("--rate", c->rate_mbps,
                   "Mb/s of each stream; 0: as fast as it goes; without: that of the packets of a "
                   "capture or recording, and else of LOFAR's sample clock, 764 Mb/s")
      ->check(cli::between(0.0, 1e6));
  command->add_option("--duration", o.duration, "Seconds; without: until a signal");
  command->add_option("--packets", o.packets, "Of each stream; without: no limit");
  c->first_given =
      command->add_option("--first", c->first, "Number of the first packet; without: by the clock");
  command->add_option("--file", o.source.file, "Take the samples from this file")
      ->type_name("FILE");
  command
      ->add_option("--pcap", o.source.pcap,
                   "Take the packets from this capture, which may be compressed (.zst)")
      ->type_name("FILE");
  command
      ->add_option("--recording", o.source.recordings,
                   "Take the packets from these files, one for each stream: packets one after the "
                   "other, with their headers, as recorders of LOFAR's lanes write them; .zst too")
      ->type_name("FILE");
  command
      ->add_option("--start", c->start,
                   "Begin a capture or recording with the packets of this moment: UTC, "
                   "as 2026-11-25T09:30:00")
      ->type_name("TIME");
  command->add_flag("--loop", o.source.loop,
                    "Begin a file again at its end; numbers and times of a capture go on");
  command->add_option("--packets-per-write", o.outlet.group, "rc and uc: packets of an RDMA Write")
      ->check(cli::between(1U, kMostInWrite))
      ->capture_default_str();
  command->add_option("--tick", o.tick_us, "Microseconds between two wake-ups, at least")
      ->check(cli::between(0.0, 1e6))
      ->capture_default_str();
  command
      ->add_option("--max-late", o.max_late_ms,
                   "udp and uc: skip packets that are later than so many milliseconds; 0: never")
      ->capture_default_str();
  command->add_option("--delay", o.delay, "Seconds between being connected and the first packet");
  command->add_option("--bind", o.outlet.own_address,
                      "Send from this address, and multicast by its interface");
  command->add_option("--ttl", o.outlet.hops, "Hops that packets to a multicast group pass")
      ->check(cli::between(0, 255))
      ->capture_default_str();
  add_report_options(*command, o.report);
  cli::set_examples(
      *command,
      {{"weft stream send 192.0.2.7 --streams 4 --duration 60",
        "a minute at LOFAR's pace, over UC"},
       {"weft stream send 192.0.2.7 --transport tcp --rate 0", "as fast as TCP goes"},
       {"weft stream send 192.0.2.7 --file samples.raw --loop", "samples from a file"},
       {"weft stream send 192.0.2.7 --recording lane0.zst lane1.zst --start 2026-11-25T09:30:00",
        "two recorded lanes, from that time on, as fast as they came"}},
      "SIGINT or SIGTERM ends it within a second, with its report. Exit status: 0 when the "
      "receiver\n"
      "knows of all that was sent, 1 when it does not, 2 for wrong usage; 130 or 143 when it had "
      "to\n"
      "be cut off. docs/streams.md explains it.");
  command->callback([c, shape, &status] {
    shape->complete();
    status = send(*c);
  });
}

void expect_circuits(ReceiverOptions& o) {
  if (o.inlet.transport != Transport::uc) cli::wrong_usage("--static is for --transport uc");
  auto& from = o.inlet.circuits;
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
  if (port < 1024 || (port >= 24576 && port < 32768) || port > 65534) {
    cli::wrong_usage(fmt::format(
        "--udp-port {}: with --static it is as WEFT_UC_PORT: 1024 to 24575, or 32768 to "
        "65534",
        port));
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
  if (!o.inlet.circuits.empty()) expect_circuits(o);
  check_own_address(o.inlet.address);
  check_usage([&] { join_groups(c); });
  complete(o.inlet.library, o.report);
  lead_library(o.inlet.address);
  o.report.who = "weft stream recv";
  return Receiver{o}.run();
}

void add_recv_command(CLI::App& parent, int& status) {
  CLI::App* command =
      parent.add_subcommand("recv", "Receive streams into a ring of blocks with validity maps");
  const auto c = std::make_shared<ReceiveCommand>();
  ReceiverOptions& o = c->options;
  add_transport_options(*command, o.inlet.transport, o.inlet.library);
  const auto shape = std::make_shared<ShapeOptions>(*command, o.inlet.shape);
  command->add_option("--streams", o.ring.streams, "How many streams")->capture_default_str();
  command->add_option("--port", o.control_port, "Where senders say hello (TCP)")
      ->capture_default_str();
  command->add_option("--bind", o.inlet.address,
                      "Listen at this address only, and join groups by its interface");
  command
      ->add_option("--group", c->groups,
                   "udp: join this multicast group, or with +N the N behind it, too; one for all "
                   "streams, or one each, all at --udp-port")
      ->type_name("ADDRESS[+N][@SOURCE]");
  command->add_option("--udp-port", o.inlet.udp_port,
                      "udp: the first stream's port, the others behind it; takes senders without "
                      "control, too. With --static: the port for circuits (4348)");
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
  command->add_option("--duration", o.duration, "Seconds; without: until a signal");
  command->add_flag("--once", o.once, "End when each stream had a sender that ended");
  command
      ->add_option("--idle", o.idle_ms,
                   "udp without control, and --static: milliseconds of silence that end a sender")
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

}  // namespace

void add_stream_command(CLI::App& weft, int& status) {
  CLI::App* command =
      weft.add_subcommand("stream", "Send and receive streams of packets, as telescopes do");
  command->require_subcommand(1);
  add_send_command(*command, status);
  add_recv_command(*command, status);
  cli::set_examples(*command,
                    {{"weft stream recv --streams 4", "waits for senders"},
                     {"weft stream send 192.0.2.7 --streams 4", "on another machine: sends to it"}},
                    "docs/streams.md explains it.");
}

}  // namespace weft::stream
