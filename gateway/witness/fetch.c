#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "passage.h"

enum { CONNECT_SECONDS = 30, BUFFER_SIZE = 64 << 10, IDLE_CONNECTIONS = 64 };

/* --- what libcurl gives ----------------------------------------------------------------------------------------- */

/* The value of a header line, or NULL when it is another's. */
static const char *value_of(const char *line, const char *name)
{
	size_t size = strlen(name);

	if (strncasecmp(line, name, size) != 0 || line[size] != ':')
		return NULL;
	return line + size + 1 + strspn(line + size + 1, " \t");
}

static const char *find(const struct passage *passage, const char *name)
{
	for (size_t at = 0; at < passage->head.size; at += strlen(passage->head.data + at) + 1) {
		const char *value = value_of(passage->head.data + at, name);
		if (value)
			return value;
	}
	return NULL;
}

static void head_ended(struct passage *passage)
{
	const char *length = find(passage, "content-length");

	if (passage->status < 200) { /* on the way to an answer */
		buf_reset(&passage->head);
		return;
	}
	passage->length = length && !find(passage, "transfer-encoding") ? strtoll(length, NULL, 10) : -1;
	passage->body_less = passage->status == 204 || passage->status == 304 || strcmp(passage->method, "HEAD") == 0;
	passage->head_done = true;
	passage_answered(passage, bytes_of(find(passage, "content-encoding")));
	server_wake(passage);
}

/* Of libcurl's types. NOLINTBEGIN(readability-non-const-parameter) */
static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	struct passage *passage = context;
	struct bytes line = {data, size * count};

	while (line.size > 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == '\r'))
		line.size--;
	if (passage->head_done) /* trailers */
		return size * count;
	if (bytes_start_with(line, BYTES("HTTP/"))) {
		const char *space = memchr(line.data, ' ', line.size);
		char digits[4] = "";
		if (space && space + 4 <= line.data + line.size)
			memcpy(digits, space + 1, 3);
		passage->status = (unsigned)strtoul(digits, NULL, 10);
		buf_reset(&passage->head);
	} else if (line.size == 0) {
		head_ended(passage);
	} else if (!memchr(line.data, '\0', line.size)) {
		buf_append_bytes(&passage->head, line);
		buf_append_char(&passage->head, '\0');
	}
	return passage->head.failed ? 0 : size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
	struct passage *passage = context;
	struct bytes piece = {data, size * count};

	if (pipe_size(&passage->down) >= PASSAGE_HIGH) { /* it comes again */
		passage->down_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	passage_saw(passage, READING_RESPONSE, piece);
	/* What the agent has taken makes room. */
	if (passage->down.start > 0 && passage->down.start >= pipe_size(&passage->down)) {
		size_t left = pipe_size(&passage->down);
		memmove(passage->down.bytes.data, passage->down.bytes.data + passage->down.start, left);
		passage->down.bytes.size = left;
		passage->down.start = 0;
	}
	buf_append_bytes(&passage->down.bytes, piece);
	server_wake(passage);
	return passage->down.bytes.failed ? 0 : piece.size;
}

/* NOLINTEND(readability-non-const-parameter) */

static size_t on_upload(char *to, size_t size, size_t count, void *context)
{
	struct passage *passage = context;
	size_t taken = pipe_take(&passage->up, to, size * count);

	if (taken > 0) {
		if (!passage->up.ended)
			server_wake(passage);
		return taken;
	}
	if (passage->up.ended)
		return 0;
	passage->up_paused = true;
	return CURL_READFUNC_PAUSE;
}

/* --- beginning -------------------------------------------------------------------------------------------------- */

/* The answer of a provider that cannot answer: its kind of error, which its clients know to try again after. */
static void fail(struct passage *passage, const char *message)
{
	enum provider provider = passage->route ? passage->route->provider : PROVIDER_anthropic;

	passage->failed = true;
	if (passage->head_done) {
		passage->broken = true;
	} else {
		passage->status = 502;
		buf_reset(&passage->head);
		buf_append(&passage->head, "content-type: application/json", sizeof("content-type: application/json"));
		dialect_error(provider, passage->status, message, &passage->down.bytes);
		passage->length = (int64_t)pipe_size(&passage->down);
		passage->head_done = true;
		passage->body_less = false;
	}
	passage->down.ended = true;
	server_wake(passage);
}

static bool set_method(struct passage *passage, CURL *easy)
{
	bool good = true;

	if (strcmp(passage->method, "HEAD") == 0)
		return curl_easy_setopt(easy, CURLOPT_NOBODY, 1L) == CURLE_OK;
	if (passage->has_body) {
		good = curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)passage->length) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_upload) == CURLE_OK &&
		       curl_easy_setopt(easy, CURLOPT_READDATA, passage) == CURLE_OK;
	}
	return good && curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, passage->method) == CURLE_OK;
}

static bool set_target(struct passage *passage, CURL *easy)
{
	const struct route *route = passage->route;
	const char *rest = passage->target + strlen(route->prefix);
	char *target = NULL;
	bool root = route->path[0] == '\0' && rest[0] != '/';

	if (asprintf(&target, "%s%s%s", route->path, root ? "/" : "", rest) < 0)
		return false;
	/* As it came: neither normalised nor escaped again. */
	bool good = curl_easy_setopt(easy, CURLOPT_URL, route->url) == CURLE_OK &&
		    curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, target) == CURLE_OK;
	explicit_bzero(target, strlen(target)); /* a query may hold a key */
	free(target);
	return good;
}

