// Enums as programs give them. A C program may put any number into one; in C++ only the numbers of
// the enum may be read from it as such.
#pragma once

#include <cstring>
#include <type_traits>

namespace weft::abi {

template <class Enum>
int number_of(const Enum& value) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(int));
  int n = 0;
  std::memcpy(&n, &value, sizeof n);
  return n;
}

}  // namespace weft::abi
