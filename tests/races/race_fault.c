/*
 * race_fault userfaultfd ROUNDS AT_ONCE DELAY_MS: calls whose path lies on a page that is not there. A thread fills it
 * DELAY_MS after somebody wanted it, and decides only then what the path is.
 */
#include "race_stall.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>

static int faults;
static char *pages, *filler;
static size_t page_size;
static long first_number;
static struct stall_queue queue;
static bool wanted[STALL_MOST];

static size_t index_of(uint64_t address)
{
	return (size_t)(address - (uint64_t)(uintptr_t)pages) / page_size;
}

static void fill(uint64_t address, unsigned random)
{
	struct uffdio_copy copy = {.dst = address, .src = (uint64_t)(uintptr_t)filler, .len = page_size};

	snprintf(filler, page_size, "%c/n%ld", random & 1 ? 'a' : 'b', first_number + (long)index_of(address));
	/* A look at a page of the last batch may be heard of only now. */
	if (ioctl(faults, UFFDIO_COPY, &copy) != 0 && errno != EEXIST && errno != ENOENT)
		race_die("UFFDIO_COPY");
}

/* However often it is asked for: whoever only looks, and does not wait, may look again. */
static void want(uint64_t address)
{
	size_t index = index_of(address);

	if (index >= STALL_MOST || wanted[index])
		return;
	wanted[index] = true;
	stall_later(&queue, address);
}

static void *fill_later(void *unused)
{
	uint64_t state = 1, address;
	struct uffd_msg message;
	struct pollfd ready = {.fd = faults, .events = POLLIN};

	(void)unused;
	for (;;) {
		if (poll(&ready, 1, stall_timeout(&queue)) > 0 &&
		    read(faults, &message, sizeof(message)) == sizeof(message) && message.event == UFFD_EVENT_PAGEFAULT)
			want(message.arg.pagefault.address & ~(uint64_t)(page_size - 1));
		while (stall_next(&queue, &address))
			fill(address, race_random(&state));
	}
	return NULL;
}

static void open_faults(void)
{
	struct uffdio_api api = {.api = UFFD_API};

	/* Faults of the kernel too: those that a call has, which is why not everybody may. */
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (faults < 0)
		race_skip("userfaultfd");
	if (ioctl(faults, UFFDIO_API, &api) != 0)
		race_die("UFFDIO_API");
}

static void map_pages(int count)
{
	size_t size = (size_t)count * page_size;

	pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = {.range = {.start = (uint64_t)(uintptr_t)pages, .len = size},
					.mode = UFFDIO_REGISTER_MODE_MISSING};
	if (pages == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &range) != 0)
		race_die("UFFDIO_REGISTER");
	for (int i = 0; i < count; i++)
		stall.calls[i].path = pages + (size_t)i * page_size;
}

int main(int argc, char **argv)
{
	pthread_t filling;

	open_faults();
	stall_prepare(argc, argv);
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	filler = aligned_alloc(page_size, page_size);
	if (!filler || pthread_create(&filling, NULL, fill_later, NULL) != 0)
		race_die("pthread_create");
	for (long done = 0; done < stall.rounds; done += stall.width) {
		int count = stall.rounds - done < stall.width ? (int)(stall.rounds - done) : stall.width;
		first_number = done;
		memset(wanted, 0, sizeof(wanted));
		map_pages(count);
		stall_batch(done, count);
		munmap(pages, (size_t)count * page_size);
	}
	stall_end();
	return 0;
}
