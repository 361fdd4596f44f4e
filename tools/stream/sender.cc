#include "stream/sender.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>

#include "base/wall_clock.h"
#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "measure/own_usage.h"
#include "stream/continuity.h"
#include "stream/counters.h"

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDayNs = 86'400 * kSecond;
constexpr int64_t kLookNs = kSecond / 20;        // between two looks at the control connection
constexpr int64_t kHeldUpNs = 100'000;           // until a stream that finds no room is tried again
constexpr int64_t kLastWritesNs = 30 * kSecond;  // of a consumer that holds a sender up
constexpr int kLastWordMs = 100;
constexpr uint32_t kBurst = 16;  // packets of a stream before the next one has its turn
// UC: as many packets of 8 kB fill one train of datagrams (UDP_SEGMENT). They leave together, when
// the last one is due, if that is not more ticks away than this.
constexpr uint32_t kTrain = 8;
constexpr double kTrainTicks = 3;

}  // namespace

Sender::Sender(const SenderOptions& options)
    : options_(options),
      report_(options.report),
      source_(make_source(options.source, options.outlet.shape, options.first_stream,
                          options.outlet.streams)),
      streams_(options.outlet.streams),
      lateness_of_(options.outlet.streams),
      own_numbers_(source_->has_own_numbers()) {
  options_.outlet.shape = source_->shape();
  // Numbers go on wherever a sender begins, as long as the day lasts: the first packet of the day
  // has the number that a station's would have, whose clock began in 1970.
  const int64_t wall = wall_clock_ns();
  const int64_t midnight = wall / kDayNs * kDayNs;
  clock_ = PacketClock{options_.packets_per_second, kit::now_ns() - (wall - midnight),
                       options_.outlet.shape.number_at(midnight)};
  if (own_numbers_) options_.outlet.group = 1;
  if (options_.own_pace && source_->has_own_times()) own_pace_.emplace(streams_.size());
  if (options_.outlet.transport == Transport::uc && options_.outlet.group == 1 && !own_numbers_) {
    const double due = kTrainTicks * options_.tick_us * 1e-6 * options_.packets_per_second;
    train_ = std::clamp(static_cast<uint64_t>(due), uint64_t{1}, uint64_t{kTrain});
  }
  for (size_t i = 0; i < streams_.size() && clock_.paced(); ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(streams_.size());
    streams_[i].stagger_ns = static_cast<int64_t>(turn * 1e9 / options_.packets_per_second);
    streams_[i].phase = static_cast<uint64_t>(turn * static_cast<double>(train_));
  }
}

bool Sender::over(int64_t now_ns) const {
  if (cli::stop_asked()) return true;
  if (options_.duration > 0 &&
      now_ns - start_ns_ >= static_cast<int64_t>(options_.duration * 1e9)) {
    return true;
  }
  return std::all_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.done; });
}

int64_t Sender::due_ns(uint32_t i, uint64_t number) const {
  const Stream& s = streams_[i];
  if (own_pace_) {
    const auto time = source_->own_time_ns(i);
    return time ? own_pace_->due_ns(i, *time) + s.stagger_ns : 0;
  }
  // Of packets with numbers of their own, the clock counts the packets.
  const int64_t due = clock_.due_ns(own_numbers_ ? s.base + s.sent + s.passed : number - s.shift);
  return due + s.stagger_ns;
}

uint64_t Sender::due_before(const Stream& s, int64_t now_ns) const {
  return clock_.due_before(now_ns) + s.shift;
}

// A Write goes to its place whatever lies there: one for a block that was published would change
// what a consumer reads.
bool Sender::too_late_to_land(Stream& s, uint64_t number) const {
  if (options_.outlet.transport < Transport::rc) return false;
  const uint64_t newest = s.landed.empty() ? number : std::max(number, *s.landed.rbegin());
  const uint64_t open = newest / ring_.packets_per_block -
                        std::min<uint64_t>(ring_.open_blocks, newest / ring_.packets_per_block);
  s.landed.erase(s.landed.begin(), s.landed.lower_bound(open * ring_.packets_per_block));
  return number < open * ring_.packets_per_block || !s.landed.insert(number).second;
}

bool Sender::is_jump(const Stream& s, uint64_t number) const {
  return ring_.packets != 0 && (number + ring_.packets < s.end || number >= s.end + ring_.packets);
}

