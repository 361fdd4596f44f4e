// An SDP connection, from each state that it can be in, with a peer that says anything.
// First byte: the state to start in. Then steps: what the user or the owner does, or a message of
// the peer's, whose numbers are right unless the input says otherwise.
//
// A peer that breaks the protocol ends the connection by a Violation; until then every message that
// goes out has a credit and the next number, payloads lie inside of their messages, and what the
// core says of buffers that are advertised adds up.

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "fuzz/support/check.h"
#include "fuzz/support/input.h"
#include "sdp/core/connection.h"

namespace {

using namespace weft;
using namespace weft::sdp;
using fuzz::Input;

constexpr uint16_t kBufs = 6;
constexpr uint32_t kReceive = 200;
constexpr uint8_t kAdverts = 2;

enum class Start : uint8_t {
  fresh,
  data_sent,
  data_unread,
  without_credits,
  advertises,
  takes_back,
  holds,
  reads,
  reads_what_is_taken_back,
  half_read,
  buffered,
  has_ended,
  peer_has_ended,
  both_have_ended,
  resets,
  pipelined,
  advertises_pipelined,
  may_write,
  writes,
  sink_has_cancelled,
  has_left_pipelined,
  peer_pipelined,
  offers,
  offers_two,
  takes_back_offers,
};
constexpr Start kLastStart = Start::takes_back_offers;

enum class Step : uint8_t {
  message,
  message_with_payload,
  wrong_numbers,
  raw,
  send_data,
  advertise,
  cancel,
  start_read,
  finish_read,
  refuse,
  post,
  controls,
  end,
  abort,
  greet,
  write,
  offer,
  cancel_offers,
  change_mode,
  ask,
};
constexpr Step kLastStep = Step::ask;

constexpr std::array kMessages{
    MessageId::hello,
    MessageId::hello_ack,
    MessageId::dis_conn,
    MessageId::abort_conn,
    MessageId::send_sm,
    MessageId::rdma_wr_compl,
    MessageId::rdma_rd_compl,
    MessageId::mode_change,
    MessageId::src_avail_cancel,
    MessageId::sink_avail_cancel,
    MessageId::sink_cancel_ack,
    MessageId::ch_rcv_buf,
    MessageId::ch_rcv_buf_ack,
    MessageId::susp_comm,
    MessageId::susp_comm_ack,
    MessageId::sink_avail,
    MessageId::src_avail,
    MessageId::data,
};

class Rig {
 public:
  bool broken() const { return broken_; }

  void begin(Start start) {
    switch (start) {
      case Start::fresh:
        return;
      case Start::data_sent:
        return send_data(20);
      case Start::data_unread:
        return message(MessageId::data, {}, 5);
      case Start::without_credits:
        for (int i = 0; i < kBufs; ++i) send_data(1);
        return;
      case Start::advertises:
        return advertise(1000);
      case Start::takes_back:
        advertise(1000);
        connection_.cancel_src_avail();
        return controls();
      case Start::holds:
        return offered(500);
      case Start::reads:
        offered(500);
        return start_read(100);
      case Start::reads_what_is_taken_back:
        offered(500);
        start_read(100);
        return message(MessageId::src_avail_cancel, {}, 0);
      case Start::half_read:
        offered(500);
        start_read(100);
        finish_read();
        return controls();
      case Start::buffered:
        return peer_changes(Mode::buffered);
      case Start::has_ended:
        return end();
      case Start::peer_has_ended:
        return message(MessageId::dis_conn, {}, 0);
      case Start::both_have_ended:
        end();
        return message(MessageId::dis_conn, {}, 0);
      case Start::resets:
        return connection_.abort();
      case Start::pipelined:
        return change_mode(Mode::pipelined);
      case Start::advertises_pipelined:
        change_mode(Mode::pipelined);
        return advertise(1000);
      case Start::may_write:
        change_mode(Mode::pipelined);
        return sink_offers();
      case Start::writes:
        change_mode(Mode::pipelined);
        sink_offers();
        return write(100);
      case Start::sink_has_cancelled:
        change_mode(Mode::pipelined);
        sink_offers();
        return message(MessageId::sink_avail_cancel, {}, 0);
      case Start::has_left_pipelined:
        change_mode(Mode::pipelined);
        return change_mode(Mode::combined);
      case Start::peer_pipelined:
        return peer_changes(Mode::pipelined);
      case Start::offers:
        peer_changes(Mode::pipelined);
        return offer(1000);
      case Start::offers_two:
        peer_changes(Mode::pipelined);
        offer(1000);
        return offer(500);
      case Start::takes_back_offers:
        peer_changes(Mode::pipelined);
        offer(1000);
        connection_.cancel_sink_avail();
        return controls();
    }
  }

