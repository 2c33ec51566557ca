/*
 * setsockopt, by what the options change, and the one getsockopt that connects.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/in6.h>

#include "row_net.h"

#ifndef IPV6_HDRINCL
#define IPV6_HDRINCL 36
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif

/* linux/sctp.h, whose names clash with those of the C library on some systems */
enum { BINDX_ADD = 100, CONNECTX_OLD = 107, CONNECTX = 110, CONNECTX3 = 111 };

struct option {
	int level;
	const char *level_name;
	int name;
	const char *kind;
};

static const struct option bind_to_device = {SOL_SOCKET, "SOL_SOCKET", SO_BINDTODEVICE, "net.raw"};
static const struct option bind_to_index = {SOL_SOCKET, "SOL_SOCKET", SO_BINDTOIFINDEX, "net.raw"};
static const struct option mark = {SOL_SOCKET, "SOL_SOCKET", SO_MARK, "net.raw"};
static const struct option filter = {SOL_SOCKET, "SOL_SOCKET", SO_ATTACH_FILTER, "net.raw"};
static const struct option reuse_filter = {SOL_SOCKET, "SOL_SOCKET", SO_ATTACH_REUSEPORT_CBPF, "net.raw"};
static const struct option attach_bpf = {SOL_SOCKET, "SOL_SOCKET", SO_ATTACH_BPF, "kernel.bpf"};
static const struct option reuse_bpf = {SOL_SOCKET, "SOL_SOCKET", SO_ATTACH_REUSEPORT_EBPF, "kernel.bpf"};
static const struct option free_bind = {SOL_IP, "SOL_IP", IP_FREEBIND, "net.raw"};
static const struct option transparent = {SOL_IP, "SOL_IP", IP_TRANSPARENT, "net.raw"};
static const struct option header = {SOL_IP, "SOL_IP", IP_HDRINCL, "net.raw"};
static const struct option free_bind6 = {SOL_IPV6, "SOL_IPV6", IPV6_FREEBIND, "net.raw"};
static const struct option transparent6 = {SOL_IPV6, "SOL_IPV6", IPV6_TRANSPARENT, "net.raw"};
static const struct option header6 = {SOL_IPV6, "SOL_IPV6", IPV6_HDRINCL, "net.raw"};
static const struct option repair = {SOL_TCP, "SOL_TCP", TCP_REPAIR, "net.raw"};
static const struct option sctp_connect = {SOL_SCTP, "SOL_SCTP", CONNECTX, "net.connect"};
static const struct option sctp_connect_old = {SOL_SCTP, "SOL_SCTP", CONNECTX_OLD, "net.connect"};
static const struct option sctp_bind = {SOL_SCTP, "SOL_SCTP", BINDX_ADD, "net.bind"};

static long say(const struct option *option, int fd, const void *value, size_t size)
{
	long result = syscall(SYS_setsockopt, fd, option->level, option->name, value, size);

	row_expect("setsockopt", option->kind, result);
	row_number("args.sockfd", fd);
	row_text("args.level", option->level_name);
	row_number("args.optname", option->name);
	row_number("args.optlen", (long)size);
	row_done();
	return result;
}

static long say_on(const struct option *option, int fd)
{
	int on = 1;

	return say(option, fd, &on, sizeof(on));
}

static int new_socket(int family, int type)
{
	return socket(family, type | SOCK_CLOEXEC, 0);
}

static void devices(void)
{
	int fd = new_socket(AF_INET, SOCK_DGRAM);
	int index = (int)if_nametoindex("lo");
	char seen[IFNAMSIZ] = "";
	socklen_t size = sizeof(seen);

	row_must(say(&bind_to_device, fd, "lo", 3) == 0);
	row_must(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, seen, &size) == 0 && strcmp(seen, "lo") == 0);
	say(&bind_to_device, new_socket(AF_INET, SOCK_DGRAM), "nosuch0", 8);
	say(&bind_to_index, new_socket(AF_INET, SOCK_DGRAM), &index, sizeof(index));
	index = -1;
	say(&bind_to_index, new_socket(AF_INET, SOCK_DGRAM), &index, sizeof(index));
}

static void filters(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0xffff);
	struct sock_fprog program = {.len = 1, .filter = &all};
	int fd = new_socket(AF_INET, SOCK_DGRAM), on = 1;

	row_must(say(&filter, fd, &program, sizeof(program)) == 0);
	row_must(setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof(on)) == 0);
	/* Locked. */
	row_must(say(&filter, fd, &program, sizeof(program)) == -1);
	int other = new_socket(AF_INET, SOCK_DGRAM);
	say(&reuse_filter, other, &program, sizeof(program));
	row_must(setsockopt(other, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0);
	say(&reuse_filter, other, &program, sizeof(program));
	int none = -1;
	say(&attach_bpf, new_socket(AF_INET, SOCK_DGRAM), &none, sizeof(none));
	say(&reuse_bpf, other, &none, sizeof(none));
}

