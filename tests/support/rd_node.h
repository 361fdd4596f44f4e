// A host with one WdpSocket that has channels (spec/wdp-rd), and queue pairs of UD and RD on it.
// What it says is taken out datagram by datagram, and handed to whom the test likes.
#pragma once

#include <list>
#include <memory>
#include <utility>

#include "tests/support/append.h"
#include "tests/support/host.h"
#include "tests/support/want_of_memory.h"
#include "wdp/cubic.h"
#include "wdp/fixed_rate.h"
#include "wdp/rd_queue.h"
#include "wdp/wdp_socket.h"
#include "wire/grh.h"

namespace weft::test {

class RdNode final : public wdp::WdpSocketOwner {
 public:
  static constexpr uint16_t kPort = 40000;
  static constexpr uint32_t kQKey = 0x22;

  // Its address is 10.0.0.`number`. `channels`: false is a host without the option.
  RdNode(uint8_t number, uint64_t seed, Time now, bool channels = true, size_t window = 1 << 20)
      : numbers(seed), socket(numbers, now), address(address_of(number)), window_(window) {
    if (channels) socket.channels().enable({.own_port = kPort, .window = window});
  }
  static wdp::Endpoint address_of(uint8_t number) {
    return {Gid::from_ipv4(0x0a000000U + number), kPort};
  }

  struct Received {
    Qpn source;
    Buffer bytes;
    bool solicited = false;
    std::optional<uint32_t> immediate;
  };
  // A queue pair. Its receives have room for kRoom bytes besides the GRH.
  struct Pair final : wdp::UdConsumer {
    static constexpr size_t kRoom = 1100;
    Pair(RdNode& of, uint8_t index) : node(of), number(make_qpn(kPort, index)) {
      queue = std::make_unique<wdp::UdQueue>(
          *this, wdp::UdParameters{.own_qpn = number, .q_key = QKey{kQKey}});
      if (of.socket.channels().setup()) {
        client = of.socket.channels().add(*queue);
        queue->resume(client);
      }
      of.socket.demux().add(number, *queue);
    }
    ~Pair() override {
      node.socket.demux().remove(number);
      node.socket.channels().remove(client);
      node.socket.channels().receives_posted(index_of(number));
    }

    // To queue pair `index` of host `to`.
    void send(uint8_t to, uint8_t index, const Buffer& bytes, work::SendWqe w = {}) {
      if (!work::is_send(w.operation)) w.operation = work::Operation::send;
      Buffer& kept = sending.emplace_back(bytes);
      w.wr_id = ++posted;
      w.signaled = true;
      w.remote_to = TaggedOffset{uint64_t{to} << 8 | index};
      host.post(w, {segment_of(kept)});
    }
    void post_receives(size_t count) {
      for (size_t i = 0; i < count; ++i) {
        Buffer& room = rooms.emplace_back(wire::Grh::kSize + kRoom);
        host.post_receive(rooms.size() - 1, {segment_of(room)});
      }
      node.socket.channels().receives_posted(index_of(number));
    }

    work::Memory& memory() override { return host.memory(); }
    work::SendQueue& send_queue() override { return host.send_queue(); }
    const wdp::UdDestination& destination(const work::SendWqe& w) override {
      const auto to = static_cast<uint8_t>(w.remote_to.value() >> 8);
      destination_ = {.path = {.to = address_of(to), .from = node.address.address},
                      .qpn = make_qpn(kPort, static_cast<uint8_t>(w.remote_to.value())),
                      .q_key = q_key};
      return destination_;
    }
    wdp::UdCarriage carriage(const wdp::UdDestination& to, Time now) override {
      auto& channels = node.socket.channels();
      if (wdp::RdChannel* channel = channels.find(to.path)) return {.channel = channel};
      if (channels.is_refused(to.path, now)) return {};
      return {.channel = &node.open(to.path, now)};
    }
    wdp::PathRoom room(const wdp::Path&) override { return way; }
    bool take_receive(work::Receive& out) override { return host.take_receive(out); }
    void give_back(work::TakenReceive r) override { host.give_back(r); }
    void receive_done(const work::Receive& r, work::Status status,
                      const wdp::UdArrival& a) override {
      if (status != work::Status::success) return;
      const Buffer& room = rooms[r.wr_id];
      received.push_back({a.source,
                          {room.begin() + wire::Grh::kSize, room.begin() + a.length},
                          a.solicited,
                          a.has_immediate ? std::optional{a.immediate} : std::nullopt});
    }
    void send_done(const work::SendWqe& w, work::Status s) override { host.send_done(w, s); }
    void send_failed() override { ++failures; }

