/*
 * The model witness by itself, for the tests: witness_alone OUTPUT PROVIDER,PREFIX,UPSTREAM…
 *
 * Serves on a free port of loopback, which it prints; writes what it is told as JSON lines; ends with its standard input.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/text.h"
#include "witness/witness.h"

struct output {
	int fd;
	struct buf line;
	struct json json;
};

static void begin_line(struct output *output)
{
	buf_reset(&output->line);
	json_start(&output->json, &output->line);
	json_begin_object(&output->json, NULL);
}

static void end_line(struct output *output)
{
	json_end_object(&output->json);
	buf_append_char(&output->line, '\n');
	if (output->line.failed || !fd_write_full(output->fd, output->line.data, output->line.size))
		abort();
}

static void put_digest(struct json *json, const char *key, const uint8_t digest[CALL_DIGEST_SIZE])
{
	CLEANUP_BUF struct buf text = {.limit = 128};

	text_hex(&text, (struct bytes){(const char *)digest, CALL_DIGEST_SIZE});
	json_word(json, key, buf_bytes(&text));
}

/* As a profile would: one tool of all is known. */
static void describe(void *context, struct bytes tool, const struct call_bytes *arguments,
		     struct call_sighting *sighting)
{
	(void)context;
	if (!bytes_equal(tool, BYTES("Bash")))
		return;
	sighting->kind = TOOL_command;
	sighting->command = *arguments;
}

static void call(void *context, const struct call_sighting *sighting, uint64_t exchange)
{
	struct output *output = context;
	struct json *json = &output->json;
	const struct call_bytes *bytes = sighting->event == CALL_begin ? &sighting->arguments : &sighting->output;

	begin_line(output);
	json_bytes(json, "bytes", bytes->kept);
	json_text(json, "event", sighting->event == CALL_begin ? "begin" : "end");
	json_uint(json, "exchange", exchange);
	if (sighting->has_exit)
		json_int(json, "exit", sighting->exit_code);
	json_bool(json, "failed", sighting->failed);
	json_bytes(json, "id", sighting->id);
	json_bool(json, "is_command", sighting->kind == TOOL_command && sighting->command.present);
	put_digest(json, "sha256", bytes->sha256);
	json_uint(json, "size", bytes->size);
	json_bytes(json, "tool", sighting->tool);
	end_line(output);
}

static void put_body(struct json *json, const char *key, const struct exchange_body *body)
{
	json_begin_object(json, key);
	put_digest(json, "sha256", body->sha256);
	json_uint(json, "size", body->size);
	json_end_object(json);
}

static unsigned port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void exchange_over(void *context, const struct exchange *exchange)
{
	struct output *output = context;
	struct json *json = &output->json;
	const struct reading_facts *facts = exchange->response.facts;

	begin_line(output);
	json_bytes(json, "asked", exchange->model_asked);
	json_uint(json, "calls", exchange->calls);
	json_text(json, "dialect", dialect_name(exchange->dialect));
	json_text(json, "event", "exchange");
	json_bytes(json, "method", exchange->method);
	if (facts && facts->model.present)
		json_bytes(json, "model", reading_text_bytes(&facts->model));
	json_uint(json, "number", exchange->number);
	json_bytes(json, "origin", exchange->origin);
	json_bytes(json, "path", exchange->path);
	json_uint(json, "peer", port_of(&exchange->peer));
	put_body(json, "request", &exchange->request);
	put_body(json, "response", &exchange->response);
	json_text(json, "state", exchange_state_name(exchange->state));
	json_uint(json, "status", exchange->status);
	if (facts && facts->stop.present)
		json_bytes(json, "stop", reading_text_bytes(&facts->stop));
	json_bool(json, "test_upstream", exchange->test_upstream);
	end_line(output);
}

static void loss(void *context, enum witness_loss which, const char *detail)
{
	struct output *output = context;

	begin_line(output);
	json_text(&output->json, "code", witness_loss_code(which));
	json_text(&output->json, "detail", detail);
	json_text(&output->json, "event", "loss");
	end_line(output);
}

static bool parse_route(char *text, struct witness_route *route)
{
	static const char *const providers[PROVIDER_COUNT] = {"anthropic", "openai", "gemini"};
	char *prefix = strchr(text, ','), *upstream = prefix ? strchr(prefix + 1, ',') : NULL;

	if (!upstream)
		return false;
	*prefix++ = *upstream++ = '\0';
	*route = (struct witness_route){PROVIDER_COUNT, prefix, upstream};
	for (int i = 0; i < PROVIDER_COUNT; i++)
		if (strcmp(text, providers[i]) == 0)
			route->provider = (enum provider)i;
	return route->provider != PROVIDER_COUNT;
}

static int listen_on_loopback(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, SOMAXCONN) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return -1;
	dprintf(1, "%u\n", ntohs(address.sin_port));
	return fd;
}

int main(int argc, char **argv)
{
	struct witness_route routes[WITNESS_ROUTE_LIMIT];
	struct output output = {.line = {.limit = 16 << 20}};
	struct witness_sink sink = {
	    .context = &output, .describe = describe, .call = call, .exchange = exchange_over, .loss = loss};
	struct witness_config config = {.routes = routes};
	struct rlimit files;
	struct err err = {0};
	char input[64];

	for (int i = 2; i < argc && config.route_count < WITNESS_ROUTE_LIMIT; i++)
		if (!parse_route(argv[i], &routes[config.route_count++]))
			return 2;
	output.fd = argc > 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (output.fd < 0)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	config.ca_file = getenv("WITNESS_CA");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	config.listener = listen_on_loopback();
	struct witness *witness = config.listener < 0 ? NULL : witness_start(&config, &sink, &err);
	if (!witness) {
		dprintf(2, "%s\n", err.text);
		return 1;
	}
	struct pollfd waits[] = {{.fd = 0, .events = POLLIN}, {.fd = witness_descriptor(witness), .events = POLLIN}};
	for (;;) {
		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			break;
		if (waits[0].revents && read(0, input, sizeof(input)) <= 0)
			break;
		if (waits[1].revents)
			witness_step(witness);
	}
	witness_stop(witness);
	buf_free(&output.line);
	fd_close(&output.fd);
	return 0;
}
