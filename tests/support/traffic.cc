#include "tests/support/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/draw.h"

namespace weft::test {

using rdmap::Operation;
using rdmap::Status;

namespace {

constexpr size_t kGuard = 48;  // bytes between places that nobody may touch

// A registered piece of memory in which requests get places, and what it must look like at the end.
class Arena {
 public:
  explicit Arena(uint64_t salt) : salt_(salt) {}
  // Places are handed out before anything is posted.
  size_t place(size_t n, size_t align = 1) {
    size_ = (size_ + kGuard + align - 1) / align * align;
    const size_t at = size_;
    size_ += n;
    return at;
  }
  void make(Host& host, uint8_t rights) {
    memory = pattern_bytes(size_ + kGuard + 8, salt_);
    // Atomics need their places aligned in the address, too.
    base = (8 - reinterpret_cast<uintptr_t>(memory.data()) % 8) % 8;
    before = final = memory;
    stag = host.add_region(memory, rights);
  }
  std::byte* at(size_t place) { return memory.data() + base + place; }
  uint64_t address(size_t place) const {
    return reinterpret_cast<uintptr_t>(memory.data()) + base + place;
  }
  Bytes initially(size_t place, size_t n) const { return Bytes{before}.subspan(base + place, n); }
  Bytes now(size_t place, size_t n) const { return Bytes{memory}.subspan(base + place, n); }
  Bytes finally(size_t place, size_t n) const { return Bytes{final}.subspan(base + place, n); }
  void expect(size_t place, Bytes bytes) {
    std::copy(bytes.begin(), bytes.end(), final.begin() + static_cast<ptrdiff_t>(base + place));
  }
  bool as_expected() const { return memory == final; }
  // Every byte is the one from before or the one that was to come. `zeros`: or nothing, as in the
  // receive of a message that came
  // early and was not finished.
  bool nothing_foreign(bool zeros = false) const {
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] == before[i] || memory[i] == final[i]) continue;
      if (!zeros || memory[i] != std::byte{0}) return false;
    }
    return true;
  }

  Buffer memory;
  Buffer before;
  Buffer final;
  size_t base = 0;
  Stag stag;

 private:
  const uint64_t salt_;
  size_t size_ = 0;
};