    RdNode& node;
    const Qpn number;
    Host host{4096};
    std::unique_ptr<wdp::UdQueue> queue;
    wdp::ClientId client = 0;
    QKey q_key{kQKey};
    wdp::PathRoom way{.most = 548, .certain = true};  // so that nobody asks what it carries
    std::deque<Buffer> sending;
    std::deque<Buffer> rooms;
    std::vector<Received> received;
    uint64_t posted = 0;
    int failures = 0;

   private:
    work::LocalSegment segment_of(Buffer& b) {
      const Stag key = host.add_region(b);
      return {reinterpret_cast<uintptr_t>(b.data()), static_cast<uint32_t>(b.size()), key};
    }
    wdp::UdDestination destination_;
  };
  Pair& add_pair(uint8_t index) { return pairs.emplace_back(*this, index); }

  // A queue pair of type RD. Its peers may do everything with its board.
  struct Member final : wdp::RdConsumer {
    static constexpr size_t kRoom = 5000;
    static constexpr size_t kBoard = 1 << 16;
    Member(RdNode& of, uint8_t index) : node(of), number(make_qpn(kPort, index)) {
      rkey = host.add_region(board);
      queue = std::make_unique<wdp::RdQueue>(
          of.socket.channels(), *this,
          wdp::RdQueue::Parameters{.own_qpn = number, .q_key = QKey{kQKey}});
    }

    // To queue pair `index` of host `to`.
    void post(uint8_t to, uint8_t index, Buffer& bytes, work::SendWqe w) {
      w.wr_id = ++posted;
      w.signaled = true;
      host.post(w, {segment_of(bytes)});
      targets.push_back({to, index});
    }
    void send(uint8_t to, uint8_t index, const Buffer& bytes) {
      post(to, index, kept.emplace_back(bytes), {.operation = work::Operation::send});
    }
    void write(uint8_t to, uint8_t index, const Buffer& bytes, Stag stag, TaggedOffset at) {
      post(to, index, kept.emplace_back(bytes),
           {.operation = work::Operation::write, .remote_stag = stag, .remote_to = at});
    }
    Buffer& read(uint8_t to, uint8_t index, size_t bytes, Stag stag, TaggedOffset at) {
      Buffer& into = kept.emplace_back(bytes);
      post(to, index, into,
           {.operation = work::Operation::read, .remote_stag = stag, .remote_to = at});
      return into;
    }
    Buffer& add(uint8_t to, uint8_t index, uint64_t more, Stag stag, TaggedOffset at) {
      Buffer& into = kept.emplace_back(work::kAtomicBytes);
      post(to, index, into,
           {.operation = work::Operation::fetch_add,
            .remote_stag = stag,
            .remote_to = at,
            .compare_add = more});
      return into;
    }
    void post_receives(size_t count) {
      for (size_t i = 0; i < count; ++i) {
        Buffer& room = rooms.emplace_back(kRoom);
        host.post_receive(rooms.size() - 1, {segment_of(room)});
      }
      if (queue) queue->posted();
    }
    work::Status status_of(size_t i) const { return host.sent.at(i).status; }

