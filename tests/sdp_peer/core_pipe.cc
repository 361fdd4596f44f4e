// One SDP connection of weft's whose messages are lines of hexadecimal digits: what a peer in
// another language is tested against. Reads a command a line, and answers each by lines that end
// with ".":
//
//   message HEX     the peer sent it       data HEX, urgent, aborted, violation TEXT
//   data HEX        send as Data           (nothing where it may not go: "no")
//   advertise N F   SrcAvail of N bytes whose first one is F
//   read N          starts a Read          read TO LENGTH
//   finish          ends the oldest Read
//   write N         a Write of at most N    write TO LENGTH, or "no"; what goes out is behind it
//   offer N TO      SinkAvail of N bytes    (nothing where it may not go: "no")
//   mode NAME       changes the mode of what it sends: pipelined, combined
//   ask, cancel_offers asks for Pipelined mode; takes back its SinkAvails
//   refuse, cancel, posted, end, abort, greet
//
// Behind each command stands what goes out by it: "out HEX", and what became of a SrcAvail
// ("outcome BYTES") and of the oldest SinkAvail ("written BYTES").
#include <charconv>
#include <deque>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "sdp/core/connection.h"

namespace {

using namespace weft;
using namespace weft::sdp;

std::string hex(Bytes bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 0xf];
  }
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, value, 16);
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

class Pipe {
 public:
  explicit Pipe(const Connection::Limits& limits) : connection_(limits) {}

  void run(const std::string& line) {
    std::istringstream words{line};
    std::string command;
    words >> command;
    if (command == "message") {
      take(next(words));
    } else if (command == "data") {
      send(next(words));
    } else if (command == "advertise") {
      advertise(words);
    } else if (command == "read") {
      start_read(words);
    } else if (command == "finish") {
      finish_read();
    } else if (command == "refuse") {
      connection_.refuse_src_avail();
    } else if (command == "cancel") {
      connection_.cancel_src_avail();
    } else if (command == "write") {
      write(words);
    } else if (command == "offer") {
      offer(words);
    } else if (command == "mode") {
      (void)connection_.change_send_mode(next(words) == "pipelined" ? Mode::pipelined
                                                                    : Mode::combined);
    } else if (command == "ask") {
      connection_.ask_for_pipelined();
    } else if (command == "cancel_offers") {
      connection_.cancel_sink_avail();
    } else if (command == "posted") {
      connection_.posted();
    } else if (command == "greet") {
      connection_.greet();
    } else if (command == "end") {
      connection_.end_sending();
      connection_.everything_is_sent();
    } else if (command == "abort") {
      connection_.abort();
    }
    while (const auto m = connection_.next_control())
      say("out", hex(Bytes{m->bytes}.first(m->length)));
    if (const auto outcome = connection_.take_outcome())
      say("outcome", std::to_string(outcome->bytes));
    while (const auto written = connection_.take_written())
      say("written", std::to_string(*written));
    std::cout << "." << std::endl;
  }

 private:
  static void say(const char* what, const std::string& more = {}) {
    std::cout << what << (more.empty() ? "" : " ") << more << "\n";
  }
  static std::string next(std::istringstream& words) {
    std::string word;
    words >> word;
    return word;
  }

  void take(const std::string& text) {
    const auto message = from_hex(text);
    const auto in = connection_.on_message(message);
    if (!in.ok()) return say("violation", weft::sdp::text(in.error()));
    if (!in->payload.empty()) say("data", hex(in->payload));
    if (in->urgent) say("urgent");
    if (in->aborted) say("aborted");
    if (connection_.got_end()) say("ended");
  }

  void send(const std::string& text) {
    const auto payload = from_hex(text);
    if (!connection_.data_may_go() || payload.size() > connection_.max_payload()) return say("no");
    std::vector<std::byte> message(Bsdh::kSize);
    connection_.send_data(message.data(), static_cast<uint32_t>(payload.size()), 0);
    message.insert(message.end(), payload.begin(), payload.end());
    say("out", hex(message));
  }

  void advertise(std::istringstream& words) {
    uint32_t length = 0;
    unsigned first = 0;
    uint64_t to = 0;
    words >> length >> first >> to;
    if (!connection_.may_advertise()) return say("no");
    const auto m = connection_.send_src_avail({length, 7, to}, static_cast<std::byte>(first));
    say("out", hex(Bytes{m.bytes}.first(m.length)));
  }

  void write(std::istringstream& words) {
    uint32_t most = 0;
    words >> most;
    if (!connection_.may_write()) return say("no");
    const auto piece = connection_.start_write(most);
    say("write", std::to_string(piece.to) + " " + std::to_string(piece.length));
  }

  void offer(std::istringstream& words) {
    uint32_t length = 0;
    uint64_t to = 0;
    words >> length >> to;
    if (!connection_.may_send_sink_avail()) return say("no");
    const auto m = connection_.send_sink_avail(length, 8, to);
    say("out", hex(Bytes{m.bytes}.first(m.length)));
  }

  void start_read(std::istringstream& words) {
    uint32_t most = 0;
    words >> most;
    if (connection_.sink().available() == 0) return say("no");
    const Sink::Piece piece = connection_.start_read(most);
    reads_.push_back(piece.length);
    say("read", std::to_string(piece.to) + " " + std::to_string(piece.length));
  }

  void finish_read() {
    if (reads_.empty()) return say("no");
    connection_.finish_read(reads_.front());
    reads_.pop_front();
  }

  Connection connection_;
  std::deque<uint32_t> reads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto number = [&](int i) { return static_cast<uint32_t>(std::stoul(argv[i])); };
  Pipe pipe{{.own_bufs = static_cast<uint16_t>(number(1)),
             .peer_bufs = static_cast<uint16_t>(number(2)),
             .own_receive_size = number(3),
             .peer_receive_size = number(3),
             .own_max_adverts = 2,
             .peer_max_adverts = 2}};
  for (std::string line; std::getline(std::cin, line);) pipe.run(line);
  return 0;
}
