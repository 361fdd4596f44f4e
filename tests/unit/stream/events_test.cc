#include "stream/events.h"

#include <gtest/gtest.h>

namespace weft::stream {
namespace {

using nlohmann::json;

TEST(StreamEvents, OfASenderAreSentences) {
  EXPECT_EQ(
      sentence_of({{"event", "connected"}, {"receiver", "192.0.2.1"}, {"stream_numbers", {0, 1}}}),
      "connected to the receiver at 192.0.2.1: streams 0 to 1");
  EXPECT_EQ(sentence_of({{"event", "lost"}, {"reason", "it closed the control connection"}}),
            "lost the receiver: it closed the control connection");
  EXPECT_EQ(sentence_of({{"event", "waiting"}, {"reason", "no receiver at 192.0.2.1:4347"}}),
            "no receiver at 192.0.2.1:4347. Trying again");
}

TEST(StreamEvents, OfAReceiverAreSentences) {
  const json sender = {{"sender", "192.0.2.7"}, {"stream_numbers", {3}}};
  const auto with = [&sender](const char* name) {
    json event = sender;
    event["event"] = name;
    return sentence_of(event);
  };
  EXPECT_EQ(sentence_of({{"event", "listening"}, {"port", 4347}}),
            "listening for senders on TCP port 4347");
  EXPECT_EQ(with("connected"), "a sender at 192.0.2.7 has connected: stream 3");
  EXPECT_EQ(with("ended"), "the sender at 192.0.2.7 has ended: stream 3");
  EXPECT_EQ(with("lost"), "lost the sender at 192.0.2.7, which said no goodbye: stream 3");
  EXPECT_EQ(sentence_of({{"event", "refused"}, {"sender", "192.0.2.7"}, {"reason", "--bits"}}),
            "refused a sender at 192.0.2.7: --bits");
  EXPECT_EQ(sentence_of({{"event", "unaccepted"}, {"reason", "Too many open files"}}),
            "a sender waits, and its connection cannot be accepted: Too many open files. Trying "
            "again");
  EXPECT_EQ(
      sentence_of({{"event", "circuit"},
                   {"stream", 0},
                   {"from", "192.0.2.7"},
                   {"udp_port", 4348},
                   {"token", 0x10fc01},
                   {"stag", 256},
                   {"slot_bytes", 7840},
                   {"packets_per_block", 256},
                   {"blocks", 16},
                   {"block_bytes", 2007040}}),
      "stream 0 takes a circuit from 192.0.2.7: UDP port 4348, token 0010fc01, STag 00000100, "
      "slots of 7840 bytes, 256 packets a block, 16 blocks of 2007040 bytes");
}

TEST(StreamEvents, OfAFileAreSentences) {
  EXPECT_EQ(sentence_of({{"event", "file"},
                         {"path", "sky.dada"},
                         {"bytes", 78240},
                         {"packets", 10},
                         {"missing", 1}}),
            "sky.dada is complete: 78240 bytes, 10 packets, 1 missing");
}

TEST(StreamEvents, OfAStreamAreSentences) {
  EXPECT_EQ(sentence_of({{"event", "gap"},
                         {"stream", 2},
                         {"packets", 120},
                         {"from", 17},
                         {"to", 137},
                         {"sent", 100}}),
            "stream 2: a gap of 120 packets, 17 to 136. Its sender had sent 100 of them");
  EXPECT_EQ(sentence_of({{"event", "jump"}, {"stream", 1}, {"from", 9}, {"to", 4}}),
            "stream 1: the count begins anew, at 4 instead of 9");
  EXPECT_EQ(sentence_of({{"event", "foreign"},
                         {"stream", 1},
                         {"number", 7},
                         {"from", {{"station", 3}, {"board", 0}, {"clock", 200}}},
                         {"stream_is", {{"clock", 160}}}}),
            "stream 1: packets of another sender are not taken (board 0, clock 200, station 3; the "
            "stream has clock 160)");
  EXPECT_EQ(sentence_of({{"event", "foreign"}, {"stream", 0}, {"from", {{"stream", 9}}}}),
            "stream 0: packets of another sender are not taken (stream 9)");
  EXPECT_EQ(sentence_of({{"event", "learned"}, {"stream", 1}, {"number", "0:8:le"}}),
            "stream 1: its packets are read as with --number 0:8:le");
  EXPECT_EQ(sentence_of({{"event", "invalid"},
                         {"stream", 0},
                         {"packets", 100},
                         {"reason", "it has 8 bits"},
                         {"header", "0a 0b"}}),
            "stream 0: none of 100 packets was valid: it has 8 bits (header 0a 0b)");
}

TEST(StreamEvents, AnUnknownOneIsToldWithWhatItHolds) {
  EXPECT_EQ(sentence_of({{"event", "eclipse"}, {"stream", 0}, {"of", "the sun"}}),
            "eclipse: of \"the sun\" stream 0");
}

TEST(StreamEvents, StreamsAreListedOrCounted) {
  EXPECT_EQ(streams_text({}), "no stream");
  EXPECT_EQ(streams_text({4, 5, 6}), "streams 4 to 6");
  EXPECT_EQ(streams_text({0, 2, 5}), "streams 0, 2 and 5");
}

}  // namespace
}  // namespace weft::stream
