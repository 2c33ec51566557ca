#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/fd.h"
#include "passage.h"

/* For a request's line and header, and a piece of an answer. */
enum { CONNECTION_MEMORY = 96 << 10, IDLE_SECONDS = 600, ANSWER_PIECE = 32 << 10, LOOKS = 64 };

/* --- waiting and waking ----------------------------------------------------------------------------------------- */

static bool watch(struct agent *agent, int operation, uint32_t events)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT,
				    .data.u64 = event_of(EVENT_AGENT, (uint64_t)(uintptr_t)agent)};

	return epoll_ctl(agent->witness->epoll, operation, agent->fd, &event) == 0;
}

static void suspend(struct passage *passage)
{
	passage->suspended = true;
	MHD_suspend_connection(passage->connection);
}

void server_wake(struct passage *passage)
{
	if (!passage->suspended)
		return;
	passage->suspended = false;
	passage->witness->woken = true;
	MHD_resume_connection(passage->connection);
}

static bool nothing_unread(const struct agent *agent)
{
	int size = 0;

	return ioctl(agent->fd, FIONREAD, &size) == 0 && size == 0;
}

/*
 * The daemon does not look at a connection that waits, and is told once of an end that comes together with bytes: without
 * this, it would show with the next byte for the agent alone that the agent is gone.
 */
void server_watched(struct agent *agent, uint32_t events)
{
	struct passage *passage = agent->passage;

	bool waits = passage && passage->suspended, asks = passage && passage->up.ended;

	/* Whoever has sent all may still listen: a connection that is half closed is none that is left. */
	bool gone = (events & (EPOLLERR | EPOLLHUP)) || peer_is_gone(&agent->local, &agent->peer);
	if (gone && waits) {
		passage->gone = true;
		passage_step_later(passage);
	} else if (!asks && !waits && (gone || (agent->looks > 1 && nothing_unread(agent)))) {
		shutdown(agent->fd, SHUT_RDWR); /* what has to come for it to go on never comes */
	} else if (!gone) {
		/* Once more when the daemon had time to read; what is worse than this is told unasked. */
		watch(agent, EPOLL_CTL_MOD, !waits && agent->looks++ < LOOKS ? EPOLLRDHUP : 0);
	}
}

static void connected(struct witness *witness, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct agent *agent = info ? calloc(1, sizeof(*agent)) : NULL;
	socklen_t local = sizeof(agent->local), peer = sizeof(agent->peer);

	*context = agent;
	if (!agent)
		return;
	agent->witness = witness;
	agent->fd = info->connect_fd;
	getsockname(agent->fd, (struct sockaddr *)&agent->local, &local);
	getpeername(agent->fd, (struct sockaddr *)&agent->peer, &peer);
	watch(agent, EPOLL_CTL_ADD, EPOLLRDHUP);
}

static void connection_changed(void *context, struct MHD_Connection *connection, void **agent,
			       enum MHD_ConnectionNotificationCode code)
{
	struct witness *witness = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		connected(witness, connection, agent);
	} else if (*agent) {
		epoll_ctl(witness->epoll, EPOLL_CTL_DEL, ((struct agent *)*agent)->fd, NULL);
		free(*agent);
		*agent = NULL;
	}
}

/* --- requests --------------------------------------------------------------------------------------------------- */

/* What one look at the request's headers finds out. */
struct headers {
	struct passage *passage;
	const char *connection; /* the names that it lists are of the connection, too */
	const char *encoding;
	bool has_body, accept, failed;
	int64_t length;
};

static bool is_named(struct bytes name, const char *other)
{
	return strlen(other) == name.size && strncasecmp(other, name.data, name.size) == 0;
}

static bool is_listed(const char *list, struct bytes name)
{
	while (list && *list) {
		size_t size = strcspn(list, ", \t");
		if (size == name.size && strncasecmp(list, name.data, size) == 0)
			return true;
		list += size;
		list += strspn(list, ", \t");
	}
	return false;
}

