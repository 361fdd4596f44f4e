// Packets by RDMA Writes to their places in the receiver's ring.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "base/crc32c.h"
#include "kit/failure.h"
#include "kit/json_numbers.h"
#include "stream/outlet.h"
#include "stream/verbs_device.h"
#include "stream/write_format.h"

namespace weft::stream {
namespace {

constexpr unsigned kTurnBits = 48;
constexpr uint32_t kMore = 2;  // requests besides those that have slots

// Over RC a slot is free when the receiver has told that its packets are there, which it does when
// it looks: a few milliseconds' worth. With half as many both sides wait for a third of their time,
// with twice as many the packets leave the cache before they are sent (docs/performance-notes.md).
constexpr uint32_t kSlotsOfRc = 8 * Staging::kSlots;

// Slots: enough for two of the largest Writes, and a multiple of each.
uint32_t slots_for(const OutletOptions& options) {
  const uint32_t most = options.transport == Transport::rc ? kSlotsOfRc : Staging::kSlots;
  return std::max(most / options.group, 2U) * options.group;
}

class VerbsOutlet final : public Outlet {
 public:
  explicit VerbsOutlet(const OutletOptions& options);
  ~VerbsOutlet() override;
  nlohmann::json ends() override;
  void connect(const nlohmann::json& answer) override;
  uint32_t room(uint32_t stream, uint64_t number, uint32_t most) override;
  std::byte* slot(uint32_t stream, uint64_t number) override {
    return staging_.at(stream, connections_[stream].packets + number - connections_[stream].next);
  }
  void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) override;
  void end() override;
  bool progress() override;

 private:
  struct Connection {
    ibv_qp* qp = nullptr;
    uint64_t ring = 0;  // address of the first block's memory
    uint32_t key = 0;
    uint64_t next = 0;     // number of the next packet
    uint64_t packets = 0;  // posted
    uint64_t done = 0;     // of these, their slots are free again
    bool told = true;      // a completion will tell of the last one that was posted
  };
  static uint64_t id_of(uint32_t stream, const Connection& connection) {
    return uint64_t{stream} << kTurnBits | connection.packets;
  }
  static void post(Connection& connection, ibv_send_wr& wr);
  void prepare(Connection& connection, uint32_t stream, uint64_t number, uint32_t packets,
               bool last, size_t at);
  void give_back();
  uint64_t place_of(const Connection& connection, uint64_t number) const;

  const OutletOptions options_;
  const bool reliable_;
  const uint32_t slot_bytes_;
  const Staging staging_;
  std::vector<uint64_t> credits_;  // of RC: the receiver writes how far each stream may go
  VerbsDevice device_;
  ibv_mr* staging_memory_;
  ibv_mr* credit_memory_;
  std::vector<Connection> connections_;
  // The Writes of one post: the library sends those of equal size that follow each other together.
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::array<ibv_wc, 64> done_{};
  uint64_t packets_per_block_ = 1;
  uint64_t blocks_ = 1;
  uint64_t block_bytes_ = 0;
};

VerbsOutlet::VerbsOutlet(const OutletOptions& options)
    : options_(options),
      reliable_(options.transport == Transport::rc),
      slot_bytes_(slot_bytes_for(options.shape.packet_bytes())),
      staging_(options.streams, slots_for(options), slot_bytes_),
      credits_(options.streams),
      device_(options.library, options.streams * (staging_.slots() + kMore), false),
      staging_memory_(device_.add_memory(staging_.memory(), staging_.size(), false)),
      credit_memory_(device_.add_memory(reinterpret_cast<std::byte*>(credits_.data()),
                                        credits_.size() * sizeof credits_[0], true)),
      connections_(options.streams),
      requests_(staging_.slots()),
      pieces_(staging_.slots()) {
  try {
    for (Connection& connection : connections_) {
      connection.qp = device_.create({.reliable = reliable_,
                                      .sends = staging_.slots() + kMore,
                                      .receives = 1,
                                      .send_pieces = 1});
    }
  } catch (const kit::Failure&) {
    give_back();
    throw;
  }
}

VerbsOutlet::~VerbsOutlet() {
  give_back();
}

void VerbsOutlet::give_back() {
  for (const Connection& connection : connections_) {
    if (connection.qp != nullptr) device_.destroy(connection.qp);
  }
  device_.remove_memory(credit_memory_);
  device_.remove_memory(staging_memory_);
}

nlohmann::json VerbsOutlet::ends() {
  auto ends = nlohmann::json::array();
  for (size_t i = 0; i < connections_.size(); ++i) {
    ends.push_back({{"qp", device_.address_of(connections_[i].qp)},
                    {"credit_address", reinterpret_cast<uintptr_t>(&credits_[i])},
                    {"credit_key", credit_memory_->rkey}});
  }
  return ends;
}

void VerbsOutlet::connect(const nlohmann::json& answer) {
  if (answer.at("slot_bytes") != slot_bytes_) {
    // Asked again, it would have the same.
    throw std::runtime_error{
        fmt::format("the receiver's ring has slots of {} bytes, and this sender's packets need {}. "
                    "Run the same "
                    "version of weft on both sides",
                    answer.at("slot_bytes").dump(), slot_bytes_)};
  }
  packets_per_block_ = kit::number_at<uint32_t>(answer, "packets_per_block");
  blocks_ = kit::number_at<uint32_t>(answer, "blocks");
  block_bytes_ = kit::number_at<uint64_t>(answer, "block_bytes");
  for (size_t i = 0; i < connections_.size(); ++i) {
    const auto& end = answer.at("ends").at(i);
    connections_[i].ring = kit::number_at<uint64_t>(end, "address");
    connections_[i].key = kit::number_at<uint32_t>(end, "key");
    device_.connect(connections_[i].qp, end.at("qp"));
  }
}

uint64_t VerbsOutlet::place_of(const Connection& connection, uint64_t number) const {
  return connection.ring + number / packets_per_block_ % blocks_ * block_bytes_ +
         number % packets_per_block_ * slot_bytes_;
}

uint32_t VerbsOutlet::room(uint32_t stream, uint64_t number, uint32_t most) {
  Connection& connection = connections_[stream];
  connection.next = number;
  // A slot is free when the packet before it in the slot has left; so is a place in the queue.
  auto taken = static_cast<uint32_t>(connection.packets - connection.done);
  if (taken + most > staging_.slots()) {
    (void)progress();
    taken = static_cast<uint32_t>(connection.packets - connection.done);
  }
  uint32_t room = std::min(most, staging_.slots() - taken);
  if (reliable_) {
    const uint64_t limit = __atomic_load_n(&credits_[stream], __ATOMIC_ACQUIRE);
    room = static_cast<uint32_t>(std::min<uint64_t>(room, limit > number ? limit - number : 0));
  }
  return room;
}

void VerbsOutlet::send(uint32_t stream, uint64_t number, uint32_t packets, bool last) {
  Connection& connection = connections_[stream];
  size_t count = 0;
  // A Write stays inside its block, and inside its turn of slots.
  for (uint32_t left = packets; left > 0;) {
    uint64_t most = std::min<uint64_t>(options_.group - number % options_.group,
                                       packets_per_block_ - number % packets_per_block_);
    most = std::min<uint64_t>(most, staging_.slots() - connection.packets % staging_.slots());
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(left, most));
    prepare(connection, stream, number, n, last && n == left, count++);
    number += n;
    left -= n;
  }
  for (size_t i = 0; i + 1 < count; ++i) requests_[i].next = &requests_[i + 1];
  if (count > 0) post(connection, requests_[0]);
}

