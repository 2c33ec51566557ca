#include "route.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

const char *witness_default_upstream(enum provider provider)
{
	static const char *const upstreams[PROVIDER_COUNT] = {
	    [PROVIDER_anthropic] = "https://api.anthropic.com",
	    [PROVIDER_openai] = "https://api.openai.com/v1",
	    [PROVIDER_gemini] = "https://generativelanguage.googleapis.com",
	};

	return provider < PROVIDER_COUNT ? upstreams[provider] : NULL;
}

/* By address; a name other than localhost may lead anywhere by the time that it is used. */
static bool is_loopback(const char *host)
{
	struct in_addr address;

	if (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static char *part_of(CURLU *url, CURLUPart part)
{
	char *text = NULL;

	return curl_url_get(url, part, &text, 0) == CURLUE_OK ? text : NULL;
}

static bool parse(struct route *route, const char *upstream, struct err *err)
{
	CURLU *url = curl_url();
	bool good = false;

	if (!url || curl_url_set(url, CURLUPART_URL, upstream, 0) != CURLUE_OK) {
		curl_url_cleanup(url);
		return err_set(err, 0, "the upstream of a model is no URL");
	}
	char *scheme = part_of(url, CURLUPART_SCHEME), *host = part_of(url, CURLUPART_HOST);
	char *port = part_of(url, CURLUPART_PORT), *path = part_of(url, CURLUPART_PATH);
	char *query = part_of(url, CURLUPART_QUERY), *fragment = part_of(url, CURLUPART_FRAGMENT);
	if (!scheme || !host || !path || query || fragment) {
		err_set(err, 0, "the upstream of a model is no URL of a host and a path");
	} else if (strcmp(scheme, "https") != 0 && !(strcmp(scheme, "http") == 0 && is_loopback(host))) {
		err_set(err, 0, "the upstream %s://%s is not https, and not on loopback", scheme, host);
	} else {
		size_t end = strlen(path);
		while (end > 0 && path[end - 1] == '/')
			path[--end] = '\0';
		route->loopback = is_loopback(host);
		route->url = strdup(upstream);
		route->path = strdup(path);
		if (asprintf(&route->origin, "%s://%s%s%s", scheme, host, port ? ":" : "", port ? port : "") < 0)
			route->origin = NULL;
		good = route->url && route->path && route->origin;
		if (!good)
			err_set(err, ENOMEM, "the routes of the model witness");
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	curl_free(query);
	curl_free(fragment);
	curl_url_cleanup(url);
	return good;
}

bool routes_set(struct routes *routes, const struct witness_route *given, size_t count, struct err *err)
{
	*routes = (struct routes){.count = 0};
	if (count == 0 || count > WITNESS_ROUTE_LIMIT)
		return err_set(err, 0, "the model witness takes 1 to %d routes", WITNESS_ROUTE_LIMIT);
	for (size_t i = 0; i < count; i++) {
		struct route *route = &routes->rows[routes->count++];
		size_t size = strlen(given[i].prefix);
		if (size > 0 && (given[i].prefix[0] != '/' || given[i].prefix[size - 1] == '/'))
			return err_set(err, 0, "a route's prefix is empty, or starts and does not end with \"/\"");
		route->provider = given[i].provider;
		route->prefix = strdup(given[i].prefix);
		if (!route->prefix)
			return err_set(err, ENOMEM, "the routes of the model witness");
		if (!parse(route, given[i].upstream, err))
			return false;
	}
	return true;
}

void routes_free(struct routes *routes)
{
	for (size_t i = 0; i < routes->count; i++) {
		struct route *route = &routes->rows[i];
		free(route->prefix);
		free(route->url);
		free(route->origin);
		free(route->path);
	}
	routes->count = 0;
}

const struct route *routes_find(const struct routes *routes, struct bytes target, enum dialect dialect)
{
	const struct route *best = NULL;
	size_t best_size = 0;
	bool best_speaks = false;

	for (size_t i = 0; i < routes->count; i++) {
		const struct route *route = &routes->rows[i];
		struct bytes prefix = bytes_of(route->prefix);
		if (!bytes_start_with(target, prefix))
			continue;
		char next = target.size > prefix.size ? target.data[prefix.size] : '/';
		if (next != '/' && next != '?')
			continue;
		bool speaks = dialect != DIALECT_unwitnessed && dialect_provider(dialect) == route->provider;
		if (!best || prefix.size > best_size || (prefix.size == best_size && speaks && !best_speaks)) {
			best = route;
			best_size = prefix.size;
			best_speaks = speaks;
		}
	}
	return best;
}

bool header_is_hop(struct bytes name)
{
	static const char *const names[] = {"connection",
					    "keep-alive",
					    "proxy-authenticate",
					    "proxy-authorization",
					    "proxy-connection",
					    "te",
					    "trailer",
					    "transfer-encoding",
					    "upgrade"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == name.size && strncasecmp(names[i], name.data, name.size) == 0)
			return true;
	return false;
}
