#include "tests/support/bring_up.h"

#include <list>

#include "base/draw.h"
#include "tests/support/append.h"
#include "wdp/wdp_socket.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using wdp::UcConnection;
using wire::RejReason;

constexpr wdp::Endpoint kFirst{Gid::from_ipv4(0x0a000001), 50000};
constexpr wdp::Endpoint kSecond{Gid::from_ipv4(0x0a000002), 40000};
constexpr uint16_t kListener = 7471;  // where the second one listens

sim::DatagramOptions with_checksum(const UcPairOptions& o) {
  sim::DatagramOptions link = o.link;
  link.checksum = true;
  return link;
}

}  // namespace

// A queue pair, its port, and what the adapter and a program do for them.
class BringUp::Side final : public wdp::WdpSocketOwner {
 public:
  Side(BringUp& up, sim::DatagramEnd& end, bool first)
      : up_(up),
        end_(end),
        first_(first),
        random_(up.options_.seed * 2 + (first ? 1 : 0)),
        port_(random_, up.scheduler_.now()),
        ready_at_(up.scheduler_.now() + draw_up_to(up.random_, 300ms)),
        alarm_(up.scheduler_, [this] { on_time(); }) {
    end_.on_event([this] { pump(); });
  }

  void start() {
    calls_ = first_ || up_.how_ == How::crossing;
    call_at_ = calls_ ? ready_at_ : Time::never();
    pump();
  }

  // The session that stands, and how many do.
  const wdp::UcSession* session() const {
    for (const auto& c : connections_) {
      if (c->connection.state() == UcConnection::State::open) return c->connection.session();
    }
    return nullptr;
  }
  size_t sessions() const {
    size_t n = 0;
    for (const auto& c : connections_) n += c->connection.state() == UcConnection::State::open;
    return n;
  }
  size_t requests() const { return requests_; }
  bool drew_too_much() const { return drew_too_much_; }

 private:
  struct Connection final : wdp::UcConnectionOwner {
    Connection(Random& random, wdp::SendWindows& windows)
        : connection(host, *this, random, windows) {}
    void reached() override {}  // all are looked at
    UcHost host;
    UcConnection connection;
    bool left = false;  // the queue pair has none of it any more
  };

  Time now() const { return up_.scheduler_.now(); }
  Connection* current() {
    return !connections_.empty() && !connections_.back()->left ? connections_.back().get()
                                                               : nullptr;
  }
  Connection& add() {
    return *connections_.emplace_back(std::make_unique<Connection>(random_, port_.windows()));
  }
  wdp::Offer offer() {
    const UcPairOptions& o = up_.options_;
    return {.own_qpn = make_qpn(first_ ? kFirst.port : kSecond.port, first_ ? 9 : 5),
            .first_psn = Psn{static_cast<uint32_t>(random_.next())},
            .ird = o.ird,
            .ord = o.ord,
            .max_payload = static_cast<uint16_t>(o.max_payload),
            // spec/wdp 4.6: either of them may want it.
            .features = {.data_crc = o.crc && (first_ || up_.options_.seed % 2 == 0),
                         .immediate = o.immediate,
                         .uc_read = o.reads,
                         .ka_stats = true},
            .receive_buffer = o.receive_buffer,
            .retry_count = o.retry_count,
            .window = o.window,
            .close_by = o.close_by};
  }

  void call() {
    const bool to_listener = up_.how_ == How::listener;
    wdp::Endpoint to = first_ ? kSecond : kFirst;
    if (to_listener) to.port = kListener;
    const Qpn peer = to_listener ? Qpn{} : make_qpn(to.port, first_ ? 5 : 9);
    port_.connect(add().connection, offer(), {.to = to}, peer, !to_listener, now());
  }

  // wdp::WdpSocketOwner
  std::optional<RejReason> requested(const wdp::RequestKey& key, const wdp::Handshake&) override {
    if (up_.how_ != How::listener || first_) return RejReason::no_listener;
    ++requests_;
    // A program makes up its mind.
    up_.scheduler_.after(draw_up_to(random_, 400ms), [this, key] {
      Connection& c = add();
      up_.complain(!port_.accept(key, c.connection, offer(), now()), "a call is gone");
      pump();
    });
    return {};
  }
  Result<Callee, RejReason> called(const wire::WdpCtl& req, const wdp::Endpoint&) override {
    if (now() < ready_at_) return fail(RejReason::not_ready);
    if (req.destination != offer().own_qpn) return fail(RejReason::qpn_unknown);
    if (Connection* c = current()) {
      if (c->connection.state() == UcConnection::State::open) return fail(RejReason::not_ready);
      const wdp::Handshake* h = c->connection.handshake();
      if (h != nullptr && h->active() && c->connection.state() == UcConnection::State::setting_up) {
        return Callee{&c->connection, offer()};
      }
      leave(*c);
    }
    return Callee{&add().connection, offer()};
  }
  void answered(SessionToken, const wdp::Handshake&) override {}

  void leave(Connection& c) {
    c.left = true;
    c.connection.abort(0, now());
  }

