// The baselines: plain sockets, of TCP or of the host's own kind, that move the same messages
// between the same kind of memory.
#include <sys/socket.h>

#include <algorithm>
#include <future>
#include <vector>

#include "bench/region.h"
#include "bench/tcp_socket.h"
#include "bench/work.h"
#include "kit/clock.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

using Connect = port::Fd (*)(const Order& order, const Channel& peer);

// `size` bytes a send, as fast as they go.
class SocketStream final : public Work {
 public:
  SocketStream(const Order& order, Connect to_peer)
      : order_(order),
        connect_(to_peer),
        region_(order.spec.size, slots_of(order.spec)),
        cursor_(region_) {
    if (order.role == Role::initiator) region_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = ProgramSocket{connect_(order_, peer)};
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override {
    if (order_.role == Role::target) region_.clear();
    cleared_at_ = served();
  }

  Done initiate(const Phase& phase) override {
    const int64_t start = kit::now_ns();
    const int64_t end = start + phase.duration_ns;
    uint64_t messages = 0;
    int64_t now = start;
    while (phase.warm_up ? messages < phase.messages : now < end) {
      // Small messages: not one look at the clock for each.
      for (uint64_t i = 0; i < kBetweenLooks; ++i) {
        send_all(fd_.get(), region_.data() + cursor_.offset(), order_.spec.size);
        cursor_.advance();
        ++messages;
        if (phase.warm_up && messages == phase.messages) break;
      }
      now = kit::now_ns();
    }
    if (!phase.warm_up) {
      // As with a completion, the time ends when all is at the peer.
      ::shutdown(fd_.get(), SHUT_WR);
      std::byte nothing{};
      (void)receive_some(fd_.get(), &nothing, 1, Wait::event);
    }
    return {
        .messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
  }

  void serve(const Phase& phase) override {
    uint64_t left = phase.warm_up ? phase.messages * order_.spec.size : UINT64_MAX;
    while (left > 0) {
      const uint64_t room = std::min({left, order_.spec.size, region_.size() - at_});
      const uint64_t n = receive_some(fd_.get(), region_.data() + at_, room, Wait::event);
      if (n == 0) break;
      left -= n;
      bytes_ += n;
      at_ += n;
      if (at_ == region_.size()) at_ = 0;
    }
    if (!phase.warm_up) fd_.reset();
  }

  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::initiator || region_.holds(first, count);
  }
  std::string congestion() const override { return congestion_; }

  // Messages that came, in all and until the last clear(): the target's.
  uint64_t served() const { return bytes_ / order_.spec.size; }
  uint64_t served_before() const { return cleared_at_; }

 private:
  static constexpr uint64_t kBetweenLooks = 16;
  const Order order_;
  const Connect connect_;
  Region region_;
  Cursor cursor_;
  uint64_t at_ = 0;  // the receiver's place; TCP keeps no message together
  uint64_t bytes_ = 0;
  uint64_t cleared_at_ = 0;
  ProgramSocket fd_;
  std::string congestion_;
};

class SocketPingPong final : public Work {
 public:
  SocketPingPong(const Order& order, Connect to_peer)
      : order_(order),
        connect_(to_peer),
        source_(order.spec.size),
        sink_(order.spec.size),
        sent_(source_),
        received_(sink_) {
    source_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = ProgramSocket{connect_(order_, peer)};
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override { sink_.clear(); }

  Done initiate(const Phase& phase) override {
    RoundTrips trips;
    const int64_t start = kit::now_ns();
    const int64_t end = start + phase.duration_ns;
    trips.start(start);
    uint64_t messages = 0;
    int64_t now = start;
    while (phase.warm_up ? messages < phase.messages : now < end) {
      send_message();
      if (!receive_message()) throw kit::Failure{"the peer closed the connection"};
      ++messages;
      now = kit::now_ns();
      trips.add(now);
    }
    if (!phase.warm_up) ::shutdown(fd_.get(), SHUT_WR);
    return {.messages = messages,
            .seconds = kit::seconds_between(start, now),
            .extra = trips.figures()};
  }

  void serve(const Phase& phase) override {
    for (uint64_t n = 0; !phase.warm_up || n < phase.messages; ++n) {
      if (!receive_message()) return;
      send_message();
    }
  }

  bool intact(uint64_t first, uint64_t count) const override { return sink_.holds(first, count); }
  std::string congestion() const override { return congestion_; }

 private:
  void send_message() {
    send_all(fd_.get(), source_.data() + sent_.offset(), order_.spec.size);
    sent_.advance();
  }
  // False at the end of the stream.
  bool receive_message() {
    std::byte* const place = sink_.data() + received_.offset();
    for (uint64_t have = 0; have < order_.spec.size;) {
      const uint64_t n =
          receive_some(fd_.get(), place + have, order_.spec.size - have, order_.spec.wait);
      if (n == 0) return false;
      have += n;
    }
    received_.advance();
    return true;
  }

  const Order order_;
  const Connect connect_;
  Region source_;
  Region sink_;
  Cursor sent_;
  Cursor received_;
  ProgramSocket fd_;
  std::string congestion_;
};

// Several streams, each in a thread of its own, as threaded programs have them.
class SocketThreads final : public Work {
 public:
  explicit SocketThreads(const Order& order) : order_(order) {
    for (uint32_t i = 0; i < order.spec.connections; ++i) {
      streams_.push_back(std::make_unique<SocketStream>(order, connect_tcp));
    }
  }

