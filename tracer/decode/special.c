/*
 * What rows do beyond their arguments: specs/specials.def.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_constants.h"
#include "reading.h"

void special_none(struct reading *reading)
{
	(void)reading;
}

void special_mark(struct reading *reading)
{
	reading->out->count = 0;
}

void special_state(struct reading *reading)
{
	reading->out->count = 0;
}

/* Result unknown yet: by what was asked and what was there (decisions.md, "Kinds"); decode_result() settles it. */
static enum effect_kind open_kind(const struct reading *reading, uint64_t flags)
{
	const struct path_facts *facts = &reading->out->facts;
	uint64_t access = flags & O_ACCMODE;

	if ((flags & O_TMPFILE) == O_TMPFILE)
		return EFFECT_file_create;
	if (flags & O_CREAT)
		return !facts->exists || (flags & O_EXCL) ? EFFECT_file_create : EFFECT_file_write;
	if (access != O_RDONLY || (flags & O_TRUNC))
		return EFFECT_file_write;
	return EFFECT_file_read;
}

/*
 * Devices that everybody opens, and that wait for nobody (Documentation/admin-guide/devices.txt of the kernel): the bin and
 * its like, pseudo terminals, and the terminal of one's own, which at worst has the call made again.
 */
static bool opens_at_once(const struct path_facts *facts)
{
	enum { MEMORY = 1, TERMINAL = 5, PTS_FIRST = 136, PTS_LAST = 143 };
	const uint32_t memory =
	    1u << 3 /* null */ | 1u << 5 /* zero */ | 1u << 7 /* full */ | 1u << 8 /* random */ | 1u << 9 /* urandom */;

	if (!S_ISCHR(facts->mode))
		return false;
	if (facts->device_major == MEMORY)
		return facts->device_minor < 32 && (memory >> facts->device_minor & 1);
	if (facts->device_major == TERMINAL)
		return facts->device_minor == 0 /* tty */ || facts->device_minor == 2 /* ptmx */;
	return facts->device_major >= PTS_FIRST && facts->device_major <= PTS_LAST;
}

void special_open(struct reading *reading)
{
	uint64_t flags = reading->open_flags;
	mode_t mode = reading->out->facts.mode;
	struct effect *effect = reading->effect;

	if (flags & O_PATH) {
		reading->out->count = 0;
		return;
	}
	effect->kind = open_kind(reading, flags);
	reading->out->opens = true;
	/* O_TMPFILE holds the bit of O_DIRECTORY as well. */
	if (!(flags & O_CREAT) && (flags & O_TMPFILE) != O_TMPFILE)
		effect->has_mode = false;
	if (flags & O_CREAT)
		reading_add_text(reading, "looked_up", reading->out->facts.exists ? "present" : "absent");
	if (effect->kind == EFFECT_file_read) {
		reading->out->handling = HANDLING_let_go;
		return;
	}
	if (S_ISBLK(mode))
		effect->note = BYTES("a block device: any file on it may be changed without a trace");
	/* Opening a FIFO waits for its other end, and a device for whatever its driver likes. */
	if (reading->out->facts.exists && (S_ISFIFO(mode) || S_ISCHR(mode) || S_ISBLK(mode)) &&
	    !opens_at_once(&reading->out->facts))
		reading->out->waits = WAITS_PEER;
}

void special_exec(struct reading *reading)
{
	const struct syscall_row *row = reading->row;

	/* AT_EXECVE_CHECK (6.14) asks whether an exec would be allowed and runs nothing. */
	if (row->args[4].name && (reading_arg(reading, 4) & AT_EXECVE_CHECK)) {
		reading->out->count = 0;
		return;
	}
	/* `path` is the program as named; what a link at its end leads to is what will be run. */
	struct path_request *request = &reading->out->request;
	request->follow = true;
	if (S_ISLNK(reading->effect->object.type) && request->path.size > 0) {
		struct effect_object program;
		path_resolve(reading->decoder->cache, reading->target, request, reading_arena(reading), &program,
			     &reading->out->facts);
		reading_note_waiting(reading, &reading->out->facts);
	}
	reading->effect->cwd = path_working_directory(reading->target, reading_arena(reading));
}

/* Families whose sockets reach beyond the machine's internet protocols. */
static bool is_raw_family(const struct effect_peer *peer)
{
	return !bytes_equal(peer->family, BYTES("inet")) && !bytes_equal(peer->family, BYTES("inet6")) &&
	       !bytes_equal(peer->family, BYTES("vsock")) && !bytes_equal(peer->family, BYTES("unix"));
}

static enum effect_kind unix_kind(const struct effect *effect, const struct effect_peer *peer)
{
	switch (effect->kind) {
	case EFFECT_net_connect:
		return EFFECT_ipc_connect;
	case EFFECT_net_send:
		return EFFECT_ipc_send;
	case EFFECT_net_bind:
		return peer->path.data && peer->path.data[0] == '/' ? EFFECT_node_create : EFFECT_net_bind;
	default:
		return effect->kind;
	}
}

/* The kernel takes "any address" for the host's own, where one is to be reached (inet(7)). */
static void note_unspecified(struct effect *effect, const struct effect_peer *peer)
{
	if (bytes_equal(peer->address, BYTES("0.0.0.0")))
		effect->note = BYTES("any address: this host is reached, at 127.0.0.1");
	else if (bytes_equal(peer->address, BYTES("::")))
		effect->note = BYTES("any address: this host is reached, at ::1");
}

