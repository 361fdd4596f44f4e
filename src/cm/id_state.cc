#include "cm/id_state.h"

#include <array>

namespace weft::cm {
namespace {

struct Row {
  IdState from;
  Step step;
  IdState to;
};

using S = IdState;
constexpr auto kRows = std::to_array<Row>({
    {S::idle, Step::bind, S::bound},
    {S::idle, Step::resolve_address, S::addr_resolved},
    {S::idle, Step::listen, S::listening},
    {S::bound, Step::resolve_address, S::addr_resolved},
    {S::bound, Step::listen, S::listening},
    {S::addr_resolved, Step::resolve_route, S::route_resolved},
    {S::route_resolved, Step::connect, S::connecting},

    {S::connecting, Step::reply, S::connected},
    {S::connecting, Step::reply_for_program, S::responded},
    {S::connecting, Step::failure, S::failed},
    {S::responded, Step::establish, S::connected},
    {S::responded, Step::stream_ended, S::closed},

    {S::requested, Step::accept, S::connected},
    {S::requested, Step::failure, S::failed},
    {S::requested, Step::answer, S::accepting},
    {S::accepting, Step::reply, S::connected},
    {S::accepting, Step::failure, S::failed},
    {S::requested, Step::reject, S::closed},
    {S::requested, Step::peer_gone, S::deserted},
    {S::deserted, Step::reject, S::closed},

    {S::connected, Step::disconnect, S::closing},
    {S::connected, Step::failure, S::failed},
    {S::connected, Step::stream_ended, S::closed},
    {S::closing, Step::stream_ended, S::closed},

    // Both sides disconnect, and each may be late.
    {S::connecting, Step::disconnect, S::failed},
    {S::accepting, Step::disconnect, S::failed},
    {S::responded, Step::disconnect, S::closing},
    {S::closing, Step::disconnect, S::closing},
    {S::closed, Step::disconnect, S::closed},
    {S::failed, Step::disconnect, S::failed},
});

}  // namespace

std::optional<IdState> after(IdState state, Step step) {
  for (const Row& row : kRows) {
    if (row.from == state && row.step == step) return row.to;
  }
  return {};
}

std::string states_for(Step step) {
  std::string states;
  for (const Row& row : kRows) {
    if (row.step == step)
      states += (states.empty() ? "" : " or ") + std::string{to_string(row.from)};
  }
  return states;
}

const char* to_string(Step step) {
  switch (step) {
    case Step::bind:
      return "rdma_bind_addr";
    case Step::resolve_address:
      return "rdma_resolve_addr";
    case Step::resolve_route:
      return "rdma_resolve_route";
    case Step::listen:
      return "rdma_listen";
    case Step::connect:
      return "rdma_connect";
    case Step::establish:
      return "rdma_establish";
    case Step::accept:
      return "rdma_accept";
    case Step::reject:
      return "rdma_reject";
    case Step::disconnect:
      return "rdma_disconnect";
    case Step::answer:
    case Step::reply:
    case Step::reply_for_program:
    case Step::failure:
    case Step::peer_gone:
    case Step::stream_ended:
      break;
  }
  return "?";
}

const char* to_string(IdState state) {
  switch (state) {
    case S::idle:
      return "idle";
    case S::bound:
      return "bound";
    case S::addr_resolved:
      return "address resolved";
    case S::route_resolved:
      return "route resolved";
    case S::listening:
      return "listening";
    case S::connecting:
      return "connecting";
    case S::responded:
      return "responded to";
    case S::requested:
      return "requested";
    case S::deserted:
      return "deserted";
    case S::accepting:
      return "accepting";
    case S::connected:
      return "connected";
    case S::closing:
      return "closing";
    case S::closed:
      return "closed";
    case S::failed:
      return "failed";
  }
  return "?";
}

}  // namespace weft::cm