static enum MHD_Result find_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
				   const char *value, size_t value_size)
{
	struct headers *headers = context;
	struct bytes key = {name, name_size};

	(void)kind;
	(void)value_size;
	if (is_named(key, "connection"))
		headers->connection = value;
	else if (is_named(key, "content-encoding"))
		headers->encoding = value;
	else if (is_named(key, "accept"))
		headers->accept = true;
	else if (is_named(key, "transfer-encoding"))
		headers->has_body = true;
	if (!is_named(key, "content-length"))
		return MHD_YES;
	headers->has_body = true;
	headers->length = strtoll(value ? value : "", NULL, 10);
	return MHD_YES;
}

static void add_header(struct headers *headers, const char *line)
{
	struct curl_slist *list = curl_slist_append(headers->passage->headers, line);

	if (list)
		headers->passage->headers = list;
	else
		headers->failed = true;
}

static enum MHD_Result copy_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
				   const char *value, size_t value_size)
{
	struct headers *headers = context;
	struct bytes key = {name, name_size};
	CLEANUP_BUF struct buf line = {.limit = CONNECTION_MEMORY};

	(void)kind;
	if (header_is_hop(key) || is_listed(headers->connection, key) || is_named(key, "host") ||
	    is_named(key, "content-length") || is_named(key, "expect"))
		return MHD_YES;
	buf_append_bytes(&line, key);
	/* libcurl's way to say that a header is there and empty. */
	buf_append_text(&line, value_size > 0 ? ": " : ";");
	buf_append(&line, value ? value : "", value ? value_size : 0);
	headers->failed |= line.failed;
	if (!line.failed)
		add_header(headers, line.data);
	if (line.data)
		explicit_bzero(line.data, line.size); /* it may have been a key */
	return MHD_YES;
}

static enum MHD_Result begin_request(struct passage *passage, const char *method)
{
	struct headers headers = {.passage = passage, .length = -1};

