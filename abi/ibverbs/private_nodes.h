// rdma-core renames the node of its private symbols when one of them changes: IBVERBS_PRIVATE_34
// became _57, _59 and _64. A program, or a provider that it is linked to, does not start without
// the node that it was made with, so each name is in all of them (spec/abi 1.3). One symbol has one
// node, so a name has a symbol for each. The version script cannot say that.
#pragma once

#define WEFT_IN_NODE(name, number)                \
  __asm__(".globl " #name "_in_" #number          \
          "\n"                                    \
          ".set " #name "_in_" #number ", " #name \
          "\n"                                    \
          ".symver " #name "_in_" #number ", " #name "@IBVERBS_PRIVATE_" #number);
// `name` is of C, and defined in the same source.
#define WEFT_IN_LATER_NODES(name) \
  WEFT_IN_NODE(name, 57)          \
  WEFT_IN_NODE(name, 59)          \
  WEFT_IN_NODE(name, 64)
// The same, and in the first one, of Debian 12.
#define WEFT_IN_PRIVATE_NODES(name) \
  WEFT_IN_LATER_NODES(name)         \
  __asm__(".symver " #name ", " #name "@@@IBVERBS_PRIVATE_34");
