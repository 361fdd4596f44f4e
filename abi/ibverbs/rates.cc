// InfiniBand's link rates (InfiniBand 9.11.1 and its volume 2), and what they are in other units.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>

#include "abi/ibverbs/enums.h"

namespace {

struct Rate {
  ibv_rate rate;
  int multiple;  // of 2.5 Gbit/s; -1 for those that rdma-core gives none
  int mbps;
};
// clang-format off
constexpr std::array<Rate, 23> kRates = {{
    {IBV_RATE_2_5_GBPS, 1, 2500},     {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},     {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},    {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},    {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},  {IBV_RATE_14_GBPS, -1, 14062},
    {IBV_RATE_56_GBPS, -1, 56250},    {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750},  {IBV_RATE_25_GBPS, -1, 25781},
    {IBV_RATE_100_GBPS, -1, 103125},  {IBV_RATE_200_GBPS, -1, 206250},
    {IBV_RATE_300_GBPS, -1, 309375},  {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},    {IBV_RATE_400_GBPS, 160, 425000},
    {IBV_RATE_600_GBPS, 240, 637500}, {IBV_RATE_800_GBPS, 320, 850000},
    {IBV_RATE_1200_GBPS, 480, 1275000},
}};
// clang-format on

template <class Match>
const Rate* find(Match&& match) {
  const auto* r = std::find_if(kRates.begin(), kRates.end(), match);
  return r == kRates.end() ? nullptr : r;
}

}  // namespace

using weft::abi::number_of;

extern "C" {

int ibv_rate_to_mult(ibv_rate rate) {
  const Rate* r = find([=](const Rate& x) { return x.rate == number_of(rate); });
  return r == nullptr ? -1 : r->multiple;
}

ibv_rate mult_to_ibv_rate(int multiple) {
  const Rate* r = find([=](const Rate& x) { return x.multiple == multiple; });
  return r == nullptr || multiple < 0 ? IBV_RATE_MAX : r->rate;
}

int ibv_rate_to_mbps(ibv_rate rate) {
  const Rate* r = find([=](const Rate& x) { return x.rate == number_of(rate); });
  return r == nullptr ? -1 : r->mbps;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
  const Rate* r = find([=](const Rate& x) { return x.mbps == mbps; });
  return r == nullptr ? IBV_RATE_MAX : r->rate;
}

}  // extern "C"
