#include "stream/receiver.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "measure/own_usage.h"
#include "stream/counters.h"

namespace weft::stream {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kHousekeepingNs = 20 * kMs;  // between two looks at what takes its time
constexpr int64_t kStragglers = 300 * kMs;     // silence after which nothing is on its way any more
constexpr int kWaitMs = 20;
constexpr int kLooksBehindStall = 3;      // each with a wait behind it
constexpr int64_t kStallNs = 100 * kMs;   // after so long this thread was kept from running
constexpr uint64_t kInvalidInVain = 100;  // packets, of a stream of which none was received

LedgerRules rules_of(const ReceiverOptions& options) {
  const bool landing = options.inlet.transport >= Transport::rc;
  return {.hold = ordered(options.inlet.transport) ? 0 : options.hold,
          .guard = landing ? std::max(options.ring.blocks / 4, 1U) : 0,
          .credit = options.inlet.transport == Transport::rc};
}

std::unique_ptr<Inlet> make_inlet(const InletOptions& options, Lanes& lanes, Ring& ring) {
  if (options.transport >= Transport::rc) return make_verbs_inlet(options, lanes, ring);
  return make_socket_inlet(options, lanes);
}

Lanes make_lanes(Ring& ring, const LedgerRules& rules) {
  Lanes lanes;
  for (uint32_t i = 0; i < ring.spec().streams; ++i) lanes.emplace_back(ring.stream(i), rules);
  return lanes;
}

nlohmann::json as_json(const Counts& c) {
  return {{"received", c.received},   {"missing", c.missing},   {"late", c.late},
          {"duplicate", c.duplicate}, {"overrun", c.overrun},   {"out_of_order", c.out_of_order},
          {"recovered", c.recovered}, {"invalid", c.invalid},   {"flagged", c.flagged},
          {"foreign", c.foreign},     {"control", c.control},   {"gap", c.gap},
          {"gap_sent", c.gap_sent},   {"sessions", c.sessions}, {"blocks", c.blocks}};
}

}  // namespace

Receiver::Receiver(const ReceiverOptions& options)
    : options_(options),
      listener_(listener(options.inlet.address, options.control_port)),
      ring_(options.ring),
      lanes_(make_lanes(ring_, rules_of(options))),
      waker_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      report_(options.report),
      served_(lanes_.size()),
      told_of_invalid_(lanes_.size()) {
  options_.inlet.waker = waker_.get();
  options_.inlet.tell = [this](const nlohmann::json& event) { report_.tell(event); };
  inlet_ = make_inlet(options_.inlet, lanes_, ring_);
  options_.sink.tell = options_.inlet.tell;
  sink_ = make_sink(options_.sink, ring_);
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    const auto end = sink_ ? sink_->end_before(i) : ring_.end_before(i);
    if (end) lanes_[i].ledger.follow(*end);
  }
  listening_ = std::thread{[this] { listen(); }};
}

Receiver::~Receiver() {
  stop_ = true;
  if (listening_.joinable()) listening_.join();
  {
    const std::lock_guard lock{mutex_};
    // Nobody answers them any more: their promises break, and their threads end.
    closed_ = true;
    events_.clear();
    // Who has an answer already still has to say it.
    for (const Connection& v : connections_) {
      if (!v.answered) v.control->shut();
    }
  }
  running_.clear();
  for (Connection& v : connections_) v.thread.join();
  sink_.reset();  // it may have something to report
}

void Receiver::handle_events() {
  uint64_t ignored = 0;
  while (::read(waker_.get(), &ignored, sizeof ignored) > 0) {
  }
  std::vector<Event> events;
  {
    const std::lock_guard lock{mutex_};
    events.swap(events_);
  }
  for (Event& event : events) {
    if (auto* begins = std::get_if<std::unique_ptr<Begin>>(&event)) {
      begin(**begins);
    } else {
      note_end(std::move(std::get<std::unique_ptr<End>>(event)));
    }
  }
}

