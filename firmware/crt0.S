/* SPDX-License-Identifier: MIT */
/* The first instructions (docs/rvx1.md, section 5.1): every register is zero, and so is the memory behind the
 * payload. */
	.section .text.start, "ax", @progbits
	.globl	start
start:
	.option	push
	.option	norelax
	la	gp, __global_pointer$
	.option	pop
	la	sp, fw_stack_end
	j	fw_main
