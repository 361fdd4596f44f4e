// A port with a listener and calling queue pairs against strangers that say anything (spec/wdp 4,
// spec/addressing 3, spec/threats 4). First byte: Start. Then steps. What must hold above all: who
// has not shown that it is where it says gets three times at most what it sent.

#include "base/log.h"
#include "fuzz/wdp/strangers.h"

namespace {

using namespace std::chrono_literals;
using weft::Duration;
using weft::HandshakeCookie;
using weft::Msn;
using weft::Psn;
using weft::SessionToken;
using weft::fuzz::Input;
using weft::fuzz::Start;
using weft::fuzz::Strangers;
using weft::wire::CtlService;
using weft::wire::CtlType;
using weft::wire::WdpCtl;

// New ones at the end, or the corpus changes its meaning.
enum class Step : uint8_t {
  bytes,
  request,
  answer,
  session_ctl,
  data,
  repeat,
  accept,
  reject,
  call,
  ask,
  later,
  close,
  remove,
  flood,
  tell,
  await_call,
  start_static,
};
constexpr unsigned kSteps = 17;

constexpr Duration kWaits[] = {1ms, 100ms, 700ms, 2s, 13s, 31s, 61s, 10s};

void play(Strangers& s, Input& in) {
  const uint8_t first = in.u8();
  const size_t who = first >> 5;
  switch (static_cast<Step>((first & 31U) % kSteps)) {
    case Step::bytes:
      return s.give(who, in.take(in.u8()));
    case Step::request: {
      const uint8_t bits = in.u8();
      constexpr CtlService kServices[] = {CtlService::uc, CtlService::ud_resolution,
                                          CtlService::rd_channel, CtlService{0}};
      constexpr uint16_t kPayloads[] = {1472, 64, 63, 65535};
      return s.request(who, {.bits = bits,
                             .service = kServices[(bits >> 2) % 4],
                             .max_payload = kPayloads[(bits >> 4) % 4],
                             .token = in.u8() % 3U + 1,
                             .xid = in.u8() % 3U,
                             .private_data = (bits & 0x80) != 0 ? size_t{512} : size_t{0}});
    }
    case Step::answer: {
      auto c = s.session_message(who, static_cast<CtlType>(2 + in.u8() % 5));
      const uint8_t bits = in.u8();
      c.reason = in.u16() % 40'000;
      if ((bits & 1) != 0) c.token = SessionToken{in.u16()};
      if ((bits & 2) != 0) c.cookie = HandshakeCookie{bits + 1U};
      if ((bits & 4) != 0) c.ord = 200;
      if ((bits & 8) != 0) c.max_payload = 10;
      if ((bits & 16) != 0) c.service = CtlService::ud_resolution;
      if (c.type == CtlType::wait) c.reason %= WdpCtl::kMaxWaitMs;
      return s.say(who, c);
    }
    case Step::session_ctl:
      return s.say(who, s.session_message(who, static_cast<CtlType>(7 + in.u8() % 7)));
    case Step::data: {
      const auto m = s.session_message(who, CtlType::rtu);
      std::vector<std::byte> b(weft::wire::WdpData::kSize);
      weft::wire::WdpData{.didx = 5,
                          .token = m.token,
                          .psn = Psn{100U + in.u8()},
                          .msn = Msn{in.u8()},
                          .last = true,
                          .opcode = weft::wire::Opcode::send,
                          .stride = 64}
          .encode(b.data());
      return s.give(who, b);
    }
    case Step::repeat:
      return s.repeat((first & 0x80) != 0, who);
    case Step::accept: {
      const uint8_t which = in.u8();
      return s.accept(which, (which & 1) != 0 ? 512 : 0);
    }
    case Step::reject:
      return s.reject(in.u8());
    case Step::call:
      return s.call(who, in.flag());
    case Step::ask:
      return s.ask(who);
    case Step::later:
      return s.later(kWaits[in.u8() % std::size(kWaits)]);
    case Step::close:
      return s.close(in.u8());
    case Step::remove:
      return s.remove(in.u8());
    case Step::flood:
      for (uint32_t i = 0; i < 40; ++i) s.request(who, {.token = 100 + i, .xid = in.u8() + i});
      return;
    case Step::tell:
      return s.tell(in.u8());
    case Step::await_call:
      return s.await_call();
    case Step::start_static:
      return s.start_static(who);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::log::set_level(weft::log::Level::off);
  Input input{weft::fuzz::as_bytes(data, size)};
  Strangers strangers(input.choice(Start::static_session));
  strangers.check();
  while (!input.empty()) {
    play(strangers, input);
    strangers.check();
  }
  strangers.finish();
  return 0;
}
