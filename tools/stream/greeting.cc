// How a sender finds its receiver: what it asks for, what it gets, and who else may take it.
#include <algorithm>
#include <numeric>

#include "base/wall_clock.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "kit/json_numbers.h"
#include "kit/printable.h"
#include "stream/continuity.h"
#include "stream/sender.h"
#include "stream/verbs_device.h"

namespace weft::stream {
namespace {

constexpr int64_t kRetryNs = 200'000'000;

}  // namespace

std::unique_ptr<Outlet> Sender::make_outlet() const {
  switch (options_.outlet.transport) {
    case Transport::tcp:
      return make_tcp_outlet(options_.outlet);
    case Transport::udp:
      return make_udp_outlet(options_.outlet);
    default:
      return make_verbs_outlet(options_.outlet);
  }
}

std::vector<uint64_t> Sender::wished_numbers() {
  std::vector<uint64_t> wishes;
  const int64_t now = kit::now_ns() + static_cast<int64_t>(options_.delay * 1e9);
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const Stream& s = streams_[i];
    uint64_t wish = s.next;
    if (own_numbers_) {
      wish = source_->lowest_own_number(i).value_or(s.next);
    } else if (!s.begun && options_.first) {
      wish = *options_.first;
    } else if (clock_.paced()) {
      wish = std::max(s.next, due_before(s, now));
    } else if (!s.begun) {
      wish = options_.outlet.shape.number_at(wall_clock_ns());
    }
    wishes.push_back(wish);
  }
  return wishes;
}

void Sender::adopt_first_numbers(const std::vector<uint64_t>& first) {
  if (first.size() != streams_.size()) throw kit::Failure{"an answer for other streams"};
  const int64_t now = kit::now_ns() + static_cast<int64_t>(options_.delay * 1e9);
  // Numbers that were given by hand: the first one is due now.
  if (options_.first && !ever_connected_ && clock_.paced()) {
    clock_ = PacketClock{options_.packets_per_second, now, *options_.first};
  }
  plan_own_pace(first);
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    Stream& s = streams_[i];
    if (s.begun) {
      // Numbers of its own are not the clock's: nothing is skipped where they jump.
      if (!own_numbers_ && first[i] > s.next) s.skipped += first[i] - s.next;
      if (options_.packets > 0 && first[i] >= s.last) s.done = true;
    } else {
      s.begun = true;
      s.last = first[i] + options_.packets;
      // The receiver may have had numbers behind the one that was asked for.
      if (options_.first && !own_numbers_) s.shift = first[i] - *options_.first;
      if (clock_.paced()) s.base = clock_.due_before(now);
    }
    s.next = first[i];
    // Of this session: one that sends nothing ends where it began.
    s.end = first[i];
    s.jumps = false;
  }
}

// Where a stream was set anew, its clock was; where there was no receiver, all stood still.
void Sender::plan_own_pace(const std::vector<uint64_t>& first) {
  pace_begins_ = true;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].jumps) pace_begins_ = false;
    streams_[i].set_anew = counts_anew(streams_[i], first[i]);
  }
}

// The next packets leave now.
void Sender::begin_own_pace(int64_t now_ns) {
  if (!own_pace_) return;
  std::optional<int64_t> earliest;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const auto time = source_->own_time_ns(i);
    if (!time) continue;
    earliest = std::min(earliest.value_or(*time), *time);
    if (streams_[i].set_anew) own_pace_->begin_anew(i, *time, now_ns);
  }
  if (pace_begins_ && earliest) own_pace_->begin(*earliest, now_ns);
}

// Whether a stream jumps further than an outage explains.
bool Sender::counts_anew(const Stream& s, uint64_t first) {
  return s.jumps && (first < s.end || first - s.end > Continuity::kLongestOutage);
}

// Where each stream goes on, as far as it counts on.
std::vector<uint64_t> Sender::numbers_after_jump() {
  std::vector<uint64_t> numbers;
  for (uint32_t i = 0; i < streams_.size(); ++i) {
    const Stream& s = streams_[i];
    const uint64_t next = source_->lowest_own_number(i).value_or(s.end);
    numbers.push_back(s.jumps && !counts_anew(s, next) ? next : s.end);
  }
  return numbers;
}

// As the receiver calls them.
std::vector<uint32_t> Sender::own_streams() const {
  std::vector<uint32_t> names(streams_.size());
  std::iota(names.begin(), names.end(), options_.first_stream);
  return names;
}

