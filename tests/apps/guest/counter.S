# The guest of qemu_migration.py: a kernel without anything else. It counts passes over 8 MiB of its memory. A pass
# checks each word for what the pass before wrote, and writes its own. The guest says on the debug console (port 0xe9)
# when it has finished a pass, and stops at the first wrong word. QEMU loads it by the multiboot header.
#
# QEMU 7.2's emulation (TCG) loses writes when it migrates, over TCP too: a round begins by forgetting which pages are
# dirty, and a store whose page stands in the emulated TLB as dirty is then not noticed. So the guest drops a page from the
# TLB when it has written all of it, and writes the same words again. The first of these stores is noticed, and the page
# is whole by then. If the guest is stopped within a page and loses a part of it, the second time writes that, too. For
# the same reason there is no stack: all that the guest knows is in registers.

        .set kFirst, 0x400000
        .set kEnd, kFirst + 0x800000
        .set kWordFactor, 2654435761    # A word's value is address * kWordFactor ^ pass * kPassFactor.
        .set kPassFactor, 0x9e3779b1

        .text
        .align 4
        .long 0x1badb002, 0, -0x1badb002        # multiboot: magic, flags, checksum

# In edi the word's address, in ebp the pass, in ebx what it adds to each word, in edx what the pass before added.
        .globl _start
_start:
        mov $kFirst, %edi
fill:                                   # as pass 0 would leave it
        imul $kWordFactor, %edi, %eax
        mov %eax, (%edi)
        add $4, %edi
        cmp $kEnd, %edi
        jb fill
        xor %ebp, %ebp

next_pass:
        inc %ebp
        imul $kPassFactor, %ebp, %ebx
        lea -kPassFactor(%ebx), %edx
        mov $kFirst, %edi

visit:
        imul $kWordFactor, %edi, %eax
        xor %edx, %eax
        cmp %eax, (%edi)
        jne wrong
        xor %edx, %eax
        xor %ebx, %eax
        mov %eax, (%edi)
        add $4, %edi
        test $0xfff, %edi
        jnz visit

        sub $0x1000, %edi
        invlpg (%edi)
once_more:
        imul $kWordFactor, %edi, %eax
        xor %ebx, %eax
        mov %eax, (%edi)
        add $4, %edi
        test $0xfff, %edi
        jnz once_more
        cmp $kEnd, %edi
        jb visit

        mov $passed, %esi
        mov $next_pass, %esp
        jmp say

wrong:
        mov %edi, %ebp
        mov $found, %esi
        mov $stop, %esp
        jmp say
stop:
        cli
        hlt
        jmp stop

# Says the text at esi, the number in ebp and the end of the line, and goes on at esp.
say:
        mov (%esi), %al
        test %al, %al
        jz number
        out %al, $0xe9
        inc %esi
        jmp say
number:
        mov %ebp, %ebx
        mov $8, %ecx
digit:
        rol $4, %ebx
        mov %ebx, %edx
        and $15, %edx
        mov digits(%edx), %al
        out %al, $0xe9
        loop digit
        mov $'\n', %al
        out %al, $0xe9
        jmp *%esp

passed: .asciz "pass "
found:  .asciz "wrong at "
digits: .ascii "0123456789abcdef"