	MHD_get_connection_values_n(passage->connection, MHD_HEADER_KIND, find_header, &headers);
	passage_begin(passage, method, bytes_of(headers.encoding));
	passage->has_body = headers.has_body;
	MHD_get_connection_values_n(passage->connection, MHD_HEADER_KIND, copy_header, &headers);
	/* What libcurl would add of its own. */
	add_header(&headers, "Expect:");
	if (!headers.accept)
		add_header(&headers, "Accept:");
	if (headers.failed)
		return MHD_NO;
	passage->up.ended = !headers.has_body;
	passage->length = headers.length;
	fetch_begin(passage);
	return MHD_YES;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

static ssize_t answer_piece(void *context, uint64_t position, char *to, size_t size)
{
	struct passage *passage = context;

	(void)position;
	if (passage->gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t taken = pipe_take(&passage->down, to, size);
	if (passage->down_paused && pipe_size(&passage->down) <= PASSAGE_LOW)
		passage_step_later(passage);
	if (taken > 0)
		return (ssize_t)taken;
	if (passage->down.ended)
		return passage->broken ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
	suspend(passage);
	return 0;
}

/* The lines that libcurl gave, each ended by a NUL: "Name: value". */
static void add_headers(struct MHD_Response *response, const struct buf *head)
{
	const char *connection = NULL;

	for (int pass = 0; pass < 2; pass++) /* first, what Connection lists */
		for (size_t at = 0; at < head->size; at += strlen(head->data + at) + 1) {
			char *line = head->data + at, *colon = strchr(line, ':');
			if (!colon || colon == line)
				continue;
			struct bytes name = {line, (size_t)(colon - line)};
			char *value = colon + 1 + strspn(colon + 1, " \t");
			if (pass == 0 && is_named(name, "connection"))
				connection = value;
			if (pass == 0 || header_is_hop(name) || is_listed(connection, name) ||
			    is_named(name, "content-length"))
				continue;
			*colon = '\0';
			MHD_add_response_header(response, line, value);
			*colon = ':';
		}
}

static enum MHD_Result answer(struct passage *passage)
{
	/* A body that is not there has a length all the same, which HEAD asks for. */
	uint64_t size = passage->length >= 0 ? (uint64_t)passage->length : MHD_SIZE_UNKNOWN;
	if (passage->body_less && passage->length < 0 && strcmp(passage->method, "HEAD") != 0)
		size = 0;
	struct MHD_Response *response =
	    MHD_create_response_from_callback(size, ANSWER_PIECE, answer_piece, passage, NULL);
	if (!response)
		return MHD_NO;
	add_headers(response, &passage->head);
	enum MHD_Result queued = MHD_queue_response(passage->connection, passage->status, response);
	MHD_destroy_response(response);
	passage->answered = queued == MHD_YES;
	return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);

	if (!response)
		return MHD_NO;
	enum MHD_Result queued = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

/* --- the daemon's functions ------------------------------------------------------------------------------------- */

static void *target_known(void *context, const char *target, struct MHD_Connection *connection)
{
	struct witness *witness = context;
	struct passage *passage = strlen(target) <= TARGET_LIMIT ? passage_new(witness, target) : NULL;

	if (!passage) {
		witness->sink.loss(witness->sink.context, WITNESS_LOSS_memory, "a request");
		return NULL;
	}
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	passage->connection = connection;
	passage->agent = info ? info->socket_context : NULL;
	if (passage->agent)
		passage->agent->passage = passage;
	return passage;
}

/* As much of the request's body as there is room for. */
static void take_upload(struct passage *passage, const char *data, size_t *size)
{
	size_t room = pipe_size(&passage->up) < PASSAGE_HIGH ? PASSAGE_HIGH - pipe_size(&passage->up) : 0;
	size_t taken = *size < room ? *size : room;

	/* An upstream that has answered, or failed, takes no more: what still comes is let go. */
	if (passage->down.ended)
		taken = *size;
	if (taken > 0) {
		passage_saw(passage, READING_REQUEST, (struct bytes){data, taken});
		if (!passage->down.ended)
			buf_append(&passage->up.bytes, data, taken);
	}
	*size -= taken;
	if (passage->up_paused && taken > 0)
		passage_step_later(passage);
	if (*size > 0)
		suspend(passage);
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url, const char *method,
			      const char *version, const char *upload, size_t *upload_size, void **state)
{
	struct passage *passage = *state;

	(void)context;
	(void)url;
	(void)version;
	if (!passage)
		return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE);
	if (passage->gone)
		return MHD_NO;
	if (!passage->begun) {
		if (passage->target[0] != '/') /* a proxy, we are not */
			return refuse(connection, MHD_HTTP_BAD_REQUEST);
		return begin_request(passage, method);
	}
	if (*upload_size > 0) {
		take_upload(passage, upload, upload_size);
		return MHD_YES;
	}
	if (!passage->up.ended) {
		passage->up.ended = true;
		passage_step_later(passage);
	}
	if (passage->head_done)
		return answer(passage);
	suspend(passage);
	return MHD_YES;
}

static void completed(void *context, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode code)
{
	struct passage *passage = *state;

	(void)context;
	(void)connection;
	if (!passage)
		return;
	if (passage->agent)
		passage->agent->passage = NULL;
	passage_end(passage, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
	*state = NULL;
}

/* Targets go on as they came. */
static size_t leave_escapes(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	return strlen(text);
}

bool server_start(struct witness *witness, int listener, struct err *err)
{
	witness->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0, NULL, NULL, handle, witness,
	    MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)WITNESS_CONNECTION_LIMIT,
	    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_MEMORY, MHD_OPTION_URI_LOG_CALLBACK, target_known, witness, MHD_OPTION_NOTIFY_COMPLETED,
	    completed, witness, MHD_OPTION_NOTIFY_CONNECTION, connection_changed, witness, MHD_OPTION_UNESCAPE_CALLBACK,
	    leave_escapes, NULL, MHD_OPTION_END);
	if (!witness->daemon) {
		fd_close(&listener);
		return err_set(err, 0, "the model witness cannot serve");
	}
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(witness->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = event_of(EVENT_SERVER, 0)};
	if (!info || epoll_ctl(witness->epoll, EPOLL_CTL_ADD, info->epoll_fd, &event) != 0)
		return err_set(err, errno, "the model witness cannot wait for the agent");
	return true;
}

void server_stop(struct witness *witness)
{
	if (!witness->daemon)
		return;
	/* The daemon ends only what does not wait. */
	for (struct passage *passage = witness->passages; passage; passage = passage->next) {
		passage->gone = true;
		server_wake(passage);
	}
	MHD_run(witness->daemon);
	MHD_stop_daemon(witness->daemon);
	witness->daemon = NULL;
}
