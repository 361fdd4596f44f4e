#include "doctor/segment_trials.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <list>

namespace weft::doctor {
namespace {

using Outcome = SegmentFacts::Outcome;
using Clock = std::chrono::steady_clock;

// Between two looks at what the kernel says of a connection.
constexpr auto kLook = 100ms;
// What paths carry, as IP packets: Ethernet with jumbo frames of several sizes, tunnels of several
// kinds, and what every path carries of IPv6 and of IPv4.
constexpr std::array<uint32_t, 12> kUsual = {8900, 8000, 4000, 2000, 1500, 1492,
                                             1480, 1450, 1420, 1400, 1280, 576};

// One connection, one segment.
class Trial {
 public:
  // `packet`: IP packet that the segment makes; 0: a full one.
  Trial(Consultation& consultation, const port::Address& to, Way way, uint32_t packet)
      : consultation_(consultation),
        control_(connect_to(to, kPatience)),
        way_(way),
        id_(next_id()) {
    control_.stream().keep_calls_apart();
    before_ = state();
    bytes_ = packet == 0 ? 0 : packet - overhead();
    if (way == Way::there && packet == 0) bytes_ = before_.mss;
    control_.send({{"trial", consultation.token()},
                   {"id", id_},
                   {way == Way::there ? "take" : "give", bytes_}});
  }
  ~Trial() { control_.stream().reset(); }  // or the kernel would go on trying
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  int fd() const { return control_.fd(); }
  Outcome outcome() const { return outcome_; }
  bool over() const { return outcome_ != Outcome::untested; }
  // The IP packet of the segment; known once it is under way.
  uint32_t packet() const { return (giving_ ? static_cast<uint32_t>(full_) : bytes_) + overhead(); }

  // Something came, or the connection broke.
  void hear() {
    if (giving_) return take();
    const bool open = control_.fetch();
    if (const auto line = control_.next()) begin(*line);
    if (!open && !over()) outcome_ = Outcome::unclear;
  }
  // Asks the kernel of the side that sends. It counts only what came of one segment: nothing.
  void look() {
    if (over() || !begun_) return;
    const uint32_t again =
        way_ == Way::there
            ? state().retransmits
            : consultation_.ask({{"ask", "stream"}, {"id", id_}}).at("retransmits").get<uint32_t>();
    if (again >= kVanishedAfter) outcome_ = Outcome::vanished;
  }
  void give_up() {
    if (!over()) outcome_ = Outcome::unclear;
  }
  // The IP packet of a full segment now: less than before where the path told.
  uint32_t full_now() {
    if (way_ == Way::there) return state().packet;
    return consultation_.ask({{"ask", "stream"}, {"id", id_}}).at("packet").get<uint32_t>();
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
      begun_ = giving_ = true;
      full_ = line.at("giving").get<uint64_t>();
      came_ = control_.take_rest().size();
      take();
    } else if (line.contains("taken")) {
      outcome_ = Outcome::passed;
    } else {
      throw kit::Failure("the other doctor says what was not asked");
    }
  }
  void take() {
    std::array<std::byte, 65'536> piece;
    const IoVec place{piece.data(), piece.size()};
    bool open = true;
    while (open) {
      const auto t = control_.stream().receive({&place, 1});
      if (t.would_block) break;
      open = !t.end && t.error == 0;
      came_ += t.bytes;
    }
    if (came_ >= full_) {
      outcome_ = Outcome::passed;
    } else if (!open) {
      give_up();
    }
  }

  Consultation& consultation_;
  Control control_;
  const Way way_;
  uint32_t bytes_ = 0;  // payload of the segment
  const uint64_t id_;
  SegmentState before_;
  bool begun_ = false;
  bool giving_ = false;
  uint64_t full_ = 0;  // bytes that the peer gives
  uint64_t came_ = 0;
  Outcome outcome_ = Outcome::untested;
};

// Until all are over.
void run(std::list<Trial>& trials) {
  const auto end = Clock::now() + kPatience;
  for (;;) {
    std::vector<pollfd> watched;
    std::vector<Trial*> open;
    for (Trial& t : trials) {
      if (t.over()) continue;
      watched.push_back({t.fd(), POLLIN, 0});
      open.push_back(&t);
    }
    if (open.empty()) return;
    if (Clock::now() > end) {
      for (Trial* t : open) t->give_up();
      return;
    }
    const int ready = poll(watched.data(), watched.size(), static_cast<int>(kLook.count()));
    for (size_t i = 0; i < open.size(); ++i) {
      if (ready > 0 && watched[i].revents != 0) open[i]->hear();
      if (ready == 0) open[i]->look();
    }
  }
}

}  // namespace

SegmentFacts try_segments(Consultation& consultation, const port::Address& to, Way way,
                          uint32_t hint) {
  std::list<Trial> full;
  full.emplace_back(consultation, to, way, 0);
  run(full);
  Trial& first = full.front();
  SegmentFacts facts{.outcome = first.outcome(), .full = first.packet()};
  if (facts.outcome == Outcome::passed) {
    facts.largest = facts.full;
    facts.after = first.full_now();
  }
  if (facts.outcome != Outcome::vanished) return facts;

  std::vector<uint32_t> packets(kUsual.begin(), kUsual.end());
  if (hint != 0) packets.push_back(hint);
  std::list<Trial> smaller;
  for (const uint32_t packet : packets) {
    if (packet < facts.full) smaller.emplace_back(consultation, to, way, packet);
  }
  run(smaller);
  for (const Trial& t : smaller) {
    if (t.outcome() == Outcome::passed) facts.largest = std::max(facts.largest, t.packet());
  }
  return facts;
}

}  // namespace weft::doctor