    work::Memory& memory() override { return host.memory(); }
    work::SendQueue& send_queue() override { return host.send_queue(); }
    const wdp::UdDestination& destination(const work::SendWqe& w) override {
      const auto [to, index] = targets.at(w.wr_id - 1);
      destination_ = {.path = {.to = address_of(to), .from = node.address.address},
                      .qpn = make_qpn(kPort, index),
                      .q_key = q_key};
      return destination_;
    }
    wdp::UdCarriage carriage(const wdp::Path& to, Time now) override {
      auto& channels = node.socket.channels();
      if (wdp::RdChannel* channel = channels.find(to)) return {.channel = channel};
      if (channels.is_refused(to, now)) return {};
      return {.channel = &node.open(to, now)};
    }
    wdp::PathRoom room(const wdp::Path&) override { return {.most = 1472}; }
    void wants_turn() override {}
    bool has_receive() override { return !host.receives.empty(); }
    void give_back(work::TakenReceive r) override {
      const WantOfMemory::Spared spared;
      host.give_back(r);
    }
    bool take_receive(work::Receive& out) override {
      if (std::exchange(lacks_memory, false)) throw std::bad_alloc{};
      return host.take_receive(out);
    }
    void receive_done(const work::Receive& r, work::Status status,
                      const wdp::RdDelivery& d) override {
      const WantOfMemory::Spared spared;
      if (status != work::Status::success) {
        ++flushed;
        return;
      }
      const Buffer& place = rooms[r.wr_id];
      received.push_back({d.source,
                          {place.begin(), place.begin() + (d.write ? 0 : d.length)},
                          d.solicited,
                          d.immediate});
    }
    void send_done(const work::SendWqe& w, work::Status s) override {
      const WantOfMemory::Spared spared;
      host.send_done(w, s);
    }

    RdNode& node;
    const Qpn number;
    Host host{4096};
    Buffer board = Buffer(kBoard);
    Stag rkey;
    QKey q_key{kQKey};
    std::deque<Buffer> kept;
    std::deque<Buffer> rooms;
    std::vector<std::pair<uint8_t, uint8_t>> targets;
    std::vector<Received> received;
    uint64_t posted = 0;
    size_t flushed = 0;
    bool lacks_memory = false;  // the next time that a receive is asked for
    std::unique_ptr<wdp::RdQueue> queue;

   private:
    work::LocalSegment segment_of(Buffer& b) {
      const Stag key = host.add_region(b);
      return {reinterpret_cast<uintptr_t>(b.data()), static_cast<uint32_t>(b.size()), key};
    }
    wdp::UdDestination destination_;
  };
  Member& add_member(uint8_t index) { return members.emplace_back(*this, index); }

  std::unique_ptr<wdp::Congestion> congestion() const {
    if (fixed_rate > 0) return std::make_unique<wdp::FixedRate>(fixed_rate);
    return std::make_unique<wdp::Cubic>();
  }
  struct Link final : wdp::RdChannelOwner {
    explicit Link(RdNode& of)
        : channel(of.socket.channels(), *this, of.numbers, of.window_, of.ecn, of.congestion()) {
      if (!of.rests) channel.keep_awake();
    }
    void reached() override { may_speak = true; }
    void small_messages_came(size_t bytes) override { small += bytes; }
    wdp::RdChannel channel;
    size_t small = 0;  // bytes that came in small messages
    bool may_speak = false;
  };
  wdp::RdChannel& open(const wdp::Path& path, Time now) {
    Link& link = links.emplace_back(*this);
    if (const auto ends = wdp::ChannelEnds::of(path); socket.channels().resting().has(ends)) {
      socket.resume(ends, link.channel, now);
      return link.channel;
    }
    socket.connect(link.channel, path, make_qpn(path.to.port, wire::kPortIndex), now);
    link.may_speak = true;
    return link.channel;
  }
  wdp::RdChannel* channel_called() override { return &links.emplace_back(*this).channel; }

