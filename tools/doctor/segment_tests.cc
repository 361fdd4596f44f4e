#include "doctor/segment_tests.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <list>

namespace weft::doctor {
namespace {

using Outcome = SegmentFacts::Outcome;
using Clock = std::chrono::steady_clock;

// Between two looks at the kernel's state of a connection.
constexpr auto kLook = 100ms;
// What paths carry, as IP packets: Ethernet with jumbo frames of several sizes, tunnels of several
// kinds, and what every path carries of IPv6 and of IPv4.
constexpr std::array<uint32_t, 12> kUsual = {8900, 8000, 4000, 2000, 1500, 1492,
                                             1480, 1450, 1420, 1400, 1280, 576};

// One connection, one segment.
class SegmentTest {
 public:
  // `packet`: IP packet that the segment makes; 0: a full one.
  SegmentTest(Client& client, const port::Address& to, Direction direction, uint32_t packet)
      : client_(client),
        control_(connect_to(to, kAnswerTimeout)),
        direction_(direction),
        id_(next_id()) {
    control_.stream().keep_calls_apart();
    before_ = state();
    bytes_ = packet == 0 ? 0 : packet - overhead();
    if (direction == Direction::to_peer && packet == 0) bytes_ = before_.mss;
    control_.send({{"trial", client.token()},
                   {"id", id_},
                   {direction == Direction::to_peer ? "take" : "give", bytes_}});
  }
  ~SegmentTest() { control_.stream().reset(); }  // else the kernel would go on retransmitting
  SegmentTest(const SegmentTest&) = delete;
  SegmentTest& operator=(const SegmentTest&) = delete;

  int fd() const { return control_.fd(); }
  Outcome outcome() const { return outcome_; }
  bool over() const { return outcome_ != Outcome::untested; }
  // The IP packet of the segment; known once it is under way.
  uint32_t packet() const {
    return (receiving_ ? static_cast<uint32_t>(size_) : bytes_) + overhead();
  }

  // The connection is readable, or broke.
  void on_readable() {
    if (receiving_) return receive();
    const bool open = control_.fetch();
    if (const auto line = control_.next()) begin(*line);
    if (!open && !over()) outcome_ = Outcome::unclear;
  }
  // Asks the sending kernel. Only retransmissions in a row count: nothing was acknowledged.
  void check_retransmits() {
    if (over() || !begun_) return;
    const uint32_t retransmits =
        direction_ == Direction::to_peer
            ? state().retransmits
            : client_.request({{"ask", "stream"}, {"id", id_}}).at("retransmits").get<uint32_t>();
    if (retransmits >= kVanishedAfter) outcome_ = Outcome::vanished;
  }
  void give_up() {
    if (!over()) outcome_ = Outcome::unclear;
  }
  // The IP packet of a full segment now: less than before if a router said so.
  uint32_t full_now() {
    if (direction_ == Direction::to_peer) return state().packet;
    return client_.request({{"ask", "stream"}, {"id", id_}}).at("packet").get<uint32_t>();
  }

 private:
  static uint64_t next_id() {
    static uint64_t last = 0;
    return ++last;
  }
  SegmentState state() const { return segment_state(control_.stream()); }
  uint32_t overhead() const { return before_.packet - before_.mss; }

  void begin(const nlohmann::json& line) {
    if (line.contains("ready")) {
      begun_ = true;
      control_.send_text(std::string(bytes_, 'w'));
    } else if (line.contains("giving")) {
      begun_ = receiving_ = true;
      size_ = line.at("giving").get<uint64_t>();
      received_ = control_.take_rest().size();
      receive();
    } else if (line.contains("taken")) {
      outcome_ = Outcome::passed;
    } else {
      throw kit::Failure("the other doctor says what was not asked");
    }
  }
  void receive() {
    std::array<std::byte, 65'536> piece;
    const IoVec place{piece.data(), piece.size()};
    bool open = true;
    while (open) {
      const auto t = control_.stream().receive({&place, 1});
      if (t.would_block) break;
      open = !t.end && t.error == 0;
      received_ += t.bytes;
    }
    if (received_ >= size_) {
      outcome_ = Outcome::passed;
    } else if (!open) {
      give_up();
    }
  }

  Client& client_;
  ControlConnection control_;
  const Direction direction_;
  uint32_t bytes_ = 0;  // payload of the segment
  const uint64_t id_;
  SegmentState before_;
  bool begun_ = false;
  bool receiving_ = false;
  uint64_t size_ = 0;  // bytes that the peer sends
  uint64_t received_ = 0;
  Outcome outcome_ = Outcome::untested;
};

// Until all are over.
void run(std::list<SegmentTest>& tests) {
  const auto end = Clock::now() + kAnswerTimeout;
  for (;;) {
    std::vector<pollfd> watched;
    std::vector<SegmentTest*> open;
    for (SegmentTest& t : tests) {
      if (t.over()) continue;
      watched.push_back({t.fd(), POLLIN, 0});
      open.push_back(&t);
    }
    if (open.empty()) return;
    if (Clock::now() > end) {
      for (SegmentTest* t : open) t->give_up();
      return;
    }
    const int ready = poll(watched.data(), watched.size(), static_cast<int>(kLook.count()));
    for (size_t i = 0; i < open.size(); ++i) {
      if (ready > 0 && watched[i].revents != 0) open[i]->on_readable();
      if (ready == 0) open[i]->check_retransmits();
    }
  }
}

}  // namespace

SegmentFacts test_segments(Client& client, const port::Address& to, Direction direction,
                           uint32_t hint) {
  std::list<SegmentTest> full;
  full.emplace_back(client, to, direction, 0);
  run(full);
  SegmentTest& first = full.front();
  SegmentFacts facts{.outcome = first.outcome(), .full = first.packet()};
  if (facts.outcome == Outcome::passed) {
    facts.largest = facts.full;
    facts.after = first.full_now();
  }
  if (facts.outcome != Outcome::vanished) return facts;

  std::vector<uint32_t> packets(kUsual.begin(), kUsual.end());
  if (hint != 0) packets.push_back(hint);
  std::list<SegmentTest> smaller;
  for (const uint32_t packet : packets) {
    if (packet < facts.full) smaller.emplace_back(client, to, direction, packet);
  }
  run(smaller);
  for (const SegmentTest& t : smaller) {
    if (t.outcome() == Outcome::passed) facts.largest = std::max(facts.largest, t.packet());
  }
  return facts;
}

}  // namespace weft::doctor
