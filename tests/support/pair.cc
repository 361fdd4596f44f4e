#include "tests/support/pair.h"

#include <memory>
#include <utility>

namespace weft::test {

rdmap::StreamConfig Side::config(const PairOptions& o, bool initiator) {
  rdmap::StreamConfig c{.mpa = o.mpa,
                        .initiator = initiator,
                        .llp_completion = o.llp_completion,
                        .big_fpdu = o.big_fpdu,
                        .rnr_retry = o.rnr_retry,
                        .min_rnr_timer = o.min_rnr_timer,
                        .emss = o.emss};
  if (o.tune) o.tune(c, initiator);
  return c;
}

Side::Side(sim::Scheduler& scheduler, sim::StreamEnd& end, const PairOptions& options,
           bool initiator)
    : host(options.send_capacity),
      runtime_(scheduler, {.seed = options.seed + (initiator ? 1000 : 2000),
                           .defer = options.defer,
                           .gather = options.gather,
                           .unasked = options.unasked}),
      bytes_(new sim::SimStream(runtime_, end, {.seed = options.seed, .short_read = 0.5})),
      driver_(new drive::StreamDriver(
          static_cast<drive::StreamOwner&>(*this), std::unique_ptr<port::ByteStream>{bytes_}, host,
          config(options, initiator), initiator ? 17U : 23U, scheduler.now())),
      stream(driver_->stream()),
      completes_early(config(options, initiator).llp_completion) {
  runtime_.run([&](engine::Token& token) {
    runtime_.add(token, std::unique_ptr<engine::EventHandler>{driver_}, bytes_->fd(), true, false);
  });
}

void Side::pump() {
  if (closed()) return;
  runtime_.run([&](engine::Token& token) {
    if (std::exchange(started_, true)) {
      driver_->posted(token);
    } else {
      driver_->start(token, {});
    }
  });
}

// As RcTransport::drop().
void Side::let_go() {
  gone = true;
  if (const auto r = stream.abandon_receive()) host.receive_done(*r, work::Status::flushed, {});
  driver_->detach();
  host.flush();
  runtime_.run([&](engine::Token& token) { driver_->settle(token); });
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
