// An Id of RDMA_PS_UDP: finds out who has which UD queue pair, or answers those who ask; and joins
// multicast groups. There is no connection: once the peer is known, nothing more is heard of it.
//
//   active:   connect() --> Inquiries --REP--> established, with address, QPN and Q_Key
//   listener: DatagramListener --> children, which wait; accept() tells, reject() says no
#pragma once

#include "cm/basic_id.h"
#include "cm/datagram_listener.h"
#include "cm/inquiries.h"

namespace weft::cm {

// The Q_Key of those who agree on none (RDMA_UDP_QKEY).
inline constexpr QKey kDefaultQKey{0x01234567};

class DatagramId final : public BasicId, private DatagramListenerHandler, private Inquirer {
 public:
  // Deleted by destroy(). The first engine is its home, always.
  static DatagramId* create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel);

  int connect(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int establish() override { return wrong_state(Step::establish); }
  int accept(verbs::QueuePair* pair, const ConnectionParameters& parameters) override;
  int reject(Bytes private_data) override;
  int disconnect() override;
  int queue_pair_attributes(verbs::QpState state, verbs::QpType type,
                            verbs::QpAttributes& attributes, uint32_t& mask) const override;
  int join_multicast(const port::Address& group, void* join) override;
  int leave_multicast(void* join) override;

 private:
  using BasicId::BasicId;
  ~DatagramId() override = default;

  // BasicId
  int bind_socket(const port::Address& at) override;
  void take_port(engine::Token& token) override;
  int start_listening(engine::Token& token, int backlog) override;
  void stop(engine::Token& token) override;
  // DatagramListenerHandler
  std::optional<wire::RejReason> datagram_requested(engine::Token& token, const DatagramCall& call,
                                                    const wdp::Handshake& handshake) override;
  // Inquirer
  void answered(engine::Token& token, const wdp::Handshake& handshake) override;
  // engine::EventHandler
  void on_no_memory(engine::Token& token) override;

  void ask(engine::Token& token, Qpn own);
  void fail_connect(engine::Token& token, EventKind kind, int status,
                    std::vector<std::byte> private_data = {});

  // Of the home's holder.
  port::Fd bound_;  // keeps the port that bind() promised
  std::optional<SessionToken> question_;
  std::optional<DatagramCall> call_;
  DatagramListener* listener_ = nullptr;
};

}  // namespace weft::cm
