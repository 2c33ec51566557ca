/*
 * Who watches files sees each change once, in the same order, and where the kernel tells, by whom.
 */
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "equal.h"

static const struct {
	uint32_t bit;
	const char *name;
} event_names[] = {{IN_ACCESS, "access"},
		   {IN_MODIFY, "modify"},
		   {IN_ATTRIB, "attrib"},
		   {IN_CLOSE_WRITE, "close-write"},
		   {IN_CLOSE_NOWRITE, "close-nowrite"},
		   {IN_OPEN, "open"},
		   {IN_MOVED_FROM, "moved-from"},
		   {IN_MOVED_TO, "moved-to"},
		   {IN_CREATE, "create"},
		   {IN_DELETE, "delete"},
		   {IN_DELETE_SELF, "delete-self"},
		   {IN_MOVE_SELF, "move-self"},
		   {IN_ISDIR, "folder"},
		   {IN_IGNORED, "ignored"},
		   {IN_UNMOUNT, "unmount"},
		   {IN_Q_OVERFLOW, "overflow"}};

static const char *names_of_events(uint32_t mask)
{
	static char text[256];

	text[0] = 0;
	for (size_t i = 0; i < sizeof(event_names) / sizeof(*event_names); i++) {
		if (mask & event_names[i].bit) {
			strcat(text, text[0] ? " " : "");
			strcat(text, event_names[i].name);
		}
	}
	return text;
}

static int watcher, folder_watch, file_watch, sub_watch;

/* Print what came since the last time. A cookie says only whether it is the one before. */
static void events(const char *after)
{
	static char buffer[65536] __attribute__((aligned(8)));
	uint32_t last_cookie = 0;
	ssize_t size;

	say("%s:", after);
	while ((size = read(watcher, buffer, sizeof(buffer))) > 0) {
		for (char *at = buffer; at < buffer + size;) {
			const struct inotify_event *event = (const struct inotify_event *)at;
			const char *where = event->wd == folder_watch ? "folder"
					    : event->wd == file_watch ? "file"
					    : event->wd == sub_watch  ? "sub"
								      : "other";
			/* a file without a name is called by its number */
			const char *named = event->len == 0 ? "" : event->name[0] == '#' ? "#" : event->name;
			say("  %s %s \"%s\"%s", where, names_of_events(event->mask), named,
			    event->cookie == 0             ? ""
			    : event->cookie == last_cookie ? " same cookie"
							   : " new cookie");
			last_cookie = event->cookie;
			at += sizeof(*event) + event->len;
		}
	}
}

static void watch(void)
{
	make_folder("w", 0755);
	make_folder("w/sub", 0755);
	make_file("w/file", 0644, "hello");
	watcher = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	folder_watch = inotify_add_watch(watcher, "w", IN_ALL_EVENTS);
	file_watch = inotify_add_watch(watcher, "w/file", IN_ALL_EVENTS);
	sub_watch = inotify_add_watch(watcher, "w/sub", IN_ALL_EVENTS);
	NEED(watcher >= 0 && folder_watch >= 0 && file_watch >= 0 && sub_watch >= 0);
}