  struct Datagram {
    wdp::Endpoint to;
    Buffer bytes;
    uint8_t traffic_class = 0;
    bool may_be_cut = false;  // by IP
  };
  std::vector<Datagram> said(Time now) {
    std::vector<Datagram> all;
    while (socket.ready()) {
      train_.clear();
      socket.fill(train_);
      take(train_, all);
    }
    for (Pair& p : pairs) say(*p.queue, now, all);
    for (Member& m : members) {
      // They speak by the channels.
      if (!m.queue) continue;
      const bool done = WantOfMemory::during([&] {
        train_.clear();
        if (m.queue->ready(now)) m.queue->fill(train_, now);
      });
      if (!done) m.queue->has_room();
    }
    // As a driver does: nobody is asked who has not said that there may be something.
    for (Link& l : links) {
      if (std::exchange(l.may_speak, false) && !say(l.channel, now, all)) l.may_speak = true;
    }
    // The program has had its turn.
    for (Link& l : links) {
      if (!all.empty() || !polls || !l.channel.out().answers_wait()) continue;
      l.channel.out().say_answers();
      l.may_speak = !say(l.channel, now, all);
    }
    sweep(now);
    return all;
  }
  void hear(Bytes datagram, const wdp::Endpoint& from, Time now, uint8_t traffic_class = 0) {
    (void)WantOfMemory::during([&] {
      socket.received(datagram,
                      {.from = from, .to = address.address, .traffic_class = traffic_class}, now,
                      *this);
    });
  }
  Time deadline() {
    Time first = Time::never();
    for (Link& l : links) {
      first = std::min(first, l.channel.deadline());
      first = std::min(first, l.channel.rests_at());
    }
    first = std::min(first, socket.deadline());
    for (const Member& m : members) {
      if (m.queue) first = std::min(first, m.queue->deadline());
    }
    return first;
  }
  void tick(Time now) {
    (void)WantOfMemory::during([&] { socket.tick(now, *this); });
    for (Link& l : links) {
      (void)WantOfMemory::during([&] { l.channel.tick(now); });
      l.may_speak = true;
    }
    sweep(now);
  }

  // wdp::WdpSocketOwner: nobody listens here.
  std::optional<wire::RejReason> requested(const wdp::RequestKey&, const wdp::Handshake&) override {
    return wire::RejReason::no_listener;
  }
  Result<Callee, wire::RejReason> called(const wire::WdpCtl&, const wdp::Endpoint&) override {
    return fail(wire::RejReason::qpn_unknown);
  }
  void answered(SessionToken, const wdp::Handshake&) override {}

  // Tokens and first sequence numbers.
  struct Numbers final : Random {
    explicit Numbers(uint64_t seed) : seeded(seed) {}
    uint64_t next() override { return fixed ? *fixed : seeded.next(); }
    std::optional<uint64_t> fixed;  // each is this one
    SeededRandom seeded;
  };

 private:
  static void take(const wdp::Train& t, std::vector<Datagram>& all) {
    t.each_datagram([&](std::span<const IoVec> pieces) {
      auto& d = all.emplace_back(Datagram{t.path().to, {}, t.path().traffic_class, t.fragments()});
      append(d.bytes, pieces);
    });
  }
  // False: there was no memory for it.
  bool say(wdp::TrainSource& source, Time now, std::vector<Datagram>& all) {
    for (;;) {
      train_.clear();
      const bool done = WantOfMemory::during([&] {
        for (int i = 0; i < 2 && train_.empty() && source.ready(now); ++i) source.fill(train_, now);
      });
      if (!done) return false;
      if (train_.empty()) return true;
      take(train_, all);
      source.llp_took_all(now);
    }
  }
  void sweep(Time now) {
    links.remove_if([&](Link& l) {
      if (now >= l.channel.rests_at()) {
        bool does = false;
        (void)WantOfMemory::during([&] { does = socket.channels().rest(l.channel, now); });
        return does;
      }
      if (!l.channel.is_gone()) return false;
      socket.remove(l.channel, now);
      return true;
    });
  }

  wdp::Train train_;  // being filled; each has an area of 64 KB

 public:
  Numbers numbers;
  wdp::WdpSocket socket;
  const wdp::Endpoint address;
  bool ecn = true;        // of links that begin
  double fixed_rate = 0;  // the same, Gb/s; 0: CUBIC
  bool polls = true;      // or answers wait until they are due
  bool rests = false;     // do links that begin (spec/wdp-rd 2.5)?
  std::list<Link> links;
  std::list<Pair> pairs;
  std::list<Member> members;

 private:
  const size_t window_;
};

}  // namespace weft::test
