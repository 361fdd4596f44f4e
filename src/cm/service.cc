#include "cm/service.h"

#include <cerrno>
#include <memory>

#include "base/first_of_kind.h"
#include "base/log.h"
#include "cm/connection_id.h"
#include "cm/core.h"
#include "cm/datagram_id.h"
#include "port/route.h"

namespace weft::cm {
namespace {

class ProcessService final : public Service {
 public:
  int create_channel(std::shared_ptr<Channel>& channel) override {
    const auto a = adapter();
    if (!a.ok()) return a.error().code;
    auto fresh = std::make_shared<EventChannel>(**a);
    if (!fresh->valid()) return EMFILE;
    channel = std::move(fresh);
    return 0;
  }

  int create_id(Channel& channel, PortSpace space, Id*& id) override {
    if (space == PortSpace::ib) {
      say_unsupported("rdma_cm's port space RDMA_PS_IB");
      return EOPNOTSUPP;
    }
    if (space != PortSpace::tcp && space != PortSpace::udp && space != PortSpace::ipoib) {
      return EINVAL;
    }
    const auto a = adapter();
    if (!a.ok()) return a.error().code;
    auto& own = static_cast<EventChannel&>(channel);
    if (!own.alive()) return EIO;
    if (space == PortSpace::tcp) {
      id = ConnectionId::create(**a, own.shared_from_this());
    } else {
      id = DatagramId::create(**a, own.shared_from_this());
    }
    return 0;
  }

  void acknowledge(Event* event) override {
    const std::unique_ptr<Event> owned{event};
    account(*event).event_acknowledged();
  }

  port::Address source_towards(const port::Address& destination) override {
    const auto source = port::source_towards(destination, {});
    return source.ok() ? *source : port::Address{};
  }

  void say_unsupported(const char* what) override {
    if (!first_(what)) return;
    WEFT_LOG(warn, "%s: not supported; use RDMA_PS_TCP or RDMA_PS_UDP", what);
  }

  void say_refusal(const char* call, const char* why) override {
    if (first_(call)) {
      WEFT_LOG(warn, "%s: %s", call, why);
    } else {
      WEFT_LOG(info, "%s: %s", call, why);
    }
  }

 private:
  FirstOfKind first_;
};

}  // namespace

Service& service() {
  // Never destroyed: exit handlers of programs still disconnect.
  static auto& the_service = *new ProcessService;
  return the_service;
}

}  // namespace weft::cm
