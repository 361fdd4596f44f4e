// What to say where rdma_cm(7) cannot have a port.
#pragma once

#include "port/address.h"

namespace weft::cm {

// On InfiniBand the numbers of rdma_cm are others than those of TCP and UDP, and programs build on
// that: a server listens on one number by both. weft's rdma_cm listens by TCP, or UDP, itself. A
// sentence for the user, with who has the port.
void say_tcp_port_taken(const port::Address& at);
void say_udp_port_taken(const port::Address& at);

}  // namespace weft::cm
