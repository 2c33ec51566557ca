/*
 * As whom a task acts on files: read from /proc, compared, taken on and given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/memory.h"
#include "os/procfs.h"
#include "os/rights.h"

enum { NOBODY = 65534 };

static struct rights own;

static int prepare(void **state)
{
	(void)state;
	if (!procfs_open(NULL))
		return -1;
	int self = procfs_task((pid_t)syscall(SYS_gettid));
	bool known = self >= 0 && rights_read(self, &own);
	(void)close(self);
	return known ? 0 : -1;
}

static void reads_what_it_is(void **state)
{
	gid_t groups[RIGHTS_GROUPS_LIMIT];

	(void)state;
	assert_int_equal(own.file_user, geteuid());
	assert_int_equal(own.file_group, getegid());
	int count = getgroups(RIGHTS_GROUPS_LIMIT, groups);
	assert_int_equal(own.group_count, count);
	assert_true(own.user_namespace != 0);
}

static void compares(void **state)
{
	struct rights other = own;

	(void)state;
	assert_int_equal(rights_compare(&own, &other), RIGHTS_SAME);
	other.user_namespace++;
	assert_int_equal(rights_compare(&own, &other), RIGHTS_ELSEWHERE);
	other.label[0] = 'x';
	other.label[1] = 0;
	assert_int_equal(rights_compare(&own, &other), RIGHTS_UNKNOWN);

	struct rights mighty = own, weak = own;
	mighty.permitted = mighty.effective = 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_FOWNER;
	weak.permitted = weak.effective = 0;
	assert_int_equal(rights_compare(&mighty, &weak), RIGHTS_ADOPTABLE);
	/* What we have not, we cannot take on. */
	assert_int_equal(rights_compare(&weak, &mighty), RIGHTS_UNKNOWN);
	weak.effective = 1ull << CAP_SYS_ADMIN;
	assert_int_equal(rights_compare(&mighty, &weak), RIGHTS_UNKNOWN);
	weak = mighty;
	weak.group_count = own.group_count == 0 ? 1 : own.group_count - 1;
	assert_int_equal(rights_compare(&mighty, &weak), RIGHTS_ADOPTABLE);
}

static int open_secret(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? errno : 0;

	if (fd >= 0)
		(void)close(fd);
	return error;
}

static void adopts_and_returns(void **state)
{
	struct rights nobody = own, again;
	char folder[64], path[80];

	(void)state;
	if (geteuid() != 0) {
		puts("skip: only root can take on others' rights");
		skip();
	}
	nobody.file_user = nobody.file_group = NOBODY;
	nobody.group_count = 0;
	nobody.effective = 0;
	snprintf(folder, sizeof(folder), "/tmp/rights-%d", getpid());
	snprintf(path, sizeof(path), "%s/secret", folder);
	assert_int_equal(mkdir(folder, 0755), 0);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);

	assert_true(rights_adopt(&own, &nobody));
	int refused = open_secret(path);
	int removal = unlink(path) == 0 ? 0 : errno;
	/* Who may signal and trace us goes by these. */
	uid_t real = getuid(), effective = geteuid();
	rights_return(&own, &nobody);

	assert_int_equal(refused, EACCES);
	assert_int_equal(removal, EACCES);
	assert_int_equal(real, 0);
	assert_int_equal(effective, 0);
	assert_int_equal(open_secret(path), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	int self = procfs_task((pid_t)syscall(SYS_gettid));
	assert_true(rights_read(self, &again));
	(void)close(self);
	assert_int_equal(rights_compare(&own, &again), RIGHTS_SAME);
}

static void reads_the_umask(void **state)
{
	(void)state;
	mode_t before = umask(0137);
	int self = procfs_task(getpid());
	int read = procfs_umask(self);
	(void)close(self);
	(void)umask(before);
	assert_int_equal(read, 0137);
}

/* What a task may not read itself, nothing may be done with in its name. */
static void reads_memory_as_the_task(void **state)
{
	static char text[64] = "some text";
	char copy[64];

	(void)state;
	pid_t self = getpid();
	const int mem = -1; /* only asked when too many wait */
	assert_int_equal(memory_read_as_task(mem, self, (uint64_t)(uintptr_t)text, copy, sizeof(copy)), 0);
	assert_memory_equal(copy, text, sizeof(copy));
	assert_int_equal(memory_read_string_as_task(mem, self, (uint64_t)(uintptr_t)text, copy, sizeof(copy)), 9);
	assert_int_equal(memory_read_string_as_task(mem, self, (uint64_t)(uintptr_t)text, copy, 9), -ENAMETOOLONG);
	assert_int_equal(memory_read_as_task(mem, self, 8, copy, sizeof(copy)), EFAULT);
	assert_int_equal(memory_read_string_as_task(mem, self, 8, copy, sizeof(copy)), -EFAULT);
	assert_int_equal(memory_read_string_as_task(mem, self, UINT64_MAX, copy, sizeof(copy)), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reads_what_it_is),         cmocka_unit_test(compares),
	    cmocka_unit_test(adopts_and_returns),       cmocka_unit_test(reads_the_umask),
	    cmocka_unit_test(reads_memory_as_the_task),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
