/* What the kernel starts when it wants a module, when a device comes and when a cgroup runs empty. */
#include "helper_paths.h"

#define MODPROBE "/proc/sys/kernel/modprobe"
#define UEVENT "/sys/kernel/uevent_helper"
#define AGENT "/release_agent"

/* The release agent of a hierarchy that is there, or of none. */
static bool find_agent(char *path, size_t size)
{
	static const char *const folders[] = {"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/pids",
					      "/sys/fs/cgroup/freezer"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(path, size, "%s" AGENT, folders[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

int main(void)
{
	char agent[PATH_MAX];
	bool modprobe = access(MODPROBE, F_OK) == 0, uevent = access(UEVENT, F_OK) == 0;
	bool released = find_agent(agent, sizeof(agent));

	if (!modprobe && !uevent && !released)
		skip("the kernel starts nothing by any of these files");
	if (modprobe)
		write_back("modprobe", MODPROBE);
	if (uevent)
		write_back("uevent", UEVENT);
	if (released)
		write_back("agent", agent);
	did("look modprobes=%d uevents=%d agents=%d agent_path=%s", modprobe, uevent, released, released ? agent : "-");
	return 0;
}
