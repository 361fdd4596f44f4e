// What a channel sends, without the channel: a message writer, and the headers of what goes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/append.h"
#include "tests/support/pattern.h"
#include "wdp/cubic.h"
#include "wdp/rd_message_writer.h"
#include "wire/wdp_bundle.h"

namespace weft::wdp {

struct RdWriterTest : ::testing::Test {
  RdWriterTest() { sender.open(SessionToken{7}, false, now); }

  struct Message {
    wire::WdpData header;
    test::Buffer payload;
  };
  using Datagram = std::vector<Message>;  // of several: a bundle

  // All that may go.
  std::vector<Datagram> sent() {
    Train t;
    sender.fill(t, Path{}, now);
    std::vector<Datagram> all;
    t.each_datagram([&](std::span<const IoVec> pieces) {
      const test::Buffer bytes = test::joined(pieces);
      Datagram& d = all.emplace_back();
      if (wire::WdpCommon::parse(bytes)->wdp_class != wire::WdpBundle::kClass) {
        return d.push_back(message(bytes));
      }
      for (Bytes rest = Bytes{bytes}.subspan(wire::WdpBundle::kSize); !rest.empty();) {
        const auto part = wire::WdpBundle::take(rest);
        if (!part || part->size() < wire::WdpData::kSize) {
          ADD_FAILURE() << "a bundle with a part that is none";
          break;
        }
        d.push_back(message(*part));
      }
    });
    return all;
  }

  Time now = Time::from_ns(1'000'000'000);
  RdSendPath sender{Csn{100}, std::make_unique<Cubic>(), false};
  RdMessageWriter writer{sender};

 private:
  static Message message(Bytes bytes) {
    const Bytes payload = bytes.subspan(wire::WdpData::kSize);
    return {*wire::WdpData::parse(bytes), {payload.begin(), payload.end()}};
  }
};

}  // namespace weft::wdp
