/* SPDX-License-Identifier: MIT */
/* A program as ELF in a memory file, run by qemu-riscv64 with another memory file as standard output. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rvprogram.h"

#define QEMU "qemu-riscv64"
/* Not an older model, whose fmin and fmax are of another specification; without the additions of rv64. */
#define QEMU_CPU   "rv64,zba=false,zbb=false,zbc=false,zbs=false"
#define DEADLINE   60000 /* ms */
#define CODE_START 4096  /* file offsets, congruent to the addresses modulo the page size */
#define DATA_START (CODE_START + RVPROGRAM_CODE_SIZE)
#define NOT_RUN    127

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr code;
	Elf64_Phdr data;
	Elf64_Phdr log;
};

static Elf64_Phdr segment(uint32_t flags, uint64_t offset, uint64_t va, uint64_t in_file, uint64_t in_memory)
{
	return (Elf64_Phdr){.p_type = PT_LOAD,
	        .p_flags = flags,
	        .p_offset = offset,
	        .p_vaddr = va,
	        .p_paddr = va,
	        .p_filesz = in_file,
	        .p_memsz = in_memory,
	        .p_align = 4096};
}

static struct image image_of(const struct rvprogram *program)
{
	struct image image = {
	        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
	                           EV_CURRENT},
	                .e_type = ET_EXEC,
	                .e_machine = EM_RISCV,
	                .e_version = EV_CURRENT,
	                .e_entry = program->entry,
	                .e_phoff = offsetof(struct image, code),
	                .e_flags = EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE,
	                .e_ehsize = sizeof(Elf64_Ehdr),
	                .e_phentsize = sizeof(Elf64_Phdr),
	                .e_phnum = 3},
	        .code = segment(
	                PF_R | PF_X, CODE_START, RVPROGRAM_CODE, program->code_size, program->code_size),
	        .data = segment(
	                PF_R | PF_W, DATA_START, RVPROGRAM_DATA, RVPROGRAM_DATA_SIZE, RVPROGRAM_DATA_SIZE),
	        .log = segment(PF_R | PF_W, DATA_START, RVPROGRAM_LOG, 0, RVPROGRAM_LOG_SIZE),
	};

	return image;
}

static int write_image(const struct rvprogram *program)
{
	struct image image = image_of(program);
	int fd = memfd_create("program", 0); /* inherited: qemu opens it by its number */

	if (fd < 0)
		return -errno;
	if (pwrite(fd, &image, sizeof(image), 0) != (ssize_t)sizeof(image) ||
	        pwrite(fd, program->code, program->code_size, CODE_START) != (ssize_t)program->code_size ||
	        pwrite(fd, program->data, sizeof(program->data), DATA_START) !=
	                (ssize_t)sizeof(program->data)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static pid_t start(int program, int output)
{
	char path[32];
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	dup2(output, STDOUT_FILENO);
	execlp(QEMU, QEMU, "-cpu", QEMU_CPU, path, (char *)NULL);
	_exit(NOT_RUN);
}

/* Exit status as waitpid() gives it, after killing the child when it is late. */
static int finish(pid_t pid)
{
	struct pollfd wait = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status = 0;

	if (wait.fd < 0 || poll(&wait, 1, DEADLINE) != 1)
		kill(pid, SIGKILL);
	if (wait.fd >= 0)
		close(wait.fd);
	waitpid(pid, &status, 0);
	return status;
}

static void collect(int fd, struct rvoutput *output)
{
	struct stat stat = {0};

	fstat(fd, &stat);
	output->length = (size_t)stat.st_size;
	output->bytes = calloc(1, output->length + 1);
	if (!output->bytes || pread(fd, output->bytes, output->length, 0) != (ssize_t)output->length)
		output->length = 0;
}

void rvprogram_run_qemu(const struct rvprogram *program, struct rvoutput *output)
{
	int image = write_image(program);
	int out = memfd_create("output", MFD_CLOEXEC);
	int status;

	*output = (struct rvoutput){0};
	status = finish(start(image, out));
	if (WIFSIGNALED(status))
		snprintf(output->end, sizeof(output->end), "qemu: signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		snprintf(output->end, sizeof(output->end), "qemu: exit status %d", WEXITSTATUS(status));
	collect(out, output);
	close(out);
	close(image);
}

/* A program that only exits tells whether QEMU is there and knows the options. */
bool rvprogram_have_qemu(void)
{
	struct rvprogram *program = rvprogram_new();
	struct rvoutput output = {0};
	bool there;

	if (!program)
		return false;
	program->entry = rvprogram_here(program);
	rvprogram_exit(program);
	rvprogram_finish(program);
	rvprogram_run_qemu(program, &output);
	there = output.end[0] == '\0';
	free(output.bytes);
	free(program);
	return there;
}