// Builds and sends up to `most` packets; how many it were.
uint32_t Sender::send_some(uint32_t i, uint32_t most) {
  Stream& s = streams_[i];
  if (own_numbers_) {
    const auto number = source_->own_number(i);
    if (!number) {
      s.done = true;
      return 0;
    }
    if (is_jump(s, *number)) {
      s.jumps = true;
      return 0;
    }
    s.next = *number;
    most = 1;
  }
  const uint32_t room = outlet_->room(i, s.next, most);
  uint32_t built = 0;
  bool last = false;
  while (built < room && !last) {
    const Packet packet{outlet_->slot(i, s.next + built), options_.outlet.shape.packet_bytes()};
    if (source_->fill(i, s.next + built, packet)) {
      ++built;
    } else {
      last = true;
    }
  }
  if (built == 0) {
    s.done = s.done || last;
    return 0;
  }
  if (own_numbers_ && too_late_to_land(s, s.next)) {
    ++s.skipped;
    ++s.passed;
    return built;
  }
  if (options_.packets > 0 &&
      (own_numbers_ ? s.sent + built >= options_.packets : s.next + built >= s.last)) {
    last = true;
  }
  // What it throws for was not sent, and is the next one's of another connection.
  outlet_->send(i, s.next, built, last);
  s.done = last;
  s.sent += built;
  s.end = std::max(s.end, s.next + built);
  s.next += built;
  return built;
}

void Sender::skip_what_is_too_old(uint32_t i, int64_t now_ns) {
  Stream& s = streams_[i];
  const auto most = static_cast<int64_t>(options_.max_late_ms * 1e6);
  const bool held_up_by_peer =
      options_.outlet.transport == Transport::tcp || options_.outlet.transport == Transport::rc;
  if (most == 0 || held_up_by_peer || own_numbers_ || now_ns - due_ns(i, s.next) <= most) return;
  uint64_t next = due_before(s, now_ns - s.stagger_ns);
  next = next / options_.outlet.group * options_.outlet.group;
  if (options_.packets > 0) next = std::min(next, s.last);
  if (next <= s.next) return;
  s.skipped += next - s.next;
  s.next = next;
  s.done = options_.packets > 0 && next >= s.last;
}

// A Write leaves when the last of its packets is due, and so does a train of Writes.
uint64_t Sender::together(const Stream& s, uint64_t number) const {
  if (own_numbers_) return 1;
  const uint64_t group = options_.outlet.group;
  uint64_t n = train_ > 1 ? train_ - (number + s.phase) % train_
                          : std::min(group - number % group,
                                     ring_.packets_per_block - number % ring_.packets_per_block);
  if (options_.packets > 0) n = std::min(n, s.last - number);
  return n;
}

uint32_t Sender::send_what_is_due(uint32_t i, uint32_t packets) {
  const Stream& s = streams_[i];
  int64_t due = due_ns(i, s.next);
  const uint64_t first = s.next;
  const uint32_t sent = send_some(i, packets);
  const int64_t left = kit::now_ns();
  if (sent > 0) left_ns_ = left;
  for (uint32_t k = 0; k < sent; ++k) {
    // Numbers of its own: one at a time.
    if (k > 0) due = due_ns(i, first + k);
    lateness_.add(left - due, 1);
    lateness_of_[i].add(left - due, 1);
  }
  return sent;
}

// Without a control connection no session ends where a count begins anew.
void Sender::follow_clock_set_anew(uint32_t i, int64_t now_ns) {
  if (!own_pace_ || ring_.packets != 0) return;
  const Stream& s = streams_[i];
  const auto number = source_->own_number(i);
  const auto time = source_->own_time_ns(i);
  if (!number || !time || s.sent == 0) return;
  if (*number + Continuity::kLongestOutage < s.end ||
      *number > s.end + Continuity::kLongestOutage) {
    own_pace_->begin_anew(i, *time, now_ns);
  }
}

int64_t Sender::serve(uint32_t i, int64_t now_ns) {
  Stream& s = streams_[i];
  if (!clock_.paced()) {
    uint64_t most = std::max(kBurst, options_.outlet.group);
    if (options_.packets > 0 && !own_numbers_) most = std::min(most, s.last - s.next);
    return send_some(i, static_cast<uint32_t>(most)) > 0 ? now_ns : now_ns + kHeldUpNs;
  }
  skip_what_is_too_old(i, now_ns);
  while (!s.done) {
    follow_clock_set_anew(i, now_ns);
    uint64_t n = together(s, s.next);
    const int64_t due = due_ns(i, s.next + n - 1);
    if (due > now_ns) return due;
    // Small packets, or a wake-up that came late: some more at once.
    while (!own_numbers_ && (options_.packets == 0 || s.next + n < s.last)) {
      const uint64_t more = together(s, s.next + n);
      if (n + more > kBurst || due_ns(i, s.next + n + more - 1) > now_ns) break;
      n += more;
    }
    if (send_what_is_due(i, static_cast<uint32_t>(n)) == 0) return now_ns + kHeldUpNs;
  }
  return now_ns + kSecond;
}