// The Write that is number `at` of its post.
void VerbsOutlet::prepare(Connection& connection, uint32_t stream, uint64_t number,
                          uint32_t packets, bool last, size_t at) {
  const uint32_t packet_bytes = options_.shape.packet_bytes();
  const bool trailers = options_.group > 1;
  if (trailers) {
    for (uint32_t i = 0; i < packets; ++i) {
      std::byte* slot = staging_.at(stream, connection.packets + i);
      write_trailer(
          slot + slot_bytes_ - sizeof(Trailer),
          {.number = number + i, .crc = reliable_ ? 0 : crc32c({slot, packet_bytes}), .zero = 0});
    }
  }
  ibv_sge& piece = pieces_[at];
  piece.addr = reinterpret_cast<uintptr_t>(staging_.at(stream, connection.packets));
  piece.length = trailers ? packets * slot_bytes_ : packet_bytes;
  piece.lkey = staging_memory_->lkey;
  ibv_send_wr& wr = requests_[at] = {};
  wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr.imm_data =
      htonl(immediate_of({.number = static_cast<uint32_t>(number & 0xffffff), .packets = packets}));
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = place_of(connection, number);
  wr.wr.rdma.rkey = connection.key;
  connection.packets += packets;
  // Completions tell how many packets have left; the queue has as many places as there are slots.
  wr.wr_id = id_of(stream, connection);
  const uint64_t quarter = std::max<uint64_t>(staging_.slots() / 4, 1);
  connection.told =
      last || connection.packets / quarter != (connection.packets - packets) / quarter;
  if (connection.told) wr.send_flags = IBV_SEND_SIGNALED;
}

void VerbsOutlet::post(Connection& connection, ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(connection.qp, &wr, &bad); error != 0) {
    errno = error;
    throw kit::system_failure("ibv_post_send");
  }
}

// The last Writes may not have asked for a completion: one of nothing does.
void VerbsOutlet::end() {
  for (uint32_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i].told) continue;
    connections_[i].told = true;
    ibv_send_wr wr{};
    wr.wr_id = id_of(i, connections_[i]);
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = connections_[i].ring;
    wr.wr.rdma.rkey = connections_[i].key;
    post(connections_[i], wr);
  }
}

bool VerbsOutlet::progress() {
  const int n = device_.poll(done_);
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = done_[static_cast<size_t>(i)];
    if (wc.status != IBV_WC_SUCCESS) {
      throw kit::Failure{std::string{"a Write failed: "} + device_.why(wc.status)};
    }
    connections_[wc.wr_id >> kTurnBits].done = wc.wr_id & ((uint64_t{1} << kTurnBits) - 1);
  }
  return std::all_of(connections_.begin(), connections_.end(), [](const Connection& connection) {
    return connection.done == connection.packets;
  });
}

}  // namespace

std::unique_ptr<Outlet> make_verbs_outlet(const OutletOptions& options) {
  return std::make_unique<VerbsOutlet>(options);
}

}  // namespace weft::stream
