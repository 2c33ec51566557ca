/* A second thread rewrites the address while connect(2) runs; getpeername says who it was. */
#include "ev.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ROUNDS = 400 };

static struct sockaddr_in address;
static atomic_bool begun, over;
static int ports[2];

static void *flip(void *unused)
{
	(void)unused;
	atomic_store(&begun, true);
	for (unsigned i = 0; !atomic_load(&over); i++) {
		__atomic_store_n(&address.sin_port, htons((uint16_t)ports[i & 1]), __ATOMIC_SEQ_CST);
		for (volatile int j = 0; j < 60; j++)
			;
	}
	return NULL;
}

int main(void)
{
	struct linger hard = {.l_onoff = 1};
	pthread_t thread;
	int listeners[2], counts[2] = {0};

	for (int i = 0; i < 2; i++)
		listeners[i] = serve(SOCK_STREAM, &ports[i]);
	address = loopback(ports[0]);
	MUST(pthread_create(&thread, NULL, flip, NULL) == 0);
	while (!atomic_load(&begun))
		sched_yield();
	for (int i = 0; undecided(i, ROUNDS, counts[0]); i++) {
		struct sockaddr_in peer = {0};
		socklen_t size = sizeof(peer);
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		MUST(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
		MUST(getpeername(fd, (struct sockaddr *)&peer, &size) == 0);
		int which = ntohs(peer.sin_port) == ports[1];
		counts[which]++;
		int other = accept(listeners[which], NULL, NULL);
		MUST(other >= 0);
		/* No port is to stay in TIME_WAIT. */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
		close(fd);
		close(other);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	did("connect tcp first_port~%d firsts~%d second_port~%d seconds~%d", ports[0], counts[0], ports[1], counts[1]);
	return 0;
}
