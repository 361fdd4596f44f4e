#include "wire/wdp_ack.h"

#include <algorithm>
#include <cstdio>

#include "wire/wdp_crc.h"

namespace weft::wire {
namespace {

// Place of a CSN in the bitmap; beyond it for those up to CUM, which wrap around.
uint32_t bit_of(Csn cum, Csn csn) {
  return csn.value() - cum.value() - 1;
}
constexpr uint32_t mask_of(uint32_t bit) {
  return uint32_t{1} << (31 - bit % 32);
}

}  // namespace

Result<WdpAck, WdpDrop> WdpAck::parse(Bytes datagram) {
  const auto common = WdpCommon::parse(datagram);
  if (!common) return fail(common.error());
  WdpAck a;
  if (const auto v = a.read(*common, datagram); !v.ok()) return fail(v.error());
  return a;
}

Result<Ok, WdpDrop> WdpAck::read(const WdpCommon& common, Bytes datagram) {
  if (common.wdp_class != WdpClass::rd_ack) return fail(WdpDrop::wrong_class);
  if (datagram.size() < kSize) return fail(WdpDrop::too_short);
  // spec/wdp 2.3: Class CTL and RDACK: mandatory.
  if (!common.flags.crc) return fail(WdpDrop::crc_missing);
  if (!wdp_crc_matches(datagram)) return fail(WdpDrop::bad_crc);
  if (common.didx != kPortIndex || common.sidx != kPortIndex) return fail(WdpDrop::index_mismatch);
  const std::byte* p = datagram.data();
  token = common.token;
  cum = Csn{common.class_word};
  timestamp = load_be<uint32_t>(p + 16);
  trigger = Csn{load_be<uint32_t>(p + 20)};
  delay = load_be<uint16_t>(p + 24);
  words = load_be<uint16_t>(p + 26);
  window = load_be<uint32_t>(p + 28);
  ce = load_be<uint32_t>(p + 32);
  if (words > kMaxWords) return fail(WdpDrop::too_many_sack_words);
  if (datagram.size() != size()) return fail(WdpDrop::length_mismatch);
  for (size_t i = 0; i < words; ++i) sack[i] = load_be<uint32_t>(p + kSize + 4 * i);
  return Ok{};
}

size_t WdpAck::encode(std::byte* p) const {
  WdpCommon{.wdp_class = WdpClass::rd_ack,
            .flags = {.crc = true},
            .token = token,
            .class_word = cum.value()}
      .encode(p);
  store_be(p + 16, timestamp);
  store_be(p + 20, trigger.value());
  store_be(p + 24, delay);
  store_be(p + 26, words);
  store_be(p + 28, window);
  store_be(p + 32, ce);
  for (size_t i = 0; i < words; ++i) store_be(p + kSize + 4 * i, sack[i]);
  seal_wdp({p, size()});
  return size();
}

bool WdpAck::holds(Csn csn) const {
  const uint32_t bit = bit_of(cum, csn);
  return bit / 32 < words && (sack[bit / 32] & mask_of(bit)) != 0;
}

bool WdpAck::hold(Csn csn) {
  const uint32_t bit = bit_of(cum, csn);
  if (bit / 32 >= kMaxWords) return false;
  words = std::max(words, static_cast<uint16_t>(bit / 32 + 1));
  sack[bit / 32] |= mask_of(bit);
  return true;
}

std::string WdpAck::to_string() const {
  char head[192];
  std::snprintf(head, sizeof head,
                "RDACK token 0x%08x CUM %u TRIG %u TS %u delay %u us RWND %u KiB CE %u",
                token.value(), cum.value(), trigger.value(), timestamp, delay_us(), window, ce);
  std::string text = head;
  for (size_t i = 0; i < words; ++i) {
    char word[16];
    std::snprintf(word, sizeof word, "%s%08x", i == 0 ? " SACK " : " ", sack[i]);
    text += word;
  }
  return text;
}

}  // namespace weft::wire
