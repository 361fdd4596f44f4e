#include "stream/command.h"

#include "cli/command_line.h"

namespace weft::stream {

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
