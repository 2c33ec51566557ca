/*
 * The clock is set, in vain: where we are root only for ourselves. Then a namespace is made whose monotonic clock is a
 * day ahead, and the effect in there.
 */
#include "ev2.h"

#include <sys/time.h>

enum { DAY = 86400, USER_SPACE = 0x10000000, TIME_SPACE = 0x80 };

static void own_root(void)
{
	char map[64];
	unsigned user = geteuid(), group = getegid();

	if (syscall(SYS_unshare, USER_SPACE) != 0)
		skip("user namespaces");
	put_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", user);
	put_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", group);
	put_text("/proc/self/gid_map", map);
}

static long seconds(void)
{
	struct timespec now;

	MUST(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return now.tv_sec;
}

int main(void)
{
	struct timespec now;
	struct timeval short_now;

	own_root();
	MUST(clock_gettime(CLOCK_REALTIME, &now) == 0 && gettimeofday(&short_now, NULL) == 0);
	MUST(syscall(SYS_clock_settime, CLOCK_REALTIME, &now) < 0 && errno == EPERM);
	did("fail clock_settime");
	MUST(syscall(SYS_settimeofday, &short_now, NULL) < 0 && errno == EPERM);
	did("fail settimeofday");
	if (syscall(SYS_unshare, TIME_SPACE) != 0)
		skip("time namespaces");
	put_text("/proc/self/timens_offsets", "monotonic 86400 0\n");
	long before = seconds();
	pid_t child = fork();
	MUST(child >= 0);
	if (child == 0) {
		MUST(seconds() - before >= DAY);
		make_file("f", "text\n");
		did("create f child~%d", getpid());
		_exit(0);
	}
	return join(child);
}