  void connect(const Channel& peer) override {
    for (const auto& stream : streams_) stream->connect(peer);
  }
  void clear() override {
    for (const auto& stream : streams_) stream->clear();
  }
  Done initiate(const Phase& phase) override {
    std::vector<std::future<Done>> threads;
    for (const auto& stream : streams_) {
      threads.push_back(std::async(std::launch::async, [&phase, this, s = stream.get()] {
        return s->initiate(share_of(phase));
      }));
    }
    Done all;
    for (auto& thread : threads) {
      const Done done = thread.get();
      all.messages += done.messages;
      all.seconds = std::max(all.seconds, done.seconds);
    }
    return all;
  }
  void serve(const Phase& phase) override {
    std::vector<std::future<void>> threads;
    for (const auto& stream : streams_) {
      threads.push_back(std::async(
          std::launch::async, [&phase, this, s = stream.get()] { s->serve(share_of(phase)); }));
    }
    for (auto& thread : threads) thread.get();
  }
  // By which stream a message came is known here alone.
  bool intact(uint64_t, uint64_t count) const override {
    if (order_.role == Role::initiator) return true;
    uint64_t came = 0;
    for (const auto& stream : streams_) {
      const uint64_t here = stream->served() - stream->served_before();
      if (!stream->intact(stream->served_before(), here)) return false;
      came += here;
    }
    return came == count;
  }
  std::string congestion() const override { return streams_.front()->congestion(); }

 private:
  // Each takes its share of the warm-up.
  Phase share_of(Phase phase) const {
    phase.messages = std::max<uint64_t>(phase.messages / streams_.size(), 1);
    return phase;
  }

  const Order order_;
  std::vector<std::unique_ptr<SocketStream>> streams_;
};

}  // namespace

std::unique_ptr<Work> make_tcp_threads(const Order& order) {
  return std::make_unique<SocketThreads>(order);
}
std::unique_ptr<Work> make_tcp_stream(const Order& order) {
  return std::make_unique<SocketStream>(order, connect_tcp);
}
std::unique_ptr<Work> make_tcp_ping_pong(const Order& order) {
  return std::make_unique<SocketPingPong>(order, connect_tcp);
}
std::unique_ptr<Work> make_unix_stream(const Order& order) {
  return std::make_unique<SocketStream>(order, connect_unix);
}
std::unique_ptr<Work> make_unix_ping_pong(const Order& order) {
  return std::make_unique<SocketPingPong>(order, connect_unix);
}

}  // namespace weft::bench