static bool set_connection(struct passage *passage, CURL *easy)
{
	const struct witness *witness = passage->witness;

	if (witness->ca_file && curl_easy_setopt(easy, CURLOPT_CAINFO, witness->ca_file) != CURLE_OK)
		return false;
	if (passage->route->loopback && curl_easy_setopt(easy, CURLOPT_PROXY, "") != CURLE_OK)
		return false;
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK;
}

static bool set_callbacks(struct passage *passage, CURL *easy)
{
	return curl_easy_setopt(easy, CURLOPT_PRIVATE, passage) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HEADERDATA, passage) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_WRITEDATA, passage) == CURLE_OK &&
	       curl_easy_setopt(easy, CURLOPT_HTTPHEADER, passage->headers) == CURLE_OK;
}

void fetch_begin(struct passage *passage)
{
	if (!passage->route) {
		fail(passage, "assure: no upstream is known for this path");
		return;
	}
	CURL *easy = passage->easy = curl_easy_init();
	if (!easy || !set_connection(passage, easy) || !set_callbacks(passage, easy) || !set_method(passage, easy) ||
	    !set_target(passage, easy) || curl_multi_add_handle(passage->witness->multi, easy) != CURLM_OK) {
		fail(passage, "assure: the request cannot be passed on");
		return;
	}
	passage->fetching = true;
	passage->length = -1;
}

/* --- going on --------------------------------------------------------------------------------------------------- */

void fetch_abort(struct passage *passage)
{
	if (passage->fetching)
		curl_multi_remove_handle(passage->witness->multi, passage->easy);
	passage->fetching = false;
	if (passage->easy)
		curl_easy_cleanup(passage->easy);
	passage->easy = NULL;
	for (struct curl_slist *line = passage->headers; line; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	curl_slist_free_all(passage->headers);
	passage->headers = NULL;
}

void fetch_look(struct passage *passage)
{
	bool changed = false;

	if (passage->gone) {
		fetch_abort(passage);
		passage->down.ended = true;
		server_wake(passage);
		return;
	}
	if (passage->up_paused && (pipe_size(&passage->up) > 0 || passage->up.ended)) {
		passage->up_paused = false;
		changed = true;
	}
	if (passage->down_paused && pipe_size(&passage->down) <= PASSAGE_LOW) {
		passage->down_paused = false;
		changed = true;
	}
	/* It may call back at once, with what it has kept. */
	if (changed && passage->fetching)
		curl_easy_pause(passage->easy, (passage->up_paused ? CURLPAUSE_SEND : 0) |
						   (passage->down_paused ? CURLPAUSE_RECV : 0));
}

static const char *reason_of(CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return "assure: the model's provider has no address here";
	case CURLE_COULDNT_CONNECT:
		return "assure: the model's provider cannot be connected to";
	case CURLE_OPERATION_TIMEDOUT:
		return "assure: the model's provider does not answer";
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
		return "assure: the model's provider has no certificate that is trusted";
	default:
		return "assure: the connection to the model's provider broke";
	}
}

void fetch_finish(struct witness *witness)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(witness->multi, &left))) {
		struct passage *passage = NULL;
		CURLcode code = message->data.result;
		if (message->msg != CURLMSG_DONE ||
		    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&passage) != CURLE_OK)
			continue;
		fetch_abort(passage);
		if (code != CURLE_OK || !passage->head_done) {
			fail(passage, reason_of(code));
			continue;
		}
		passage->down.ended = true;
		server_wake(passage);
	}
}

/* --- waiting ---------------------------------------------------------------------------------------------------- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *state)
{
	struct witness *witness = context;
	struct epoll_event event = {.events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
					      (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0),
				    .data.u64 = event_of(EVENT_FETCH, (uint64_t)fd)};

	(void)easy;
	(void)state;
	if (what == CURL_POLL_REMOVE)
		epoll_ctl(witness->epoll, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(witness->epoll, EPOLL_CTL_MOD, fd, &event) != 0 && errno == ENOENT)
		epoll_ctl(witness->epoll, EPOLL_CTL_ADD, fd, &event);
	return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *context)
{
	struct witness *witness = context;

	(void)multi;
	witness->curl_due_ms = timeout_ms < 0 ? -1 : (int64_t)(clock_monotonic_ns() / 1000000) + timeout_ms;
	return 0;
}

void fetch_event(struct witness *witness, int fd, uint32_t events)
{
	int running, what = 0;

	if (fd < 0) {
		witness->curl_due_ms = -1;
		curl_multi_socket_action(witness->multi, CURL_SOCKET_TIMEOUT, 0, &running);
		return;
	}
	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	curl_multi_socket_action(witness->multi, fd, what, &running);
}

bool fetch_start(struct witness *witness, struct err *err)
{
	witness->curl_due_ms = -1;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(err, 0, "libcurl cannot start");
	witness->multi = curl_multi_init();
	if (!witness->multi || curl_multi_setopt(witness->multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
	    curl_multi_setopt(witness->multi, CURLMOPT_SOCKETDATA, witness) != CURLM_OK ||
	    curl_multi_setopt(witness->multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
	    curl_multi_setopt(witness->multi, CURLMOPT_TIMERDATA, witness) != CURLM_OK ||
	    curl_multi_setopt(witness->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS) != CURLM_OK)
		return err_set(err, 0, "libcurl cannot start");
	return true;
}

void fetch_stop(struct witness *witness)
{
	if (witness->multi)
		curl_multi_cleanup(witness->multi);
	witness->multi = NULL;
}