#define SEEN(call)                         \
	do {                               \
		step((call), "%s", #call); \
		events("  events");        \
	} while (0)

static void watched_entries(void)
{
	watch();
	SEEN(mkdir("w/a", 0755));
	SEEN(mkdir("w/a", 0755));
	SEEN(symlink("x", "w/l"));
	SEEN(mknod("w/p", S_IFIFO | 0600, 0));
	SEEN(mknod("w/r", S_IFREG | 0600, 0));
	SEEN(link("w/file", "w/h"));
	SEEN(link("w/file", "w/sub/h"));
	SEEN(rename("w/h", "w/i"));
	SEEN(rename("w/i", "w/sub/i"));
	SEEN(rename("w/sub/i", "out"));
	SEEN(rename("out", "w/in"));
	SEEN(rename("w/a", "w/sub/a"));
	SEEN(rename("w/r", "w/in"));
	SEEN(rename("absent", "w/in"));
	SEEN(syscall(SYS_renameat2, AT_FDCWD, "w/in", AT_FDCWD, "w/sub/a", 2));
	SEEN(syscall(SYS_renameat2, AT_FDCWD, "w/l", AT_FDCWD, "w/p", 1));
	SEEN(unlink("w/l"));
	SEEN(unlink("w/sub/h"));
	SEEN(rmdir("w/absent"));
	SEEN(unlink("w/sub/a"));
	SEEN(rmdir("w/sub"));
	SEEN(unlink("w/file"));
}

static void watched_attributes(void)
{
	static const struct timespec times[2] = {{1, 0}, {2, 0}};

	watch();
	SEEN(chmod("w/file", 0600));
	SEEN(chmod("w/file", 0600));
	SEEN(chmod("w/sub", 0700));
	SEEN(chmod("w", 0700));
	SEEN(chown("w/file", getuid(), getgid()));
	SEEN(chown("w/file", (uid_t)-1, (gid_t)-1));
	SEEN(utimensat(AT_FDCWD, "w/file", times, 0));
	SEEN(utimensat(AT_FDCWD, "w/sub", NULL, 0));
	SEEN(truncate("w/file", 2));
	SEEN(truncate("w/file", 2));
	SEEN(truncate("w/absent", 2));
	SEEN(setxattr("w/file", "user.a", "v", 1, 0));
	SEEN(removexattr("w/file", "user.a"));
	SEEN(removexattr("w/file", "user.a"));
	SEEN(access("w/file", W_OK));
}

static void open_seen(const char *label, const char *name, int flags)
{
	int fd = (int)step(open(name, flags, 0644), "%s", label);

	events("  opened");
	if (fd < 0)
		return;
	if ((flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY) {
		NEED(write(fd, "x", 1) == 1);
		events("  written");
	}
	NEED(close(fd) == 0);
	events("  closed");
}

static void watched_opens(void)
{
	watch();
	NEED(symlink("made", "w/dangling") == 0 && symlink("file", "w/link") == 0);
	events("links");
	open_seen("create", "w/new", O_WRONLY | O_CREAT);
	open_seen("exclusive", "w/exclusive", O_WRONLY | O_CREAT | O_EXCL);
	open_seen("exclusive again", "w/exclusive", O_WRONLY | O_CREAT | O_EXCL);
	open_seen("write", "w/file", O_WRONLY);
	open_seen("truncate", "w/file", O_WRONLY | O_TRUNC);
	open_seen("truncate nothing", "w/file", O_RDONLY | O_TRUNC);
	open_seen("truncate and create", "w/file", O_RDWR | O_CREAT | O_TRUNC);
	open_seen("append", "w/file", O_WRONLY | O_APPEND);
	open_seen("read", "w/file", O_RDONLY);
	open_seen("mode three", "w/file", O_ACCMODE & ~O_WRONLY);
	open_seen("path", "w/file", O_PATH);
	open_seen("absent", "w/absent", O_WRONLY);
	open_seen("folder for writing", "w/sub", O_WRONLY);
	open_seen("folder", "w/sub", O_RDONLY | O_DIRECTORY);
	open_seen("through a link", "w/link", O_WRONLY | O_CREAT);
	open_seen("through a dangling link", "w/dangling", O_WRONLY | O_CREAT);
	open_seen("without a name", "w", O_TMPFILE | O_RDWR);
	open_seen("not allowed", "w/new", O_WRONLY | O_DIRECTORY);
	SEEN(close(creat("w/creat", 0600)));
}

static void watched_sockets(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "w/socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	watch();
	SEEN(bind(fd, (struct sockaddr *)&address, sizeof(address)));
	SEEN(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof(address)));
	SEEN(listen(fd, 1));
	SEEN(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof(address)));
	SEEN(unlink("w/socket"));
}

static volatile sig_atomic_t notified;

static void count_notice(int number)
{
	(void)number;
	notified++;
}

