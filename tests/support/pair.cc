#include "tests/support/pair.h"

#include <algorithm>

namespace weft::test {

rdmap::StreamConfig Side::config(const PairOptions& o, bool initiator) {
  rdmap::StreamConfig c{.mpa = o.mpa,
                        .initiator = initiator,
                        .llp_completion = o.llp_completion,
                        .big_fpdu = o.big_fpdu,
                        .emss = o.emss,
                        .rnr_retry = o.rnr_retry,
                        .min_rnr_timer = o.min_rnr_timer};
  if (o.tune) o.tune(c, initiator);
  return c;
}

Side::Side(sim::Scheduler& scheduler, sim::StreamEnd& end, const PairOptions& options,
           bool initiator)
    : host(options.send_capacity),
      stream(host, config(options, initiator), initiator ? 17U : 23U, scheduler.now()),
      completes_early(config(options, initiator).llp_completion),
      scheduler_(scheduler),
      end_(end),
      alarm_(scheduler,
             [this] {
               stream.tick(scheduler_.now());
               pump();
             }),
      defer_alarm_(scheduler,
                   [this] {
                     deferred_long_enough_ = true;
                     pump();
                   }),
      defer_(options.defer),
      random_(options.seed + (initiator ? 1000 : 2000)) {
  end_.on_event([this] { pump(); });
}

void Side::pump() {
  if (closed) {
    // Nobody is left to read: the kernel answers what still comes with a reset.
    if (end_.readable() > 0) end_.reset();
    return;
  }
  if (!deaf_) read();
  write();
  grant_wish();
  alarm_.set(closed ? Time::never() : stream.deadline());
}

void Side::grant_wish() {
  using Wish = rdmap::Stream::Wish;
  Wish wish = stream.wish();
  const bool at_once = wish == Wish::reset || (wish == Wish::close && stream.hopeless());
  if (!batch_.empty() && !at_once) return;
  if (wish == Wish::shutdown_write) {
    end_.shutdown_write();
    stream.write_side_shut(scheduler_.now());
    wish = stream.wish();
  }
  if (wish != Wish::close && wish != Wish::reset) return;
  closed = true;
  was_reset = wish == Wish::reset;
  // Bytes that nobody read turn a close into a reset (spec/errors 4).
  if (was_reset || end_.readable() > 0) {
    end_.reset();
  } else {
    end_.shutdown_write();
  }
}

void Side::let_go() {
  gone = true;
  if (const auto r = stream.abandon_receive()) host.receive_done(*r, rdmap::Status::flushed, {});
  stream.detach();
  batch_.detach();
  host.flush();
  pump();
}

void Side::read() {
  const Time now = scheduler_.now();
  while (stream.wants_bytes() && end_.readable() > 0) {
    // A bounce buffer of any size, or the places that the stream names and a little more.
    Buffer bounce(1 + random_.next() % 70'000);
    PieceList places;
    if (stream.direct() && !stream.direct_places(places, now)) break;
    std::vector<MutableBytes> pieces;
    for (const IoVec& v : places.pieces()) {
      pieces.emplace_back(static_cast<std::byte*>(v.iov_base), v.iov_len);
    }
    pieces.emplace_back(bounce);
    const size_t n = end_.read(pieces);
    const size_t direct = std::min(n, places.bytes());
    if (direct > 0) stream.direct_received(direct, now);
    if (n > direct) stream.received(Bytes{bounce}.first(n - direct), now);
  }
  if (fin_told_ || end_.readable() > 0) return;
  if (end_.was_reset()) {
    fin_told_ = true;
    stream.connection_lost();
  } else if (end_.fin_received()) {
    fin_told_ = true;
    stream.peer_closed(scheduler_.now());
  }
}

bool Side::may_fill() {
  using Output = rdmap::Stream::Output;
  const Output output = stream.output();
  if (output == Output::none) return false;
  if (output == Output::deferrable && !deferred_long_enough_ && defer_ > Duration{0}) {
    if (!defer_alarm_.is_set()) defer_alarm_.set(scheduler_.now() + defer_);
    return false;
  }
  defer_alarm_.cancel();
  deferred_long_enough_ = false;
  return true;
}

void Side::write() {
  for (;;) {
    if (batch_.empty()) {
      if (!may_fill()) return;
      stream.fill(batch_, scheduler_.now());
      if (batch_.empty()) return;
    }
    std::vector<Bytes> pieces;
    for (const IoVec& v : batch_.pieces()) {
      pieces.emplace_back(static_cast<const std::byte*>(v.iov_base), v.iov_len);
    }
    const size_t n = end_.write(pieces);
    if (n == 0) {
      if (end_.was_reset()) batch_.clear();
      if (stream.ended()) batch_.detach();
      return;
    }
    batch_.consumed(n);
    if (batch_.empty()) stream.llp_took_all(scheduler_.now());
  }
}

Pair::Pair(const PairOptions& options)
    : link(scheduler, options.seed, options.link),
      a(scheduler, link.a(), options, true),
      b(scheduler, link.b(), options, false) {}

void Pair::drive(Duration limit) {
  a.pump();
  b.pump();
  scheduler.run_until_idle(limit);
}

}  // namespace weft::test
