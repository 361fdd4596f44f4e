#include "tests/wdp/profiles.h"

#include "base/draw.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

// What may differ in every profile: sizes, CRC, sides, how datagrams are taken in.
UcPairOptions any_pair(uint64_t seed) {
  SeededRandom random(seed * 77);
  UcPairOptions o{.seed = seed};
  constexpr size_t kPayloads[] = {64, 576, 1472, 1452, 8972, 65507};
  o.max_payload = kPayloads[draw_below(random, std::size(kPayloads))];
  o.link.mtu = o.max_payload;
  o.link.queue = 100'000;
  // 1472 bytes at 10 Gb/s; what is larger takes longer.
  o.link.spacing = Duration{static_cast<int64_t>(200 + o.max_payload)};
  o.crc = draw_chance(random, 0.5);
  o.ird = static_cast<uint16_t>(1 + draw_below(random, 16));
  o.ord = static_cast<uint16_t>(1 + draw_below(random, o.ird));
  o.receive_buffer = 1 << (14 + draw_below(random, 9));
  // A real session's is as large as a socket's buffer; small ones close more often.
  o.window = draw_chance(random, 0.75) ? uint64_t{1} << (12 + draw_below(random, 11)) : 0;
  o.close_by = draw_chance(random, 0.75);
  o.direct = draw_chance(random, 0.5) ? 0.5 : 0;
  o.stall = draw_chance(random, 0.5) ? 0.2 : 0;
  return o;
}

UcTrafficOptions any_traffic(uint64_t seed) {
  SeededRandom random(seed * 79);
  UcTrafficOptions t{.seed = seed};
  t.spread = Duration{static_cast<int64_t>(draw_size(random, 4'000'000))};
  t.most = 16 << draw_below(random, 11);
  // Not too many datagrams where they are small.
  t.huge = std::min<size_t>(64 * 1024, 100 * t.most);
  return t;
}

UcPairOptions with(uint64_t seed, const FaultSpec& faults) {
  UcPairOptions o = any_pair(seed);
  o.link.faults = faults;
  return o;
}

// Reordering that stays within 128 datagrams, 1 MiB and 250 us (spec/wdp-uc 3.3).
Duration within_bounds(const UcPairOptions& o) {
  return std::min<Duration>(200us, o.link.spacing * 100);
}

constexpr Profile kProfiles[] = {
    {"clean", any_pair, any_traffic},
    {"disorder",
     [](uint64_t seed) {
       UcPairOptions o = with(seed, {.duplicate = 0.05, .reorder = 0.05});
       o.link.faults.reorder_delay = within_bounds(o);
       return o;
     },
     any_traffic},
    {"trains",
     [](uint64_t seed) {
       UcPairOptions o = with(seed, {.duplicate = 0.02});
       o.swap = 0.4;
       // The link takes as long for a small datagram as for a large one. A train of 64 has to be
       // through well within 250 us, or the one that it overtakes is late.
       o.link.spacing = 1us;
       return o;
     },
     any_traffic},
    {"loss",
     [](uint64_t seed) {
       SeededRandom random(seed);
       constexpr double kLoss[] = {0.001, 0.01, 0.03, 0.1};
       UcPairOptions o =
           with(seed, {.loss = kLoss[draw_below(random, 4)], .duplicate = 0.02, .reorder = 0.02});
       o.link.faults.reorder_delay = within_bounds(o);
       return o;
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = true;
       return t;
     },
     true},
    {"bursts",
     [](uint64_t seed) {
       return with(seed, {.loss = 0.1, .burst = 1.0 + static_cast<double>(seed % 100)});
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = t.deaf = true;
       return t;
     }},
    {"wild",
     [](uint64_t seed) {
       return with(
           seed,
           {.loss = 0.02, .duplicate = 0.2, .reorder = 0.3, .reorder_delay = 3ms, .jitter = 50us});
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = t.disorderly = true;
       return t;
     },
     true},
    {"damage",
     [](uint64_t seed) {
       UcPairOptions o = with(seed, {.loss = 0.01, .corrupt = 0.05});
       o.crc = true;
       return o;
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = true;
       return t;
     },
     true},
    {"scarce",
     [](uint64_t seed) { return with(seed, {.loss = seed % 2 == 0 ? 0.02 : 0, .reorder = 0.02}); },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.scarce = true;
       t.lossy = seed % 2 == 0;
       t.disorderly = true;
       return t;
     }},
    // The probe finds out, and all Reads come through it; of messages those that were too large are
    // lost.
    {"narrow",
     [](uint64_t seed) {
       SeededRandom random(seed * 83);
       UcPairOptions o = with(seed, {.loss = seed % 2 == 0 ? 0.01 : 0});
       o.max_payload = seed % 3 == 0 ? 65507 : 8972;
       constexpr size_t kCarried[] = {576, 1432, 1472, 5000, 8972};
       o.link.mtu = kCarried[draw_below(random, std::size(kCarried))];
       o.tune = [](wdp::UcParameters& p, bool) { p.probes_path = true; };
       return o;
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = true;
       return t;
     }},
    {"static",
     [](uint64_t seed) {
       UcPairOptions o = with(seed, {.loss = 0.05, .duplicate = 0.05, .reorder = 0.01});
       o.is_static = true;
       o.reads = false;
       return o;
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.lossy = t.disorderly = true;
       t.reads = 0;
       return t;
     }},
    // Listeners, queue pairs that know each other's number, and such as call each other at once;
    // near and far, with copies that come long after the handshake.
    {"bring_up",
     [](uint64_t seed) {
       SeededRandom random(seed * 89);
       constexpr double kLoss[] = {0, 0.01, 0.1, 0.3};
       UcPairOptions o = with(seed, {.loss = kLoss[draw_below(random, 4)],
                                     .duplicate = 0.2,
                                     .reorder = 0.2,
                                     .reorder_delay = draw_up_to(random, 700ms)});
       // A REQ has to fit.
       o.max_payload = o.link.mtu = std::max<size_t>(o.max_payload, 576);
       o.link.delay = draw_up_to(random, draw_chance(random, 0.5) ? 100us : 80ms);
       return o;
     },
     [](uint64_t seed) {
       UcTrafficOptions t = any_traffic(seed);
       t.requests = 8;
       t.lossy = t.disorderly = t.deaf = true;
       return t;
     },
     false, true},
};

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

void put_under(const FaultSpec& spec, UcPairOptions& pair, UcTrafficOptions& traffic) {
  pair.link.faults = spec;
  const bool gone = spec.loss > 0 || spec.corrupt > 0;
  // A goodbye waits 10 ms for what it has overtaken, and a Read a second or so for its first byte.
  const Duration behind = spec.jitter + (spec.reorder > 0 ? spec.reorder_delay : 0ns);
  // No keepalive fits through the narrowest path, and what is late may make a run last longer than
  // 10 s.
  constexpr size_t kKeepalive = 68;
  traffic.deaf |= gone || pair.link.mtu < kKeepalive;
  traffic.lossy |= gone || behind > 5ms || spec.delay > 250ms;
  // Trains that overtake each other drift further apart by jitter.
  traffic.disorderly |= spec.reorder > 0 || spec.jitter > 0ns;
}

}  // namespace weft::test