  void run(Input& in) {
    switch (in.choice(kLastStep)) {
      case Step::message:
        return message(in, 0, 0, 0);
      case Step::message_with_payload:
        return message(in, 1 + in.u8() % 180U, 0, 0);
      case Step::wrong_numbers:
        return message(in, in.u8() % 30U, in.u8(), in.u8());
      case Step::raw:
        return raw(in.take(in.u8()));
      case Step::send_data:
        return send_data(in.u8() % (kReceive - Bsdh::kSize) + 1);
      case Step::advertise:
        return advertise(uint32_t{in.u16()} + 2);
      case Step::cancel:
        return connection_.cancel_src_avail();
      case Step::start_read:
        return start_read(in.u16() + 1U);
      case Step::finish_read:
        return finish_read();
      case Step::refuse:
        return connection_.refuse_src_avail();
      case Step::post:
        return post();
      case Step::controls:
        return controls();
      case Step::end:
        return end();
      case Step::abort:
        return connection_.abort();
      case Step::greet:
        return connection_.greet();
      case Step::write:
        return write(in.u16() + 1U);
      case Step::offer:
        return offer(in.u16() + 1U);
      case Step::cancel_offers:
        return connection_.cancel_sink_avail();
      case Step::change_mode:
        return change_mode(static_cast<Mode>(in.u8() % 3));
      case Step::ask:
        return connection_.ask_for_pipelined();
    }
  }

 private:
  // What goes out: there is a credit for it, and it says what it is.
  void sent(Bytes m) {
    const auto h = Bsdh::parse(m.data());
    FUZZ_CHECK(h && h->length == m.size() && h->mseq == ++own_mseq_);
    FUZZ_CHECK(static_cast<int32_t>(limit_ - h->mseq) >= 0);
    FUZZ_CHECK(h->mseq_ack <= peer_mseq_ && h->bufs <= kBufs);
    if (h->mid == MessageId::rdma_rd_compl) {
      const uint32_t n = LengthHeader::parse(m.data() + Bsdh::kSize).length;
      FUZZ_CHECK(n > 0 && n <= read_);
      read_ -= n;
    }
    if (h->mid == MessageId::rdma_wr_compl) {
      FUZZ_CHECK(LengthHeader::parse(m.data() + Bsdh::kSize).length == std::exchange(written_, 0));
    }
    // Nothing with data overtakes what is owed for a Write.
    if (m.size() > Bsdh::kSize + extended_header_size(h->mid)) FUZZ_CHECK(written_ == 0);
  }

  void send_data(uint32_t payload) {
    if (!connection_.data_may_go() || payload > connection_.max_payload()) return;
    std::vector<std::byte> m(Bsdh::kSize + payload);
    connection_.send_data(m.data(), payload, 0);
    sent(m);
  }
  void advertise(uint32_t length) {
    if (!connection_.may_advertise()) return;
    const auto m = connection_.send_src_avail({length, 7, 0}, std::byte{1});
    advertised_ = length;
    sent(Bytes{m.bytes}.first(m.length));
  }
  void controls() {
    while (const auto m = connection_.next_control()) sent(Bytes{m->bytes}.first(m->length));
    outcome();
  }
  void end() {
    connection_.end_sending();
    connection_.everything_is_sent();
    controls();
  }
  void outcome() {
    while (const auto bytes = connection_.take_written()) {
      FUZZ_CHECK(!offers_.empty() && *bytes <= offers_.front());
      offers_.pop_front();
    }
    FUZZ_CHECK(connection_.offering() == !offers_.empty());
    const auto o = connection_.take_outcome();
    if (!o) return;
    FUZZ_CHECK(o->bytes <= advertised_ && !connection_.advertising());
    advertised_ = 0;
  }
  void write(uint32_t most) {
    if (!connection_.may_write()) return;
    const auto piece = connection_.start_write(most);
    FUZZ_CHECK(piece.length > 0 && piece.length <= most);
    FUZZ_CHECK(piece.to <= UINT64_MAX - (piece.length - 1));
    FUZZ_CHECK(!connection_.may_write() && !connection_.data_may_go());
    written_ = piece.length;
  }
  void offer(uint32_t length) {
    if (!connection_.may_send_sink_avail()) return;
    const auto m = connection_.send_sink_avail(length, 8, 4096);
    offers_.push_back(length);
    FUZZ_CHECK(offers_.size() <= kAdverts);
    sent(Bytes{m.bytes}.first(m.length));
  }
  void change_mode(Mode mode) {
    (void)connection_.change_send_mode(mode);
    controls();
  }
  void peer_changes(Mode mode) {
    std::array<std::byte, ModeChange::kSize> change{};
    ModeChange{.send_half = false, .mode = mode}.encode(change.data());
    message(MessageId::mode_change, change, 0);
  }
  void sink_offers() {
    std::array<std::byte, SinkAvail::kSize> advert{};
    SinkAvail{500, 9, 4096, 0}.encode(advert.data());
    message(MessageId::sink_avail, advert, 0);
  }
  void post() {
    if (receives_ == kBufs) return;
    ++receives_;
    connection_.posted();
  }
  void start_read(uint32_t most) {
    const uint32_t available = connection_.sink().available();
    if (available == 0 || reads_.size() > 3) return;
    const Sink::Piece piece = connection_.start_read(most);
    FUZZ_CHECK(piece.length > 0 && piece.length <= most && piece.length <= available);
    FUZZ_CHECK(connection_.sink().available() == available - piece.length);
    reads_.push_back(piece.length);
  }
  void finish_read() {
    if (reads_.empty()) return;
    read_ += reads_.front();
    connection_.finish_read(reads_.front());
    reads_.pop_front();
  }

