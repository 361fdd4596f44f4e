// `weft stream send`.
#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "stream/address_options.h"
#include "stream/command.h"
#include "stream/sample_time.h"
#include "stream/sender.h"
#include "stream/shape_options.h"
#include "stream/side_options.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

struct SendCommand {
  SenderOptions options;
  double rate_mbps = -1;
  std::string start;
  CLI::Option* transport_given = nullptr;
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
  if (sources == 0 && source.loop) cli::wrong_usage("--loop is for --file, --pcap and --recording");
  const bool numbered = !source.pcap.empty() || !source.recordings.empty();
  if (numbered && c.first_given->count() > 0) {
    cli::wrong_usage("--first: packets of --pcap and --recording have numbers of their own");
  }
  if (!source.recordings.empty()) {
    const auto files = static_cast<uint32_t>(source.recordings.size());
    if (c.streams_given->count() > 0 && c.options.outlet.streams != files) {
      cli::wrong_usage(fmt::format("--streams {}, and {} recordings: a stream has a file each",
                                   c.options.outlet.streams, files));
    }
    c.options.outlet.streams = files;
  }
  if (c.start.empty()) return;
  if (!numbered) {
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
  if (o.receiver.empty() && o.udp_receiver.empty()) {
    cli::wrong_usage("name the receiver: ADDRESS, or --plain-udp ADDRESS:PORT");
  }
  if (!o.receiver.empty() && !o.udp_receiver.empty()) {
    cli::wrong_usage(fmt::format("two receivers are named: {}, and {} by --plain-udp", o.receiver,
                                 o.udp_receiver));
  }
  if (!o.receiver.empty()) check_place("receiver", o.receiver, false);
  if (!o.udp_receiver.empty()) {
    if (c.transport_given->count() > 0 && o.outlet.transport != Transport::udp) {
      cli::wrong_usage("--plain-udp: is --transport udp, and no other");
    }
    o.outlet.transport = Transport::udp;
    check_place("--plain-udp", o.udp_receiver, true);
    const size_t colon = o.udp_receiver.find(':');
    o.outlet.address = o.udp_receiver.substr(0, colon);
    if (!o.outlet.shape.names_streams()) {
      check_ports("--plain-udp", std::stoul(o.udp_receiver.substr(colon + 1)), o.outlet.streams);
    }
  }
  const bool verbs = o.outlet.transport == Transport::rc || o.outlet.transport == Transport::uc;
  if (!verbs && o.outlet.group > 1) {
    cli::wrong_usage("--packets-per-write is for --transport rc and uc");
  }
  o.own_pace = c.rate_mbps < 0;
  if (c.rate_mbps < 0) {
    o.packets_per_second = o.outlet.shape.packets_per_second();
  } else {
    o.packets_per_second = c.rate_mbps * 1e6 / 8 / o.outlet.shape.packet_bytes();
  }
  if (c.first_given->count() > 0) o.first = c.first;
  check_own_address(o.outlet.own_address);
  o.outlet.interface = o.outlet.own_address;
  begin_side(o.outlet.library, o.report, o.outlet.own_address);
  o.report.who = "weft stream send";
  return Sender{o}.run();
}

}  // namespace

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
  c->transport_given = command->get_option("--transport");
  const auto shape = std::make_shared<ShapeOptions>(*command, o.outlet.shape);
  c->streams_given = command
                         ->add_option("--streams", o.outlet.streams,
                                      "How many streams; of recordings: as many as there are files")
                         ->check(cli::between(1U, 4096U))
                         ->capture_default_str();
  command->add_option("--first-stream", o.first_stream, "What the receiver calls the first one")
      ->check(cli::between(0U, 4095U))
      ->capture_default_str();
  command
      ->add_option("--rate", c->rate_mbps,
                   "Mb/s of each stream; 0: as fast as it goes; without: as a capture or recording "
                   "was; else VDIF's --frames-per-second, or as many packets a second as LOFAR's "
                   "sample clock makes (RSP: 764 Mb/s)")
      ->check(cli::between(0.0, 1e6));
  command->add_option("--duration", o.duration, "Seconds; without: until a signal")
      ->check(cli::seconds(0.001));
  command->add_option("--packets", o.packets, "Of each stream; without: no limit")
      ->check(cli::between(uint64_t{1}, kMostNumber));
  c->first_given =
      command->add_option("--first", c->first, "Number of the first packet; without: by the clock")
          ->check(cli::between(uint64_t{0}, kMostNumber - 1));
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
      ->check(cli::milliseconds(0))
      ->capture_default_str();
  command->add_option("--delay", o.delay, "Seconds between being connected and the first packet")
      ->check(cli::seconds(0));
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

}  // namespace weft::stream