Sender::Ending Sender::stream_out() {
  const auto tick = static_cast<int64_t>(options_.tick_us * 1e3);
  int64_t looked = kit::now_ns();
  const int64_t begin = looked + static_cast<int64_t>(options_.delay * 1e9);
  sleep_until(begin);
  if (!ever_connected_) faults_before_ = faults_so_far();
  if (!ever_connected_) sending_since_ns_ = kit::now_ns();
  ever_connected_ = true;
  begin_own_pace(kit::now_ns());
  for (int64_t now = kit::now_ns(); !over(now); now = kit::now_ns()) {
    int64_t wake = now + kLookNs;
    for (uint32_t i = 0; i < streams_.size(); ++i) {
      if (!streams_[i].done) wake = std::min(wake, serve(i, now));
      if (streams_[i].jumps) return Ending::jump;
    }
    (void)outlet_->progress();
    show_now_and_then(now);
    if (now - looked >= kLookNs) {
      looked = now;
      if (receiver_is_gone(0)) return Ending::lost;
    }
    if (wake > now && !over(now)) sleep_until(std::max(wake, now + tick));
  }
  return Ending::complete;
}

void Sender::say_goodbye(bool more) {
  const int64_t until = kit::now_ns() + kLastWritesNs;
  const auto wait_for = [until](auto&& done) {
    while (!done()) {
      if (kit::now_ns() >= cli::wait_until(until)) {
        throw kit::Failure{"the receiver did not take the last packets"};
      }
      sleep_until(kit::now_ns() + kHeldUpNs);
    }
  };
  outlet_->end();
  wait_for([this] { return outlet_->progress(); });
  // What leaves by the clock ends with its last packet: that it has arrived, which a reliable
  // transport waits for, is no part of the rate.
  sent_until_ns_ = left_ns_ > sending_since_ns_ ? left_ns_ : kit::now_ns();
  // What the faults take of the words of parting is none of the stream's.
  faults_ = faults_so_far() - faults_before_;
  if (!control_) return;
  // Behind the word of the end the receiver waits for stragglers alone.
  wait_for([this] { return outlet_->arrived(); });
  std::vector<uint64_t> end;
  for (const Stream& s : streams_) end.push_back(s.end);
  nlohmann::json word = {{"end", end}};
  if (more) word["goes_on"] = numbers_after_jump();
  control_->send(word);
  counts_ = answer_of(*control_, kAnswerMs).value("counts", nlohmann::json{});
}

int Sender::run() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  start_ns_ = shown_ns_ = kit::now_ns();
  bool complete = false;
  bool parted = false;  // with the receiver's knowledge
  while (!complete && find_receiver()) {
    try {
      const Ending ending = stream_out();
      complete = ending == Ending::complete;
      if (ending == Ending::lost) throw kit::Failure{"it closed the control connection"};
      say_goodbye(ending == Ending::jump);
      parted = true;
    } catch (const kit::Failure& failure) {
      report_.tell({{"event", "lost"}, {"reason", failure.what()}});
      // The data path may break before the word comes why.
      (void)receiver_is_gone(kLastWordMs);
      parted = false;
    }
    outlet_.reset();
    control_.reset();
  }
  Snapshot s = snapshot();
  report_.show_last(s);
  if (!source_->error().empty()) throw kit::Failure{source_->error()};
  if (!ever_connected_) throw kit::Failure{"no receiver was found"};
  return parted ? 0 : 1;
}

void Sender::show_now_and_then(int64_t now_ns) {
  if (now_ns - shown_ns_ < kSecond) return;
  shown_ns_ += kSecond;
  report_.show(snapshot());
}

Snapshot Sender::snapshot() const {
  Snapshot s{.side = "send",
             .seconds = kit::seconds_between(start_ns_, kit::now_ns()),
             .cpu_s = measure::own_usage().cpu_s,
             .bytes = 0,
             .facts = {{"transport", options_.outlet.transport},
                       {"connections", connections_},
                       {"unusable", source_->unusable()},
                       {"late_us",
                        {{"p50", lateness_.quantile_us(0.5)},
                         {"p99", lateness_.quantile_us(0.99)},
                         {"max", lateness_.max_us()}}}},
             .streams = {}};
  const Faults faults = faults_ ? *faults_ : faults_so_far() - faults_before_;
  s.facts["faults"] = {{"lost", faults.lost}, {"control", faults.control}};
  if (sent_until_ns_ > 0) {
    s.facts["began_s"] = kit::seconds_between(start_ns_, sending_since_ns_);
    s.facts["sending_s"] = kit::seconds_between(sending_since_ns_, sent_until_ns_);
  }
  if (!counts_.is_null()) s.facts["receiver"] = counts_;
  if (const std::string error = source_->error(); !error.empty()) s.facts["error"] = error;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Stream& stream = streams_[i];
    const uint64_t bytes = stream.sent * options_.outlet.shape.packet_bytes();
    s.streams.push_back({{"sent", stream.sent},
                         {"skipped", stream.skipped},
                         {"bytes", bytes},
                         {"late_p50_us", lateness_of_[i].quantile_us(0.5)},
                         {"late_p99_us", lateness_of_[i].quantile_us(0.99)},
                         {"late_max_us", lateness_of_[i].max_us()}});
    s.bytes += bytes;
  }
  return s;
}

}  // namespace weft::stream
