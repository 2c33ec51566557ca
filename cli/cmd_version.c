#include <stdio.h>

#if __has_include("assure_build.h")
#include "assure_build.h"
#endif

#include "base/json.h"
#include "command.h"
#include "ledger/store.h"
#include "options.h"
#include "render.h"

#ifndef ASSURE_VERSION
#define ASSURE_VERSION "0"
#endif
#ifndef ASSURE_BUILD
#define ASSURE_BUILD "unknown"
#endif

static int run(int argc, char **argv)
{
	bool as_json = false;
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &as_json}};
	struct arguments rest = {.most = 0};
	if (!options_parse(&command_version, argc, argv, rows, 1, &rest, &status))
		return status;
	CLEANUP_BUF struct buf out = {.limit = 4096};
	if (as_json) {
		struct json json;
		json_start(&json, &out);
		json_begin_object(&json, NULL);
		json_text(&json, "build", ASSURE_BUILD);
		json_text(&json, "schema", "assure.version/1");
		json_int(&json, "store_schema", STORE_SCHEMA);
		json_text(&json, "version", ASSURE_VERSION);
		json_end_object(&json);
		buf_append_char(&out, '\n');
	} else {
		buf_append_format(&out, "assure %s (%s)\n", ASSURE_VERSION, ASSURE_BUILD);
	}
	return render_out(stdout, &out);
}

const struct command command_version = {
    .name = "version",
    .usage = "version [--json]",
    .help = "Print the version and the revision that it was built from.\n",
    .run = run,
};