nlohmann::json Sender::answer_of(Control& control, int most_ms) {
  nlohmann::json answer = control.receive(most_ms);
  const auto error = answer.find("error");
  if (error == answer.end()) return answer;
  const std::string reason =
      kit::printable(error->is_string() ? error->get<std::string>() : error->dump());
  if (answer.value("again", false)) throw kit::Failure{"the receiver: " + reason};
  // Asked again, it would say the same.
  throw std::runtime_error{"the receiver refuses this sender: " + reason};
}

Sender::ReceiverRing Sender::ring_of(const nlohmann::json& answer) {
  const auto packets_per_block = kit::number_at<uint32_t>(answer, "packets_per_block");
  const auto blocks = kit::number_at<uint32_t>(answer, "blocks");
  if (packets_per_block == 0 || blocks == 0) throw kit::Failure{"the receiver has an empty ring"};
  return {.packets_per_block = packets_per_block,
          .open_blocks = static_cast<uint32_t>(kit::number_or(answer, "hold", UINT32_MAX, 0)),
          .packets = uint64_t{packets_per_block} * blocks};
}

void Sender::greet(Control& control) {
  nlohmann::json hello = {
      {"weft_stream", kControlVersion}, {"transport", options_.outlet.transport},
      {"shape", options_.outlet.shape}, {"group", options_.outlet.group},
      {"first", wished_numbers()},      {"ends", outlet_->ends()}};
  std::vector<uint64_t> were_at;
  for (const Stream& s : streams_) were_at.push_back(s.next);
  hello["streams"] = own_streams();
  if (ever_connected_) hello["resumed_from"] = were_at;
  if (own_numbers_) {
    hello["fixed"] = true;
    auto anew = nlohmann::json::array();
    for (uint32_t i = 0; i < streams_.size(); ++i) {
      anew.push_back(counts_anew(streams_[i], hello["first"][i]));
    }
    hello["anew"] = anew;
  }
  control.send(hello);
  const nlohmann::json answer = answer_of(control, kAnswerMs);
  const ReceiverRing ring = ring_of(answer);
  outlet_->connect(answer);
  control.send({{"connected", true}});
  const nlohmann::json go = answer_of(control, kAnswerMs);
  if (!go.contains("go")) throw kit::Failure{"the receiver: " + kit::printable(go.dump())};
  ring_ = ring;
  for (Stream& s : streams_) s.landed.clear();
  adopt_first_numbers(kit::numbers_at(go, "first", kMostNumber - 1));
}

bool Sender::find_receiver() {
  const bool plain = !options_.udp_receiver.empty();
  bool told = false;
  for (int64_t now = kit::now_ns(); !over(now); now = kit::now_ns()) {
    try {
      const sockaddr_in to =
          resolve(plain ? options_.udp_receiver : options_.receiver, kControlPort);
      if (plain) {
        outlet_ = make_outlet();
        auto ends = nlohmann::json::array();
        const bool one_port = options_.outlet.shape.names_streams();
        for (uint32_t i = 0; i < streams_.size(); ++i)
          ends.push_back({{"port", ntohs(to.sin_port) + (one_port ? 0 : i)}});
        outlet_->connect({{"ends", ends}});
        adopt_first_numbers(wished_numbers());
        return true;
      }
      Control control =
          connect_control(to, options_.outlet.own_address, [this] { return over(kit::now_ns()); });
      options_.outlet.address = control.peer_address();
      // Data takes the way of the control connection, whatever the machine's usual route is.
      prefer_address(control.own_address());
      options_.outlet.interface = control.own_address();
      outlet_ = make_outlet();
      greet(control);
      control_.emplace(std::move(control));
      ++connections_;
      report_.tell({{"event", "connected"},
                    {"receiver", options_.outlet.address},
                    {"stream_numbers", own_streams()}});
      return true;
    } catch (const kit::Failure& failure) {
      outlet_.reset();
      if (over(kit::now_ns())) break;
      if (!told) report_.tell({{"event", "waiting"}, {"reason", failure.what()}});
      told = true;
      sleep_until(now + kRetryNs);
      show_now_and_then(now);
    }
  }
  return false;
}

// Until the end the receiver has nothing to say, but that another sender has taken a stream.
bool Sender::receiver_is_gone(int patience_ms) {
  if (!control_ || (patience_ms == 0 && !control_->readable())) return false;
  try {
    (void)answer_of(*control_, std::max(patience_ms, 1));
  } catch (const kit::Failure&) {
    // It may come again.
  }
  return true;
}

}  // namespace weft::stream
