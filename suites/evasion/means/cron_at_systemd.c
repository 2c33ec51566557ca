/*
 * Work is left with those who do it later: a table of cron, a job of at, a unit, and the service manager's own socket.
 * In a mount namespace of our own, where cron's folders and /run are others; the socket belongs to the helper outside.
 */
#include "ev2.h"

static void empty(const char *folder)
{
	MUST(mount("evasion", folder, "tmpfs", 0, "mode=755") == 0);
}

int main(void)
{
	char manager[PATH_MAX];

	snprintf(manager, sizeof(manager), "%s/systemd", ev_env("EV_OUTSIDE_DIR"));
	private_mounts();
	if (access("/etc/cron.d", F_OK) != 0 || access("/var/spool", F_OK) != 0 || access("/run", F_OK) != 0)
		skip("/etc/cron.d, /var/spool or /run");
	empty("/etc/cron.d");
	empty("/var/spool");
	MUST(mkdir("/var/spool/cron", 0755) == 0 && mkdir("/var/spool/cron/atjobs", 0755) == 0);
	make_file("/etc/cron.d/x", "* * * * * root touch /tmp/c\n");
	did("create /etc/cron.d/x");
	make_file("/var/spool/cron/atjobs/.a0001", "touch f\n");
	MUST(rename("/var/spool/cron/atjobs/.a0001", "/var/spool/cron/atjobs/a0001") == 0);
	did("rename /var/spool/cron/atjobs/a0001");
	/* Of a folder below the helper's, /run is made, and so the socket has the name that it has on a machine. */
	empty("/run");
	MUST(mkdir("/run/systemd", 0755) == 0 && mount(manager, "/run/systemd", NULL, MS_BIND, NULL) == 0);
	talk("/run/systemd/private", "AUTH EXTERNAL\r\n");
	did("connect /run/systemd/private");
	return 0;
}