bool equal(Bytes a, Bytes b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

class Traffic::Flow {
 public:
  Flow(Pair& pair, Side& from, Side& to, const TrafficOptions& options, uint64_t salt)
      : scheduler_(pair.scheduler),
        from_(from),
        to_(to),
        options_(options),
        random_(options.seed * 7919 + salt),
        source_(salt + 1),
        sink_(salt + 2),
        target_(salt + 3),
        inbox_(salt + 4) {
    extension_ = from.stream.parameters().extension;
    reads_ = from.stream.parameters().ord > 0;
    for (size_t i = 0; i < options.requests; ++i) plan(i);
    // The last one asks for all before it.
    requests_.back().signaled = true;
    source_.make(from.host, 0);
    sink_.make(from.host, 1);
    target_.make(to.host, 15);
    inbox_.make(to.host, 1);
    predict();
    schedule();
  }

  void expect_complete() const {
    EXPECT_TRUE(sink_.as_expected()) << "bytes of Reads and Atomics";
    EXPECT_TRUE(target_.as_expected()) << "bytes of Writes and Atomics";
    EXPECT_TRUE(inbox_.as_expected()) << "bytes of Sends";
    EXPECT_TRUE(source_.as_expected());
    ASSERT_EQ(from_.host.sent.size(), requests_.size());
    for (size_t i = 0; i < requests_.size(); ++i) {
      EXPECT_EQ(from_.host.sent[i].wr_id, i) << "completions in the order of posting";
      EXPECT_EQ(from_.host.sent[i].status, Status::success) << i;
    }
    ASSERT_EQ(to_.host.received.size(), receives_.size());
    for (size_t i = 0; i < receives_.size(); ++i) expect_arrival(i);
    EXPECT_EQ(to_.host.invalidated, victims_);
  }

  bool of(const Side& side) const { return &side == &from_; }
  size_t posted() const { return posted_; }
  size_t succeeded() const {
    return static_cast<size_t>(
        std::count_if(from_.host.sent.begin(), from_.host.sent.end(),
                      [](const Host::Done& d) { return d.status == Status::success; }));
  }

  void expect_sound(Damage damage) const {
    const bool placed_wrong = damage != Damage::none;
    EXPECT_TRUE(sink_.nothing_foreign() || placed_wrong);
    EXPECT_TRUE(target_.nothing_foreign() || placed_wrong);
    EXPECT_TRUE(inbox_.nothing_foreign(true) || placed_wrong);
    EXPECT_TRUE(source_.as_expected());
    ASSERT_LE(from_.host.sent.size(), posted_);
    size_t good = 0;
    for (size_t i = 0; i < from_.host.sent.size(); ++i) {
      ASSERT_EQ(from_.host.sent[i].wr_id, i) << "each once, in the order of posting";
      const bool success = from_.host.sent[i].status == Status::success;
      EXPECT_TRUE(!success || good == i) << "a success behind a failure";
      if (success) ++good;
    }
    if (from_.host.end || from_.gone) {
      EXPECT_EQ(from_.host.sent.size(), posted_) << "flushed, all of them";
    }
    for (size_t i = 0; i < good; ++i) expect_done(requests_[i], damage);
    for (size_t i = 0; i < to_.host.received.size(); ++i) {
      if (to_.host.received[i].status != Status::success) {
        EXPECT_EQ(i + 1, to_.host.received.size()) << "nothing is received behind a failure";
        break;
      }
      expect_arrival(i);
    }
  }

 private:
  struct Request {
    Operation operation{};
    uint32_t length = 0;
    size_t from = 0;  // place in source_, or in sink_ of a fenced Write
    bool from_sink = false;
    size_t to = 0;  // place in target_ or sink_
    size_t receive = SIZE_MAX;
    bool signaled = true;
    bool fence = false;
    bool solicited = false;
    bool inlined = false;
    uint32_t immediate = 0;
    uint64_t compare_add = 0;
    uint64_t swap = 0;
    Stag victim;
  };
  struct Receive {
    size_t request = 0;
    size_t place = 0;
    uint32_t room = 0;
  };

  uint32_t draw_length() {
    if (sim::draw_chance(random_, options_.huge_share))
      return static_cast<uint32_t>(sim::draw_below(random_, options_.huge));
    if (sim::draw_below(random_, 12) == 0) return 0;
    return static_cast<uint32_t>(sim::draw_size(random_, options_.most));
  }

  void plan(size_t index) {
    static constexpr Operation kPlain[] = {Operation::write, Operation::send,
                                           Operation::send_invalidate, Operation::read,
                                           Operation::local_invalidate};
    static constexpr Operation kAll[] = {
        Operation::write,          Operation::write_immediate, Operation::send,
        Operation::send_immediate, Operation::send_invalidate, Operation::read,
        Operation::fetch_add,      Operation::compare_swap,    Operation::bind_window};
    Request r;
    r.operation = extension_ ? kAll[sim::draw_below(random_, std::size(kAll))]
                             : kPlain[sim::draw_below(random_, std::size(kPlain))];
    if (has_response(r.operation) && !reads_) r.operation = Operation::write;
    r.length = is_atomic(r.operation) ? 8 : is_local(r.operation) ? 0 : draw_length();
    r.signaled = !options_.unsignaled || sim::draw_below(random_, 3) != 0;
    r.fence = sim::draw_below(random_, 8) == 0;
    r.solicited = sim::draw_below(random_, 2) == 0;
    r.immediate = static_cast<uint32_t>(random_.next());
    r.inlined = r.length <= 200 && !has_response(r.operation) && !is_local(r.operation) &&
                sim::draw_below(random_, 3) == 0;
    // Now and then a fenced Write sends on what the Read before it brings.
    if (r.operation == Operation::write && index > 0 &&
        requests_.back().operation == Operation::read && sim::draw_below(random_, 2) == 0) {
      r.fence = r.from_sink = true;
      r.inlined = false;
      r.length = requests_.back().length;
      r.from = requests_.back().to;
    } else if (!has_response(r.operation)) {
      r.from = source_.place(r.length);
    }
    if (has_response(r.operation)) {
      r.from = target_.place(r.length, is_atomic(r.operation) ? 8 : 1);
      r.to = sink_.place(r.length);
    } else if (is_write(r.operation)) {
      r.to = target_.place(r.length);
    }
    if (is_send(r.operation) || r.operation == Operation::write_immediate) {
      const uint32_t bytes = is_send(r.operation) ? r.length : 0;
      const uint32_t room = bytes + static_cast<uint32_t>(sim::draw_below(random_, 3) == 0
                                                              ? sim::draw_below(random_, 500)
                                                              : 0);
      r.receive = receives_.size();
      receives_.push_back({.request = index, .place = inbox_.place(room), .room = room});
    }
    requests_.push_back(r);
  }

  void predict() {
    for (Request& r : requests_) {
      switch (r.operation) {
        case Operation::write:
        case Operation::write_immediate:
          target_.expect(r.to, r.from_sink ? sink_.finally(r.from, r.length)
                                           : source_.initially(r.from, r.length));
          break;
        case Operation::read:
          sink_.expect(r.to, target_.initially(r.from, r.length));
          break;
        case Operation::fetch_add:
        case Operation::compare_swap:
          predict_atomic(r);
          break;
        case Operation::send_invalidate: {
          victims_memory_.push_back(std::make_unique<Buffer>(16));
          r.victim = to_.host.add_region(*victims_memory_.back());
          victims_.push_back(r.victim);
          inbox_.expect(receives_[r.receive].place, source_.initially(r.from, r.length));
          break;
        }
        case Operation::send:
        case Operation::send_immediate:
          inbox_.expect(receives_[r.receive].place, source_.initially(r.from, r.length));
          break;
        case Operation::local_invalidate:
        case Operation::bind_window:
          break;
      }
    }
  }

  void predict_atomic(Request& r) {
    uint64_t old = 0;
    std::memcpy(&old, target_.at(r.from), 8);
    sink_.expect(r.to, target_.initially(r.from, 8));
    r.compare_add = random_.next();
    r.swap = random_.next();
    uint64_t fresh = old + r.compare_add;
    if (r.operation == Operation::compare_swap) {
      if (sim::draw_below(random_, 2) == 0) r.compare_add = old;
      fresh = r.compare_add == old ? r.swap : old;
    }
    target_.expect(r.from, std::as_bytes(std::span{&fresh, 1}));
  }

  Time some_time() { return scheduler_.now() + sim::draw_up_to(random_, options_.spread); }

  void schedule() {
    std::vector<Time> when;
    for (size_t i = 0; i < requests_.size(); ++i) when.push_back(some_time());
    std::sort(when.begin(), when.end());
    for (const Time t : when) {
      scheduler_.at(t, [this] {
        post();
        from_.pump();
      });
    }
    std::vector<Time> receives;
    for (size_t i = 0; i < receives_.size(); ++i) {
      receives.push_back(sim::draw_chance(random_, options_.late_receives) ? some_time()
                                                                           : scheduler_.now());
    }
    std::sort(receives.begin(), receives.end());
    for (const Time t : receives) {
      scheduler_.at(t, [this] {
        post_receive();
        to_.receives_posted();
      });
    }
  }

  // The bytes [place, place + n) of an arena in segments of any size.
  std::vector<rdmap::LocalSegment> cut(const Arena& arena, size_t place, size_t n) {
    std::vector<rdmap::LocalSegment> list;
    size_t at = 0;
    while (at < n || sim::draw_below(random_, 4) == 0) {
      size_t part = n - at;
      if (list.size() < 10 && sim::draw_below(random_, 2) == 0)
        part = sim::draw_below(random_, part + 1);
      list.push_back({arena.address(place + at), static_cast<uint32_t>(part), arena.stag});
      at += part;
      if (list.size() == 12) break;
    }
    return list;
  }

  void post() {
    if (from_.host.end || from_.gone) return;
    const Request& r = requests_[posted_];
    const Arena& remote = target_;
    const bool to_sink = has_response(r.operation);
    rdmap::SendWqe w{.wr_id = posted_,
                     .operation = r.operation,
                     .signaled = r.signaled,
                     .fence = r.fence,
                     .solicited = r.solicited,
                     .inlined = r.inlined,
                     .length = r.length,
                     .remote_stag = remote.stag,
                     .remote_to = TaggedOffset{remote.address(to_sink ? r.from : r.to)},
                     .immediate = r.immediate,
                     .compare_add = r.compare_add,
                     .swap = r.swap};
    if (r.operation == Operation::send_invalidate) w.remote_stag = r.victim;
    ++posted_;
    if (r.inlined) {
      rdmap::SendWqe& slot = from_.host.post(w);
      std::copy_n(source_.at(r.from), r.length, slot.payload());
    } else if (is_local(r.operation)) {
      from_.host.post(w);
    } else if (to_sink) {
      from_.host.post(w, cut(sink_, r.to, r.length));
    } else {
      from_.host.post(w, cut(r.from_sink ? sink_ : source_, r.from, r.length));
    }
  }

  void post_receive() {
    const Receive& r = receives_[received_];
    to_.host.post_receive(received_++, cut(inbox_, r.place, r.room));
  }

  void expect_arrival(size_t i) const {
    const Host::Arrived& got = to_.host.received[i];
    const Request& r = requests_[receives_[i].request];
    EXPECT_EQ(got.wr_id, i) << "receives in the order of posting";
    EXPECT_EQ(got.status, Status::success) << i;
    EXPECT_EQ(got.arrival.length, r.length) << i;
    EXPECT_EQ(got.arrival.solicited, r.solicited) << i;
    EXPECT_EQ(got.arrival.write_with_immediate, r.operation == Operation::write_immediate) << i;
    const bool immediate =
        r.operation == Operation::write_immediate || r.operation == Operation::send_immediate;
    EXPECT_EQ(got.arrival.has_immediate, immediate) << i;
    if (immediate) {
      EXPECT_EQ(got.arrival.immediate, r.immediate) << i;
    }
    if (r.operation == Operation::send_invalidate) {
      EXPECT_EQ(got.arrival.invalidated_stag, r.victim) << i;
    }
    if (is_send(r.operation)) {
      EXPECT_TRUE(equal(inbox_.now(receives_[i].place, r.length),
                        inbox_.finally(receives_[i].place, r.length)))
          << "bytes of receive " << i;
    } else {
      EXPECT_TRUE(equal(target_.now(r.to, r.length), target_.finally(r.to, r.length)))
          << "bytes of the Write before immediate " << i;
    }
  }

  // It completed well: its effect is there.
  void expect_done(const Request& r, Damage damage) const {
    if (has_response(r.operation)) {
      EXPECT_TRUE(equal(sink_.now(r.to, r.length), sink_.finally(r.to, r.length)))
          << "a Read completed without its bytes";
    }
    // Towards a plain peer, and with completion=llp, the others say nothing about the peer.
    if (!extension_ || from_.completes_early) return;
    if (is_write(r.operation) && damage == Damage::none) {
      EXPECT_TRUE(equal(target_.now(r.to, r.length), target_.finally(r.to, r.length)))
          << "a Write completed without its bytes";
    }
    if (r.receive != SIZE_MAX) {
      EXPECT_GT(to_.host.received.size(), r.receive) << "a Send completed without its receive";
    }
  }

  sim::Scheduler& scheduler_;
  Side& from_;
  Side& to_;
  const TrafficOptions options_;
  SeededRandom random_;
  bool extension_ = false;
  bool reads_ = true;

  std::vector<Request> requests_;
  std::vector<Receive> receives_;
  std::vector<Stag> victims_;
  std::vector<std::unique_ptr<Buffer>> victims_memory_;
  size_t posted_ = 0;
  size_t received_ = 0;
  Arena source_;  // at `from`
  Arena sink_;    // at `from`
  Arena target_;  // at `to`
  Arena inbox_;   // at `to`
};

Traffic::Traffic(Pair& pair, const TrafficOptions& options)
    : forth_(std::make_unique<Flow>(pair, pair.a, pair.b, options, 100)),
      back_(std::make_unique<Flow>(pair, pair.b, pair.a, options, 200)) {}
Traffic::~Traffic() = default;

void Traffic::expect_complete() const {
  {
    SCOPED_TRACE("from the Initiator to the Responder");
    forth_->expect_complete();
  }
  SCOPED_TRACE("from the Responder to the Initiator");
  back_->expect_complete();
}

void Traffic::expect_sound(Damage damage) const {
  {
    SCOPED_TRACE("from the Initiator to the Responder");
    forth_->expect_sound(damage);
  }
  SCOPED_TRACE("from the Responder to the Initiator");
  back_->expect_sound(damage);
}

const Traffic::Flow& Traffic::flow(const Side& side) const {
  return forth_->of(side) ? *forth_ : *back_;
}
size_t Traffic::posted(const Side& side) const {
  return flow(side).posted();
}
size_t Traffic::succeeded(const Side& side) const {
  return flow(side).succeeded();
}

}  // namespace weft::test
