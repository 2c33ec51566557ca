/*
 * Calls whose way leads nowhere: the record names where it ended, links resolved, and behind that what was left of it.
 */
#include "row_file.h"

/* `given` fails with `wanted`, and is recorded as `name` of the working directory. */
static void lost(const char *given, const char *name, int wanted)
{
	long result = syscall(SYS_mkdirat, AT_FDCWD, given, 0755);

	if (result != -1 || errno != wanted)
		abort();
	row_given("mkdirat", "dir.create", result, given, name);
	row_done();
}

static void test_ways(void)
{
	row_folder("real");
	row_folder("real/deep");
	row_touch("real/file");
	row_link("real", "link");
	row_link("link/gone", "dangling");

	lost("link/absent/f", "real/absent/f", ENOENT);
	lost("link/absent/f///", "real/absent/f", ENOENT);
	lost("link/deep/../absent/f", "real/absent/f", ENOENT);
	/* what is not there has no parent either: the text may not become real/f */
	lost("link/absent/../f", "real/absent/../f", ENOENT);
	lost("link/./absent/./f/.", "real/absent/./f/.", ENOENT);
	lost("link//absent//f", "real/absent//f", ENOENT);
	lost("dangling/f/", "real/gone/f", ENOENT);

	lost("link/file/f", "real/file/f", ENOTDIR);
	lost("link/file/..", "real/file/..", ENOTDIR);
	lost("link/file/.", "real/file/.", ENOTDIR);
}

static void test_loops(void)
{
	row_folder("real");
	row_link("real", "link");
	row_link("self", "real/self");
	row_link("there", "real/here");
	row_link("../link/here", "real/there");

	lost("link/self/f", "real/self/f", ELOOP);
	lost("link/here/../f", "real/here/../f", ELOOP);
}

static void test_lengths(void)
{
	char given[PATH_MAX + 8], name[PATH_MAX];
	char component[NAME_MAX + 2];

	row_folder("real");
	row_link("real", "link");
	memset(component, 'n', sizeof(component) - 1);
	component[sizeof(component) - 1] = 0;
	snprintf(given, sizeof(given), "link/%s", component);
	snprintf(name, sizeof(name), "real/%s", component);
	lost(given, name, ENAMETOOLONG);
	snprintf(given, sizeof(given), "link/%s/../f", component);
	snprintf(name, sizeof(name), "real/%s/../f", component);
	lost(given, name, ENAMETOOLONG);

	/* longer than the kernel takes */
	memset(given, '/', sizeof(given));
	memcpy(given, "link/absent", 11);
	given[sizeof(given) - 1] = 0;
	long result = syscall(SYS_mkdirat, AT_FDCWD, given, 0755);
	row_expect("mkdirat", "dir.create", result);
	row_done();
}

static void test_places(void)
{
	char whole[PATH_MAX];
	int pair[2];

	row_folder("real");
	row_link("real", "link");
	lost(row_path("link/absent/f"), "real/absent/f", ENOENT);

	int folder = open("link", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long result = syscall(SYS_mkdirat, folder, "absent/f", 0755);
	row_given("mkdirat", "dir.create", result, "absent/f", "real/absent/f");
	row_done();
	close(folder);

	result = syscall(SYS_mkdirat, AT_FDCWD, "/proc/self/absent/f", 0755);
	row_expect("mkdirat", "dir.create", result);
	row_text("as_given", "/proc/self/absent/f");
	snprintf(whole, sizeof(whole), "/proc/%d/absent/f", (int)getpid());
	row_text("path", whole);
	row_done();

	/* the link of a pipe leads to what has no path */
	if (pipe2(pair, O_CLOEXEC) != 0)
		abort();
	snprintf(whole, sizeof(whole), "/proc/self/fd/%d/f", pair[0]);
	result = syscall(SYS_mkdirat, AT_FDCWD, whole, 0755);
	row_expect("mkdirat", "dir.create", result);
	row_text("path", whole);
	row_done();
	close(pair[0]);
	close(pair[1]);
}

/* Where others may not search, their way ends; root's own look goes further, and says so. */
static void test_closed(void)
{
	if (geteuid() == 0) {
		row_skip("mkdirat", "root searches every folder");
		return;
	}
	row_folder("shut");
	row_folder("shut/in");
	row_link("shut/in", "into");
	if (chmod("shut", 0) != 0)
		abort();
	lost("into/f", "shut/in/f", EACCES);
	if (chmod("shut", 0755) != 0)
		abort();
}

static const struct row_case cases[] = {
    {"ways", test_ways},     {"loops", test_loops},   {"lengths", test_lengths},
    {"places", test_places}, {"closed", test_closed}, {NULL, NULL},
};

int main(int argc, char **argv)
{
	return row_main(cases, argc, argv);
}