  void raw(Bytes bytes) { take({bytes.begin(), bytes.end()}); }
  void offered(uint32_t length) {
    std::array<std::byte, SrcAvail::kSize> advert{};
    SrcAvail{length, 9, 4096}.encode(advert.data());
    message(MessageId::src_avail, advert, 1);
  }
  void message(Input& in, uint32_t payload, uint32_t off, uint32_t off_ack) {
    const MessageId mid = kMessages[in.u8() % kMessages.size()];
    std::vector<std::byte> extended(extended_header_size(mid));
    // Numbers that fit are likely only if they are small.
    for (size_t i = 0; i < std::min<size_t>(extended.size(), 4); ++i) {
      extended[i] = i < 2 && in.flag() ? std::byte{0} : static_cast<std::byte>(in.u8());
    }
    // What it has taken of the Data that was sent.
    if (mid == MessageId::sink_avail) extended.back() = static_cast<std::byte>(in.u8() % 8);
    message(mid, extended, payload, off, off_ack);
  }
  void message(MessageId mid, Bytes extended, uint32_t payload, uint32_t off = 0,
               uint32_t off_ack = 0) {
    std::vector<std::byte> m(Bsdh::kSize + extended.size() + payload);
    const Bsdh h{.mid = mid,
                 .flags = static_cast<uint8_t>(payload & 7),
                 .bufs = kBufs,
                 .length = static_cast<uint32_t>(m.size()) + (off >> 6),
                 .mseq = peer_mseq_ + 1 + (off & 0x3f),
                 .mseq_ack = own_mseq_ - (off_ack & 0xf) + (off_ack >> 6)};
    h.encode(m.data());
    std::copy(extended.begin(), extended.end(), m.begin() + Bsdh::kSize);
    take(m);
  }
  void take(const std::vector<std::byte>& m) {
    // Without a receive it cannot come.
    if (receives_ == 0) return;
    const auto in = connection_.on_message(m);
    if (!in.ok()) {
      FUZZ_CHECK(*text(in.error()) != '\0');
      broken_ = true;
      return;
    }
    --receives_;
    ++peer_mseq_;
    const auto h = Bsdh::parse(m.data());
    const uint32_t limit = h->mseq_ack + h->bufs;
    if (static_cast<int32_t>(limit - limit_) > 0) limit_ = limit;
    if (!in->payload.empty()) {
      FUZZ_CHECK(in->payload.data() >= m.data() &&
                 in->payload.data() + in->payload.size() <= m.data() + m.size());
    }
    outcome();
  }

  Connection connection_{{.own_bufs = kBufs,
                          .peer_bufs = kBufs,
                          .own_receive_size = kReceive,
                          .peer_receive_size = kReceive,
                          .own_max_adverts = kAdverts,
                          .peer_max_adverts = kAdverts}};
  uint32_t limit_ = kBufs;  // up to which this side may send
  uint32_t own_mseq_ = 0;
  uint32_t peer_mseq_ = 0;
  int receives_ = kBufs;
  uint32_t advertised_ = 0;
  uint32_t read_ = 0;  // and not answered
  std::deque<uint32_t> reads_;
  uint32_t written_ = 0;         // and not told
  std::deque<uint32_t> offers_;  // lengths
  bool broken_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in{fuzz::as_bytes(data, size)};
  Rig rig;
  rig.begin(in.choice(kLastStart));
  while (!in.empty() && !rig.broken()) rig.run(in);
  return 0;
}
