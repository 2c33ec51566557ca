#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tracer/decode/reading.h"

static struct decoder decoder;

static int set_up(void **state)
{
	(void)state;
	return arena_init(&decoder.arena, 1 << 20) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	arena_free(&decoder.arena);
	return 0;
}

/* Bytes that nobody terminated: a read past their end is for the sanitizers to find. */
static struct bytes unterminated(const char *text)
{
	struct bytes bytes = bytes_of(text);
	char *copy = test_malloc(bytes.size ? bytes.size : 1);

	memcpy(copy, bytes.data, bytes.size);
	return (struct bytes){copy, bytes.size};
}

static void check_effect(struct effect *effect, const char *expected)
{
	struct reading reading = {.decoder = &decoder, .effect = effect};

	arena_reset(&decoder.arena);
	reading_delegates(&reading, effect);
	if (!expected) {
		assert_null(effect->delegated.data);
		return;
	}
	assert_non_null(effect->delegated.data);
	assert_int_equal(effect->delegated.size, strlen(expected));
	assert_memory_equal(effect->delegated.data, expected, strlen(expected));
}

static void check_socket(enum effect_kind kind, const char *path, const char *expected)
{
	struct effect effect = {.kind = kind};

	effect.peer = (struct effect_peer){.present = true, .family = BYTES("unix"), .path = unterminated(path)};
	check_effect(&effect, expected);
	test_free((void *)(uintptr_t)effect.peer.path.data);
}

static void check_file(enum effect_kind kind, const char *path, const char *to, const char *expected)
{
	struct effect effect = {.kind = kind};

	effect.object.path = unterminated(path);
	if (to)
		effect.to.path = unterminated(to);
	check_effect(&effect, expected);
	test_free((void *)(uintptr_t)effect.object.path.data);
	if (to)
		test_free((void *)(uintptr_t)effect.to.path.data);
}

static void test_sockets(void **state)
{
	(void)state;
	check_socket(EFFECT_ipc_connect, "/run/docker.sock", "docker");
	check_socket(EFFECT_ipc_connect, "/home/user/.docker/run/docker.sock", "docker");
	check_socket(EFFECT_ipc_connect, "/run/docker.socket", NULL);
	check_socket(EFFECT_ipc_connect, "docker.sock", NULL);
	check_socket(EFFECT_ipc_send, "/run/systemd/private", "systemd");
	check_socket(EFFECT_ipc_pass_fd, "/run/user/1000/bus", "dbus");
	check_socket(EFFECT_ipc_connect, "/tmp/dbus-0123456789", "dbus");
	check_socket(EFFECT_ipc_connect, "/tmp/dbus-012345678", NULL);
	check_socket(EFFECT_ipc_connect, "/run/systemd/resolve/io.systemd.Resolve", "resolved");
	check_socket(EFFECT_ipc_connect, "/run/user/1000/wayland-0", "wayland");
	check_socket(EFFECT_ipc_connect, "/run/user/1000/wayland-x", NULL);
	check_socket(EFFECT_ipc_connect, "/tmp/ssh-XXXXabcdef/agent.4242", "ssh-agent");
	check_socket(EFFECT_ipc_connect, "", NULL);
	/* binding is offering, not asking */
	check_socket(EFFECT_net_bind, "/run/docker.sock", NULL);
	check_socket(EFFECT_node_create, "/run/docker.sock", NULL);
}

static void test_abstract(void **state)
{
	(void)state;
	check_socket(EFFECT_ipc_connect, "@/tmp/.X11-unix/X0", "x11");
	check_socket(EFFECT_ipc_connect, "@/tmp/dbus-abcdef", "dbus");
	check_socket(EFFECT_ipc_connect, "@/tmp/else", NULL);
	check_socket(EFFECT_ipc_connect, "@", NULL);
	/* names and paths are different spaces */
	check_socket(EFFECT_ipc_connect, "@/run/docker.sock", NULL);
}

