// Judging the facts: what would stop a connection here, and what to do about it. Pure.
#pragma once

#include <vector>

#include "doctor/facts.h"
#include "doctor/finding.h"

namespace weft::doctor {

Finding check_libraries(const std::vector<LibraryFact>& libraries);
Finding check_addresses(const std::vector<AddressFact>& addresses, const std::string& complaint,
                        const std::string& netlink_error);
Finding check_descriptors(uint64_t soft, uint64_t hard);
Finding check_congestion(const CongestionFact& congestion);
Finding check_socket_memory(const SocketMemoryFact& memory);
Finding check_ports(const std::optional<PortFact>& ports);
Finding check_bind(const std::string& bind_error);
Finding check_crc(const std::string& engine);
Finding check_kernel_devices(const std::vector<std::string>& devices);
Finding check_options(const std::vector<std::string>& errors);
Finding check_sdp(const SdpFact& sdp);

// All of them, in the order above.
std::vector<Finding> check_all(const DoctorFacts& facts);

}  // namespace weft::doctor