void special_sockaddr(struct reading *reading)
{
	struct effect *effect = reading->effect;
	bool own = effect->local.present;
	const struct effect_peer *peer = own ? &effect->local : &effect->peer;

	if (!peer->present)
		return;
	if (bytes_equal(peer->family, BYTES("unspec"))) {
		/* connect(2): dissolves a datagram socket's connection. */
		if (effect->kind == EFFECT_net_connect)
			reading->out->count = 0;
		return;
	}
	if (bytes_equal(peer->family, BYTES("unix"))) {
		effect->kind = unix_kind(effect, peer);
		effect->object = peer->object;
	} else if (is_raw_family(peer)) {
		effect->kind = EFFECT_net_raw;
	} else if (!own) {
		note_unspecified(effect, peer);
	}
	if (peer->port == 53 && reading->payload.data)
		(void)reading_dns(reading, reading->payload);
}

/* All of it is done while the messages are read, one by one. */
void special_message(struct reading *reading)
{
	(void)reading;
}

/* The caller, or another thread of its process: calls take thread ids where they say pid. */
static bool is_own_thread(const struct target *target, pid_t ours)
{
	char name[32];

	if (ours <= 0)
		return false;
	if (ours == target->pid || ours == target->tid)
		return true;
	snprintf(name, sizeof(name), "task/%d", ours);
	return faccessat(target->task, name, F_OK, 0) == 0;
}

void special_others(struct reading *reading)
{
	const struct effect_target *target = &reading->effect->target;

	if (!target->present)
		return;
	/* 0 is the caller itself, but for kill(2) its whole group. */
	bool own = target->pid == 0 ? reading->effect->kind != EFFECT_proc_signal
				    : is_own_thread(reading->target, target->ours);
	if (own)
		reading->out->count = 0;
}

/* ioctl_fideduperange(2): asked of the source; the files that change are named in the argument. */
static void read_deduplication(struct reading *reading, uint64_t address)
{
	enum { TARGETS_LIMIT = 64 };
	struct file_dedupe_range range;
	struct file_dedupe_range_info info[TARGETS_LIMIT];
	struct path_facts facts;

	if (!reading_memory(reading, address, &range, sizeof(range)))
		return;
	size_t count = range.dest_count < TARGETS_LIMIT ? range.dest_count : TARGETS_LIMIT;
	if (count == 0 || !reading_memory(reading, address + sizeof(range), info, count * sizeof(info[0])))
		return;
	path_of_descriptor(reading->decoder->cache, reading->target, (int)info[0].dest_fd, reading_arena(reading),
			   &reading->effect->to, &facts);
	int64_t *numbers = arena_alloc(reading_arena(reading), count * sizeof(*numbers));
	if (!numbers)
		return;
	for (size_t i = 0; i < count; i++)
		numbers[i] = info[i].dest_fd;
	struct effect_value *value = reading_value(reading, "dest_fds", VALUE_INT_LIST);
	value->numbers.items = numbers;
	value->numbers.count = count;
}

/* Where SIGIO and its relatives are told to go: kill(2) by other means (fcntl(2), F_SETOWN). */
void special_owner(struct reading *reading)
{
	struct f_owner_ex owner;
	int pid = 0;
	bool is_ioctl = syscall_number(reading->row) == SYS_ioctl;
	uint64_t command = (uint32_t)reading_arg(reading, 1), argument = reading_arg(reading, 2);

	if (is_ioctl && command == FIDEDUPERANGE)
		read_deduplication(reading, argument);
	if (reading->effect->kind != EFFECT_proc_signal)
		return;
	if (is_ioctl) {
		if (!reading_memory(reading, argument, &pid, sizeof(pid)))
			return;
	} else if (command == F_SETOWN) {
		pid = (int)argument;
	} else if (command == F_SETOWN_EX) {
		if (!reading_memory(reading, argument, &owner, sizeof(owner)))
			return;
		pid = owner.type == F_OWNER_PGRP ? -owner.pid : owner.pid;
	} else {
		return; /* F_SETSIG: which signal, not to whom */
	}
	reading_target(reading, pid);
}

static bool is_program(const struct effect *effect)
{
	if (strcmp(effect->syscall, "bpf") != 0)
		return true;
	for (size_t i = 0; i < effect->value_count; i++)
		if (strcmp(effect->values[i].name, "cmd") == 0 && effect->values[i].type == VALUE_TEXT)
			return strcmp(effect->values[i].text, "BPF_PROG_LOAD") == 0;
	return true;
}

/* Whoever puts code into the kernel can change what it tells us. */
void reading_note_trust(struct effect *effect)
{
	static const char *const probes[] = {"/sys/kernel/tracing/", "/sys/kernel/debug/tracing/"};
	bool trusted = true;

	if (effect->kind == EFFECT_kernel_module || effect->kind == EFFECT_kernel_bpf)
		trusted = effect->kind == EFFECT_kernel_bpf && !is_program(effect);
	if (effect->kind == EFFECT_kernel_reboot)
		trusted = strncmp(effect->syscall, "kexec", strlen("kexec")) != 0;
	for (size_t i = 0; effect->kind == EFFECT_file_write && i < sizeof(probes) / sizeof(probes[0]); i++)
		trusted = trusted && !bytes_start_with(effect->object.path, bytes_of(probes[i]));
	if (!trusted && !effect->note.data)
		effect->note = BYTES("code for the kernel: once it is in, what is recorded need not be true");
}

void special_timex(struct reading *reading)
{
	size_t last = 0;
	unsigned modes = 0;

	while (last + 1 < SYSCALL_ARGS && reading->row->args[last + 1].name)
		last++;
	if (!reading_memory(reading, reading_arg(reading, last), &modes, sizeof(modes)))
		return;
	if (modes == 0)
		reading->out->count = 0;
	else
		reading_add_hex(reading, "modes", modes);
}