void Receiver::note_end(std::unique_ptr<End> event) {
  for (auto& r : running_) {
    if (r->sender.session != event->session) continue;
    for (size_t i = 0; i < event->end.size() && i < r->sender.streams.size(); ++i) {
      Lane& lane = lanes_[r->sender.streams[i]];
      if (lane.session == event->session && lane.ledger.may_end(event->end[i])) {
        lane.end = event->end[i];
        const uint64_t on = i < event->goes_on.size() ? event->goes_on[i] : 0;
        if (on >= *lane.end && lane.ledger.may_end(on)) lane.goes_on = on;
      }
    }
    r->end_seen_ns = kit::now_ns();
    r->end = std::move(event);
    return;
  }
}

// The last one to come has the stream. The one before it is told, so that the two do not take it
// from each other for ever.
void Receiver::make_room_for(const ConnectedSender& sender) {
  for (size_t i = 0; i < running_.size();) {
    Running& other = *running_[i];
    const auto& others = other.sender.streams;
    const bool clash = std::any_of(others.begin(), others.end(), [&](uint32_t stream) {
      return std::find(sender.streams.begin(), sender.streams.end(), stream) !=
             sender.streams.end();
    });
    if (!clash) {
      ++i;
      continue;
    }
    if (!other.end) {
      try {
        other.control->send({{"error", "another sender has taken over a stream of this one"}});
      } catch (const kit::Failure&) {
        // It is gone.
      }
    }
    close(other);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Receiver::note_first_begin() {
  if (first_begin_ns_) return;
  first_begin_ns_ = kit::now_ns();
  cpu_before_ = measure::own_usage().cpu_s;
}

void Receiver::begin(Begin& event) {
  const ConnectedSender& sender = event.sender;
  note_first_begin();
  make_room_for(sender);
  std::vector<uint64_t> first;
  for (size_t i = 0; i < sender.streams.size(); ++i) {
    Lane& lane = lanes_[sender.streams[i]];
    const Counts counted = lane.ledger.counts();
    const uint64_t before = lane.ledger.next();
    const uint64_t wish = event.wishes[i];
    first.push_back(event.fixed ? wish : lane.ledger.may_begin(wish));
    if (event.anew[i]) {
      lane.ledger.begin_anew(first[i]);
      report_.tell(
          {{"event", "jump"}, {"stream", sender.streams[i]}, {"from", before}, {"to", first[i]}});
    } else {
      lane.ledger.begin(first[i], event.resumed_from[i]);
    }
    lane.session = sender.session;
    lane.end.reset();
    lane.goes_on.reset();
    lane.last_arrival_ns = kit::now_ns();
    const Counts& counts = lane.ledger.counts();
    if (const uint64_t more = counts.gap - counted.gap; more > 0) {
      report_.tell({{"event", "gap"},
                    {"stream", sender.streams[i]},
                    {"from", before != 0 ? before : first[i] - more},
                    {"to", first[i]},
                    {"packets", more},
                    {"sent", counts.gap_sent - counted.gap_sent}});
    }
  }
  try {
    inlet_->begin(sender);
  } catch (const std::exception&) {
    // This sender alone has to go.
    inlet_->end(sender);
    for (const uint32_t stream : sender.streams) {
      lanes_[stream].ledger.finish(std::nullopt);
      lanes_[stream].session = 0;
    }
    event.first.set_exception(std::current_exception());
    return;
  }
  running_.push_back(std::make_unique<Running>(
      Running{.sender = sender, .control = event.control, .end = nullptr, .end_seen_ns = 0}));
  event.first.set_value(std::move(first));
  report_.tell(
      {{"event", "connected"}, {"sender", sender.address}, {"stream_numbers", sender.streams}});
}

// While this thread did not run, nobody was silent whose packets wait in the transport since.
int64_t Receiver::quiet_since_of(const Lane& lane) const {
  return std::max(lane.last_arrival_ns, resumed_ns_);
}

// Whether all that the sender sent is here, or nothing more is to be expected.
bool Receiver::through(const Running& running, int64_t now_ns) const {
  if (!running.end) return false;
  for (const uint32_t stream : running.sender.streams) {
    const Lane& lane = lanes_[stream];
    if (lane.session != running.sender.session) continue;
    if (lane.end && lane.ledger.all_here(*lane.end)) continue;
    // A sender that paused and then ends says so while its last packets are on their way.
    const int64_t quiet_since = std::max(quiet_since_of(lane), running.end_seen_ns);
    if (lane.blocked || now_ns - quiet_since < kStragglers) return false;
  }
  return true;
}

// Its thread tells the sender.
void Receiver::answer(Running& running, nlohmann::json counts) {
  const std::lock_guard lock{mutex_};
  for (Connection& v : connections_) {
    if (v.control.get() == running.control) v.answered = true;
  }
  running.end->counts.set_value(std::move(counts));
}

void Receiver::close(Running& running) {
  for (const uint32_t stream : running.sender.streams) {
    if (lanes_[stream].session == running.sender.session) inlet_->settle(stream, kit::now_ns());
  }
  inlet_->end(running.sender);
  auto counts = nlohmann::json::array();
  for (const uint32_t stream : running.sender.streams) {
    Lane& lane = lanes_[stream];
    if (lane.session == running.sender.session) {
      lane.ledger.finish(lane.goes_on ? lane.goes_on : lane.end);
      lane.session = 0;
      lane.ended_ns = kit::now_ns();
      if (lane.end && !lane.goes_on) note_served(stream);
    }
    counts.push_back(as_json(lane.ledger.counts()));
  }
  if (!running.end) return;
  answer(running, std::move(counts));
  // The sender of a capture whose numbers jump comes again at once.
  if (!running.end->goes_on.empty()) return;
  report_.tell({{"event", running.end->end.empty() ? "lost" : "ended"},
                {"sender", running.sender.address},
                {"stream_numbers", running.sender.streams}});
}

// Of a sender that says neither hello nor goodbye.
void Receiver::end_silent(size_t stream, int64_t now_ns) {
  Lane& lane = lanes_[stream];
  if (!lane.ledger.running() && !lane.continuity.any_waits() && !lane.undecided) return;
  inlet_->settle(static_cast<uint32_t>(stream), now_ns);
  lane.ledger.finish(std::nullopt);
  lane.continuity.end();
  lane.ended_ns = now_ns;
  note_served(static_cast<uint32_t>(stream));
}

// Its sender has ended, and did not break off.
void Receiver::note_served(uint32_t stream) {
  served_[stream] = true;
  if (sink_) sink_->end_stream(stream);
}

// Where nothing of a stream is of use, somebody has to be told why.
void Receiver::tell_of_invalid(size_t stream) {
  const Lane& lane = lanes_[stream];
  if (lane.ledger.any_came() || !lane.first_invalid || told_of_invalid_[stream]) return;
  told_of_invalid_[stream] = true;
  report_.tell({{"event", "invalid"},
                {"stream", stream},
                {"packets", lane.ledger.counts().invalid},
                {"reason", lane.first_invalid->reason},
                {"fields", lane.first_invalid->fields},
                {"header", lane.first_invalid->header}});
}

void Receiver::look_after_streams(int64_t now_ns) {
  for (size_t i = 0; i < running_.size();) {
    if (through(*running_[i], now_ns)) {
      close(*running_[i]);
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  const auto idle_ns = static_cast<int64_t>(options_.idle_ms * kMs);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    lane.store.look_after_consumer();
    // Of senders that do not say hello.
    if (lane.ledger.running()) note_first_begin();
    if (lane.session == 0 && now_ns - quiet_since_of(lane) > idle_ns) end_silent(i, now_ns);
    if (lane.ledger.counts().invalid >= kInvalidInVain) tell_of_invalid(i);
  }
  const std::lock_guard lock{mutex_};
  for (auto v = connections_.begin(); v != connections_.end();) {
    if (v->over) {
      v->thread.join();
      v = connections_.erase(v);
    } else {
      ++v;
    }
  }
}

bool Receiver::all_served() const {
  return running_.empty() && std::all_of(served_.begin(), served_.end(), [](bool b) { return b; });
}

Snapshot Receiver::snapshot() const {
  Snapshot s{.side = "recv",
             .seconds = 0,
             .cpu_s = measure::own_usage().cpu_s,
             .bytes = 0,
             .facts = {{"transport", options_.inlet.transport},
                       {"kernel_drops", inlet_->dropped_by_kernel()},
                       {"senders", running_.size()}},
             .streams = {}};
  if (options_.inlet.transport == Transport::uc) {
    const Absent absent = absent_so_far();
    s.facts["datagrams_lost"] = absent.lost;
    s.facts["kernel_drops"] = absent.overruns;
  }
  if (sink_) {
    s.facts["written"] = sink_->bytes();
    if (const auto direct = sink_->direct()) s.facts["direct"] = *direct;
  }
  for (const Lane& lane : lanes_) {
    nlohmann::json json = as_json(lane.ledger.counts());
    const uint64_t bytes = lane.ledger.counts().received * options_.ring.shape.packet_bytes();
    json["open"] = lane.ledger.open();
    json["bytes"] = bytes;
    json["fill"] = static_cast<double>(lane.store.filled()) / lane.store.blocks();
    s.bytes += bytes;
    s.streams.push_back(std::move(json));
  }
  return s;
}

// Behind a stall: did anything come meanwhile? The transport's own thread may need a moment to
// bring it.
bool Receiver::anything_waits() {
  for (int look = 0; look < kLooksBehindStall; ++look) {
    if (inlet_->take(kit::now_ns())) return true;
    inlet_->wait(kWaitMs);
  }
  return false;
}

// Until it is told to end, or all is done.
void Receiver::receive(int64_t start) {
  const int64_t until = start + static_cast<int64_t>(options_.duration * 1e9);
  int64_t looked = start;
  int64_t shown = start;
  int64_t last_turn = start;
  for (int64_t now = start; !cli::stop_asked(); now = kit::now_ns()) {
    // Where a machine is so busy that each turn is a stall, senders become silent all the same.
    if (now - last_turn > kStallNs && anything_waits()) resumed_ns_ = now;
    last_turn = now;
    if (!inlet_->take(now)) inlet_->wait(kWaitMs);
    if (posted_.exchange(false)) handle_events();
    if (now - looked < kHousekeepingNs) continue;
    looked = now;
    look_after_streams(now);
    if (now - shown >= 1'000'000'000) {
      shown += 1'000'000'000;
      Snapshot s = snapshot();
      s.seconds = kit::seconds_between(start, now);
      report_.show(s);
    }
    if (options_.duration > 0 && now >= until) break;
    if (options_.once && all_served()) break;
    if (sink_ && sink_->failed()) break;
  }
}

void Receiver::end_all() {
  for (auto& r : running_) close(*r);
  running_.clear();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    inlet_->settle(static_cast<uint32_t>(i), kit::now_ns());
    lanes_[i].ledger.finish(std::nullopt);
    if (lanes_[i].ledger.counts().invalid > 0) tell_of_invalid(i);
  }
}

int Receiver::run() {
  const int64_t start = kit::now_ns();
  for (const nlohmann::json& circuit : inlet_->circuits()) report_.tell(circuit);
  report_.tell({{"event", "listening"}, {"port", own_port(listener_)}});
  // The first one: no memory, say, or a full disk. The account is worth all the more, and each part
  // is ended.
  std::optional<kit::Failure> failure;
  const auto attempt = [&failure](const auto& part) {
    try {
      part();
    } catch (const std::exception& e) {
      if (!failure) failure = kit::Failure{e.what()};
    }
  };
  attempt([&] { receive(start); });
  attempt([&] { end_all(); });
  attempt([&] {
    if (sink_) sink_->finish();
  });
  Snapshot s = snapshot();
  if (failure) s.facts["error"] = failure->what();
  const int64_t end = kit::now_ns();
  s.seconds = kit::seconds_between(start, end);
  if (first_begin_ns_) {
    if (sink_) s.facts["written_seconds"] = kit::seconds_between(*first_begin_ns_, end);
    int64_t last = *first_begin_ns_;
    for (const Lane& lane : lanes_) last = std::max(last, lane.last_arrival_ns);
    s.busy_seconds = kit::seconds_between(*first_begin_ns_, last);
    s.idle_cpu_s = cpu_before_;
  }
  report_.show_last(s);
  if (!failure) return 0;
  // Said here: after a signal the sink's threads may keep this process from returning.
  std::fputs(fmt::format("{}: {}\n", options_.report.who, failure->what()).c_str(), stderr);
  return 1;
}

}  // namespace weft::stream