static void test_files(void **state)
{
	(void)state;
	check_file(EFFECT_file_write, "/etc/crontab", NULL, "cron");
	check_file(EFFECT_file_write, "/etc/crontab2", NULL, NULL);
	check_file(EFFECT_file_write, "/etc/cronta", NULL, NULL);
	check_file(EFFECT_file_create, "/etc/cron.daily/job", NULL, "cron");
	check_file(EFFECT_file_create, "/var/spool/cron/crontabs/root", NULL, "cron");
	check_file(EFFECT_file_symlink, "/etc/systemd/system/a.target.wants/b.service", NULL, "systemd");
	check_file(EFFECT_file_create, "/home/user/.config/systemd/user/x.service", NULL, "systemd");
	check_file(EFFECT_file_mode, "/etc/cron.daily/job", NULL, "cron");
	check_file(EFFECT_file_write, "/proc/sysrq-trigger", NULL, "kernel helper");
	check_file(EFFECT_file_write, "/sys/fs/cgroup/rdma/release_agent", NULL, "kernel helper");
	check_file(EFFECT_file_write, "/tmp/plain", NULL, NULL);
	/* a socket's pattern is no file's, and reading asks nobody */
	check_file(EFFECT_file_write, "/run/docker.sock", NULL, NULL);
	check_file(EFFECT_file_read, "/etc/crontab", NULL, NULL);
	check_file(EFFECT_proc_exec, "/etc/cron.daily/job", NULL, NULL);
}

static void test_second_object(void **state)
{
	(void)state;
	check_file(EFFECT_file_rename, "/tmp/job", "/etc/cron.d/job", "cron");
	check_file(EFFECT_file_link, "/tmp/job", "/var/spool/at/a0001", "at");
	check_file(EFFECT_file_rename, "/etc/cron.d/job", "/tmp/job", "cron");
	check_file(EFFECT_file_rename, "/tmp/a", "/tmp/b", NULL);
}

static void test_host_view(void **state)
{
	(void)state;
	struct effect file = {.kind = EFFECT_file_write};
	file.object.path = BYTES("/inside/job");
	file.object.host_path = BYTES("/etc/cron.d/job");
	check_effect(&file, "cron");

	struct effect socket = {.kind = EFFECT_ipc_connect};
	socket.peer = (struct effect_peer){.present = true, .family = BYTES("unix"), .path = BYTES("/inside/s")};
	socket.peer.object.path = BYTES("/inside/s");
	socket.peer.object.host_path = BYTES("/run/docker.sock");
	check_effect(&socket, "docker");
}

static void test_mappings(void **state)
{
	(void)state;
	struct effect map = {.kind = EFFECT_file_map, .object.path = BYTES("/etc/cron.daily/job"), .has_flags = true};
	map.flags[0] = "PROT_READ";
	map.flags[1] = "PROT_EXEC";
	map.flag_count = 2;
	check_effect(&map, NULL);
	map.flags[1] = "PROT_WRITE";
	check_effect(&map, "cron");
}

static void test_absent(void **state)
{
	(void)state;
	struct effect nothing = {.kind = EFFECT_file_write};
	check_effect(&nothing, NULL);
	struct effect no_peer = {.kind = EFFECT_ipc_pass_fd};
	check_effect(&no_peer, NULL);
}

/* Each pattern matches the path that its stars and question marks stand for letters in: no line is dead. */
static void test_every_pattern(void **state)
{
	(void)state;
	static const struct {
		const char *name, *kind, *pattern;
	} lines[] = {
#define DELEGATE(identifier, name_, kind_, pattern_, meaning) {name_, #kind_, pattern_},
#include "delegates.def"
#undef DELEGATE
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char path[256] = "@";
		size_t used = 1;
		for (const char *c = lines[i].pattern; *c; c++) {
			if (*c == '[') {
				path[used++] = '1';
				c = strchr(c, ']');
				continue;
			}
			path[used++] = *c == '*' ? '/' : *c == '?' ? 'x' : *c;
			if (*c == '*')
				path[used++] = 'x';
		}
		path[used] = 0;
		if (strcmp(lines[i].kind, "FILE_PATH") == 0)
			check_file(EFFECT_file_create, path + 1, NULL, lines[i].name);
		else if (strcmp(lines[i].kind, "UNIX_PATH") == 0)
			check_socket(EFFECT_ipc_connect, path + 1, lines[i].name);
		else
			check_socket(EFFECT_ipc_connect, path, lines[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sockets),       cmocka_unit_test(test_abstract),      cmocka_unit_test(test_files),
	    cmocka_unit_test(test_second_object), cmocka_unit_test(test_host_view),     cmocka_unit_test(test_mappings),
	    cmocka_unit_test(test_absent),        cmocka_unit_test(test_every_pattern),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