  // --- datagrams and time
  void pump() {
    while (const auto d = end_.receive()) {
      came_ += d->size();
      port_.received(*d, {.from = from(), .to = first_ ? kFirst.address : kSecond.address}, now(),
                     *this);
    }
    look();
    say();
    Time next = std::min(port_.deadline(), call_at_);
    for (const auto& c : connections_) next = std::min(next, c->connection.deadline());
    alarm_.set(next);
  }
  wdp::Endpoint from() const {
    wdp::Endpoint e = first_ ? kSecond : kFirst;
    if (first_ && up_.how_ == How::listener) e.port = kListener;
    return e;
  }
  void on_time() {
    port_.tick(now(), *this);
    for (const auto& c : connections_) {
      if (now() >= c->connection.deadline()) c->connection.tick(now());
    }
    if (now() >= call_at_) {
      call_at_ = Time::never();
      if (current() == nullptr) call();
    }
    pump();
  }
  // spec/addressing 6.3: whoever is refused calls again, and whoever was called waits.
  void look() {
    Connection* c = current();
    if (c == nullptr || c->connection.state() != UcConnection::State::failed) return;
    const bool again = calls_ && up_.how_ != How::listener;
    leave(*c);
    if (again) call_at_ = now() + 10ms + draw_up_to(random_, 490ms);
  }
  void say() {
    const auto send = [this](const wdp::Train& t) {
      t.each_datagram([this](std::span<const IoVec> pieces) {
        Buffer d;
        append(d, pieces);
        went_ += d.size();
        end_.send(d);
      });
    };
    while (port_.ready()) {
      wdp::Train t;
      port_.fill(t);
      send(t);
    }
    for (const auto& c : connections_) {
      while (c->connection.ready(now())) {
        wdp::Train t;
        c->connection.fill(t, now());
        if (t.empty()) break;
        send(t);
        c->connection.llp_took_all(now());
      }
    }
    // spec/threats 4. Who calls speaks unasked, and a session's peer is where it says.
    if (!calls_ && session() == nullptr && went_ > 3 * came_) drew_too_much_ = true;
  }

  BringUp& up_;
  sim::DatagramEnd& end_;
  const bool first_;
  SeededRandom random_;
  wdp::WdpSocket port_;
  std::vector<std::unique_ptr<Connection>> connections_;
  const Time ready_at_;
  bool calls_ = false;
  Time call_at_ = Time::never();
  size_t requests_ = 0;
  uint64_t came_ = 0;
  uint64_t went_ = 0;
  bool drew_too_much_ = false;
  sim::Alarm alarm_;
};

BringUp::BringUp(const UcPairOptions& options)
    : options_(options),
      random_(options.seed * 97),
      how_(static_cast<How>(draw_below(random_, 3))),
      link_(scheduler_, options.seed + 1, with_checksum(options)),
      sides_{std::make_unique<Side>(*this, link_.a(), true),
             std::make_unique<Side>(*this, link_.b(), false)} {}

BringUp::~BringUp() = default;

const wdp::UcParameters& BringUp::parameters(bool first) const {
  return sides_[first ? 0 : 1]->session()->parameters();
}

void BringUp::drive() {
  for (const auto& s : sides_) s->start();
  const auto both = [this] {
    return sides_[0]->session() != nullptr && sides_[1]->session() != nullptr;
  };
  // A side that is not heard of is given up after 15 s, a handshake after 12.7 s.
  (void)scheduler_.run_until(both, 60s);
  // What is late, or doubled, changes nothing.
  scheduler_.run_for(3s);
  compare();
}

void BringUp::compare() {
  const Side& a = *sides_[0];
  const Side& b = *sides_[1];
  complain(a.sessions() > 1 || b.sessions() > 1, "two sessions on one side");
  complain(a.requests() > 0 || b.requests() > 1, "a program hears of a call twice");
  complain(a.drew_too_much() || b.drew_too_much(), "more than three times what came was sent");
  const wdp::UcSession* sa = a.session();
  const wdp::UcSession* sb = b.session();
  complain((sa == nullptr) != (sb == nullptr), "one side alone has a session");
  const FaultSpec& faults = options_.link.faults;
  complain(sa == nullptr && faults.loss == 0 && faults.corrupt == 0, "there is no session");
  if (sa == nullptr || sb == nullptr) return;
  const wdp::UcParameters& p = sa->parameters();
  const wdp::UcParameters& q = sb->parameters();
  complain(p.peer_token != q.own_token || q.peer_token != p.own_token, "of other tokens");
  complain(p.peer_qpn != q.own_qpn || q.peer_qpn != p.own_qpn, "of other queue pairs");
  complain(p.peer_first_psn != q.first_psn || q.peer_first_psn != p.first_psn, "of other PSNs");
  complain(p.ird != q.ord || p.ord != q.ird, "other depths of Reads");
  complain(p.crc != q.crc || p.immediate != q.immediate || p.reads != q.reads ||
               p.max_payload != q.max_payload,
           "other features");
  established_ = wrong_.empty();
}

}  // namespace weft::test