/* A program that passes every packet; -1 where loading one is not allowed. */
static int load_program(void)
{
	struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0xffff},
				  {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = 2;
	attr.license = (uintptr_t) "GPL";
	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void programs(void)
{
	int program = load_program(), on = 1;
	int fd = new_socket(AF_INET, SOCK_DGRAM);

	if (program < 0) {
		row_skip("setsockopt", "attaching a BPF program needs the right to load one");
		return;
	}
	row_must(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0);
	row_must(say(&attach_bpf, fd, &program, sizeof(program)) == 0);
	say(&reuse_bpf, fd, &program, sizeof(program));
}

static void addresses(void)
{
	say_on(&free_bind, new_socket(AF_INET, SOCK_DGRAM));
	say(&free_bind, new_socket(AF_INET, SOCK_DGRAM), NULL, 0);
	/* Only raw sockets have it. */
	row_must(say_on(&header, new_socket(AF_INET, SOCK_STREAM)) == -1);
	int fd = new_socket(AF_INET6, SOCK_DGRAM);
	if (fd < 0) {
		row_skip("setsockopt", "no IPv6 here");
		return;
	}
	say_on(&free_bind6, fd);
	row_must(say_on(&header6, fd) == -1);
}

/* What takes the rights of an administrator of the network: those of an own namespace. */
static void privileged_in_child(void)
{
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
	int raw6 = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);

	row_must(say_on(&header, raw) == 0);
	row_must(say_on(&mark, new_socket(AF_INET, SOCK_DGRAM)) == 0);
	row_must(say_on(&transparent, new_socket(AF_INET, SOCK_DGRAM)) == 0);
	row_must(say_on(&repair, new_socket(AF_INET, SOCK_STREAM)) == 0);
	row_must(say_on(&repair, new_socket(AF_INET, SOCK_DGRAM)) == -1);
	if (raw6 < 0)
		return;
	say_on(&header6, raw6);
	say_on(&transparent6, new_socket(AF_INET6, SOCK_DGRAM));
}

static void unprivileged(void)
{
	if (geteuid() == 0) {
		row_skip("setsockopt", "EPERM needs a user other than root");
		return;
	}
	row_must(say_on(&mark, new_socket(AF_INET, SOCK_DGRAM)) == -1);
	row_must(say_on(&transparent, new_socket(AF_INET, SOCK_DGRAM)) == -1);
	row_must(say_on(&repair, new_socket(AF_INET, SOCK_STREAM)) == -1);
}

static void sctp(void)
{
	struct sockaddr_in address = row_inet(row_free_port(SOCK_STREAM));
	int stream = new_socket(AF_INET, SOCK_STREAM);
	int fd = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);

	/* No socket of TCP has these. */
	row_must(say(&sctp_connect, stream, &address, sizeof(address)) == -1);
	row_must(say(&sctp_connect_old, stream, &address, sizeof(address)) == -1);
	row_must(say(&sctp_bind, stream, &address, sizeof(address)) == -1);
	if (fd < 0) {
		row_skip("setsockopt", "no SCTP in this kernel: its options cannot succeed");
		return;
	}
	say(&sctp_bind, fd, &address, sizeof(address));
	address = row_inet(row_free_port(SOCK_STREAM));
	say(&sctp_connect, fd, &address, sizeof(address));
}

/* Options that change nothing of this kind. */
static void plain(void)
{
	int high = fcntl(new_socket(AF_INET, SOCK_STREAM), F_DUPFD, ROW_HIGH_FD), on = 1;

	row_must(syscall(SYS_setsockopt, high, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	row_must(syscall(SYS_setsockopt, high, SOL_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
	row_absent("setsockopt");
	row_number("args.sockfd", high);
	row_done();
}

static void run_setsockopt(void)
{
	devices();
	filters();
	programs();
	addresses();
	unprivileged();
	sctp();
	plain();
	row_in_child("setsockopt", CLONE_NEWNET, privileged_in_child);
}

static void run_getsockopt(void)
{
	char value[64] = "";
	socklen_t size = sizeof(value);
	int fd = new_socket(AF_INET, SOCK_STREAM);

	long result = syscall(SYS_getsockopt, fd, SOL_SCTP, CONNECTX3, value, &size);
	row_must(result == -1);
	row_expect("getsockopt", "net.connect", result);
	row_number("args.sockfd", fd);
	row_text("args.level", "SOL_SCTP");
	row_number("args.optname", CONNECTX3);
	row_done();
	row_skip("getsockopt", "success needs SCTP and an old program's structure");

	int high = fcntl(fd, F_DUPFD, ROW_HIGH_FD), type;
	size = sizeof(type);
	row_must(syscall(SYS_getsockopt, high, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM);
	row_absent("getsockopt");
	row_number("args.sockfd", high);
	row_done();
}

int main(int argc, char **argv)
{
	static const struct row_case cases[] = {{"setsockopt", run_setsockopt}, {"getsockopt", run_getsockopt}, {0}};

	alarm(40);
	return row_main(cases, argc, argv);
}