static void watched_by_signal(void)
{
	struct sigaction action = {.sa_handler = count_notice, .sa_flags = SA_RESTART};

	make_folder("w", 0755);
	int fd = open("w", O_RDONLY | O_DIRECTORY);
	NEED(sigaction(SIGRTMIN, &action, NULL) == 0 && fcntl(fd, F_SETSIG, SIGRTMIN) == 0);
	unsigned long kinds = DN_CREATE | DN_MODIFY | DN_DELETE | DN_RENAME | DN_ATTRIB | DN_MULTISHOT;
	if (step(fcntl(fd, F_NOTIFY, kinds), "watch") != 0)
		return;
	step(mkdir("w/a", 0755), "mkdir");
	say("notified %d", notified);
	step(rename("w/a", "w/b"), "rename");
	say("notified %d", notified);
	step(chmod("w/b", 0700), "chmod");
	say("notified %d", notified);
	STEP_CLOSE(open("w/f", O_WRONLY | O_CREAT, 0644), "create");
	say("notified %d", notified);
	step(truncate("w/f", 10), "truncate");
	say("notified %d", notified);
	step(unlink("w/f"), "unlink");
	say("notified %d", notified);
	step(rmdir("w/b"), "rmdir");
	say("notified %d", notified);
}

/* Print the events of a group, each with whether it was we who did it. */
static void notices(int group, const char *after)
{
	static char buffer[32768] __attribute__((aligned(8)));
	ssize_t size;

	say("%s:", after);
	while ((size = read(group, buffer, sizeof(buffer))) > 0) {
		const struct fanotify_event_metadata *event = (const struct fanotify_event_metadata *)buffer;
		for (; FAN_EVENT_OK(event, size); event = FAN_EVENT_NEXT(event, size)) {
			say("  %llx by us: %d", (unsigned long long)event->mask, event->pid == getpid());
			if (event->fd >= 0)
				close(event->fd);
		}
	}
}

static void watched_with_actor(void)
{
	uint64_t kinds = FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO | FAN_ATTRIB | FAN_MODIFY | FAN_OPEN |
			 FAN_CLOSE_WRITE | FAN_ONDIR | FAN_EVENT_ON_CHILD;
	int group = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC | FAN_REPORT_FID | FAN_REPORT_DIR_FID |
				      FAN_REPORT_NAME,
				  O_RDONLY);

	make_folder("w", 0755);
	if (group < 0 || fanotify_mark(group, FAN_MARK_ADD, kinds, AT_FDCWD, "w") != 0) {
		skip("no fanotify: %s", name_of_error(errno));
		return;
	}
	step(mkdir("w/a", 0755), "mkdir");
	notices(group, "mkdir");
	step(rename("w/a", "w/b"), "rename");
	notices(group, "rename");
	step(chmod("w/b", 0700), "chmod");
	notices(group, "chmod");
	int fd = (int)step(open("w/f", O_WRONLY | O_CREAT | O_TRUNC, 0644), "create");
	notices(group, "create");
	NEED(write(fd, "text", 4) == 4 && close(fd) == 0);
	notices(group, "write and close");
	STEP_CLOSE(open("w/f", O_WRONLY | O_TRUNC), "truncate by open");
	notices(group, "truncate by open");
	step(truncate("w/f", 10), "truncate");
	notices(group, "truncate");
	step(link("w/f", "w/g"), "link");
	notices(group, "link");
	step(unlink("w/f"), "unlink");
	notices(group, "unlink");
	step(rmdir("w/b"), "rmdir");
	notices(group, "rmdir");
}

static void do_as_child(void)
{
	step(mkdir("w/by-child", 0755), "child's mkdir");
	STEP_CLOSE(open("w/file", O_WRONLY | O_CREAT, 0644), "child's create");
}

/* Without the names, on a mount of its own: the events carry a descriptor of what was opened. */
static void watched_mount(void)
{
	int group = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY | O_LARGEFILE);

	make_folder("w", 0755);
	if (group < 0 ||
	    fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN | FAN_MODIFY | FAN_CLOSE_WRITE | FAN_EVENT_ON_CHILD, AT_FDCWD,
			  "w") != 0) {
		skip("no fanotify: %s", name_of_error(errno));
		return;
	}
	in_child("child", do_as_child);
	notices(group, "child's");
	do_as_child();
	notices(group, "our own");
}

static const struct equal_case cases[] = {
    {"watched_entries", false, watched_entries},     {"watched_attributes", false, watched_attributes},
    {"watched_opens", false, watched_opens},         {"watched_sockets", false, watched_sockets},
    {"watched_by_signal", false, watched_by_signal}, {"watched_with_actor", true, watched_with_actor},
    {"watched_mount", true, watched_mount},          {NULL},
};

int main(int argc, char **argv)
{
	return equal_main(cases, argc, argv);
}
