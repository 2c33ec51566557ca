/*
 * A provider that speaks at a pace, and the client that listens: witness_load CHUNK BYTES_PER_SECOND CHUNKS REQUESTS
 *
 * Prints the provider's port; reads the port to ask from its input. Then a stream of CHUNKS events of CHUNK bytes, each with the
 * time at which it was sent, and REQUESTS short exchanges on one connection. Prints nanoseconds: the median and the 99th of a
 * hundred of the time that an event took, and of the time to the first byte.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"

enum { BUFFER = 1 << 16, MARK = 17 /* '@' and 16 digits */ };

static size_t chunk_size, chunk_count, request_count;
static uint64_t rate;

static void send_all(int fd, const char *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t wrote = send(fd, data + done, size - done, MSG_NOSIGNAL);
		if (wrote <= 0)
			exit(1);
		done += (size_t)wrote;
	}
}

static void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

static void no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void rest_until(uint64_t due)
{
	struct timespec when = {(time_t)(due / 1000000000), (long)(due % 1000000000)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static void speak(int fd)
{
	static const char start[] =
	    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
	    "\"text\":\"";
	struct buf event = {.limit = BUFFER};
	uint64_t due = clock_monotonic_ns();

	buf_append_format(&event, "%zx\r\n%s", chunk_size, start);
	size_t mark_at = event.size;
	for (size_t left = chunk_size - (sizeof(start) - 1) - 5; left > 0; left--)
		buf_append_char(&event, 'x');
	buf_append_text(&event, "\"}}\n\n\r\n");
	if (event.failed)
		exit(1);
	send_text(fd, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
	for (size_t i = 0; i < chunk_count; i++, due += chunk_size * 1000000000 / rate) {
		char mark[MARK + 1];
		rest_until(due);
		snprintf(mark, sizeof(mark), "@%016llx", (unsigned long long)clock_monotonic_ns());
		memcpy(event.data + mark_at, mark, MARK);
		send_all(fd, event.data, event.size);
	}
	send_text(fd, "0\r\n\r\n");
	buf_free(&event);
}

/* Each connection: the requests are short, have no body, and come in one piece. */
static void *serve(void *context)
{
	int listener = *(int *)context, fd = accept(listener, NULL, NULL);
	char request[BUFFER];
	size_t size = 0;

	no_delay(fd);
	pthread_t next;
	pthread_create(&next, NULL, serve, context);
	for (;;) {
		ssize_t got = read(fd, request + size, sizeof(request) - size - 1);
		if (got <= 0)
			return NULL;
		size += (size_t)got;
		request[size] = '\0';
		if (!strstr(request, "\r\n\r\n"))
			continue;
		if (strstr(request, "/v1/messages"))
			speak(fd);
		else
			send_text(fd, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
		size = 0;
	}
}

static int ask(unsigned port)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		exit(1);
	no_delay(fd);
	return fd;
}

static int compare(const void *left, const void *right)
{
	uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
	return (one > other) - (one < other);
}

static void show(uint64_t *times, size_t count)
{
	qsort(times, count, sizeof(*times), compare);
	printf("%llu %llu ", (unsigned long long)times[count / 2], (unsigned long long)times[count * 99 / 100]);
}

/* Every mark that came, with the time at which it came. */
static void listen_to(int fd, uint64_t *times)
{
	static char data[BUFFER * 2];
	size_t size = 0, count = 0;

	send_text(fd, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
	while (count < chunk_count) {
		ssize_t got = read(fd, data + size, BUFFER);
		uint64_t now = clock_monotonic_ns();
		if (got <= 0)
			exit(1);
		size += (size_t)got;
		char *at = data, *end = data + size;
		for (char *mark; (mark = memchr(at, '@', (size_t)(end - at))) && end - mark >= MARK; at = mark + MARK) {
			char digits[MARK];
			memcpy(digits, mark + 1, MARK - 1);
			digits[MARK - 1] = '\0';
			times[count++] = now - strtoull(digits, NULL, 16);
		}
		/* A mark may have been cut. */
		char *mark = memchr(at, '@', (size_t)(end - at));
		size = mark ? (size_t)(end - mark) : 0;
		if (mark)
			memmove(data, mark, size);
	}
	close(fd);
	show(times, count);
}

static void ask_often(unsigned port, uint64_t *times)
{
	int fd = ask(port);
	char answer[BUFFER];

	for (size_t i = 0; i < request_count; i++) {
		uint64_t begun = clock_monotonic_ns();
		send_text(fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
		ssize_t size = read(fd, answer, sizeof(answer));
		times[i] = clock_monotonic_ns() - begun;
		while (size < 4 || memcmp(answer + size - 2, "ok", 2) != 0) {
			ssize_t got = read(fd, answer + size, sizeof(answer) - (size_t)size);
			if (got <= 0)
				exit(1);
			size += got;
		}
	}
	show(times, request_count);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	unsigned port;
	pthread_t thread;

	if (argc != 5 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		return 2;
	chunk_size = strtoull(argv[1], NULL, 10);
	rate = strtoull(argv[2], NULL, 10);
	chunk_count = strtoull(argv[3], NULL, 10);
	request_count = strtoull(argv[4], NULL, 10);
	uint64_t *times = calloc(chunk_count + request_count, sizeof(*times));
	if (!times || chunk_size < 128 || chunk_size > BUFFER / 2 || rate == 0)
		exit(2);
	pthread_create(&thread, NULL, serve, &listener);
	printf("%u\n", ntohs(address.sin_port));
	fflush(stdout);
	char line[32];
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
	port = (unsigned)strtoul(line, NULL, 10);
	if (port == 0)
		port = ntohs(address.sin_port);
	listen_to(ask(port), times);
	ask_often(port, times);
	printf("\n");
	fflush(stdout);
	_exit(0);
}
