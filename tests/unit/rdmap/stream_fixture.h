// What the tests of rdmap::Stream share.
#pragma once

#include <gtest/gtest.h>

#include "rdmap/stream.h"
#include "tests/support/script_peer.h"

namespace weft::rdmap {

using namespace std::chrono_literals;
using test::Buffer;
using test::delivered;
using test::names;
using test::pattern_bytes;
using test::script_config;
using test::ScriptPeer;
using test::segment;
using test::tagged;
using test::untagged;
using Kind = work::StreamEnd::Kind;
using Wish = Stream::Wish;
using Output = Stream::Output;
namespace term = wire::term;

inline StreamConfig responder(bool extension = true) {
  StreamConfig c = script_config(extension);
  c.initiator = false;
  return c;
}

inline const Buffer kEmptyWrite = tagged({.stag = Stag{1}});

inline work::SendWqe& post_send(ScriptPeer& p, Buffer& data, bool signaled = true) {
  return p.host.post({.wr_id = 1, .operation = work::Operation::send, .signaled = signaled},
                     {segment(p.host, data)});
}

inline wire::Terminate terminate_in(const std::vector<test::Frame>& frames) {
  if (frames.empty() || frames.back().op() != wire::Opcode::terminate) {
    ADD_FAILURE() << "no Terminate in: " << names(frames);
    return {};
  }
  return wire::Terminate::parse(frames.back().payload, true, true);
}

}  // namespace weft::rdmap
