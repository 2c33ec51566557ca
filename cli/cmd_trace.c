/*
 * assure trace: run a command and record what its process tree does.
 */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assure_build.h"
#include "base/text.h"
#include "command.h"
#include "guardian/guardian.h"
#include "ledger/store.h"
#include "options.h"
#include "passphrase.h"
#include "render.h"
#include "render_run.h"

enum { EXIT_OURS = 125 };

struct wishes {
	struct guardian_config guardian;
	const char *patterns[PATTERNS_LIMIT];
	struct passphrase_source source;
	struct passphrase passphrase;
	bool quiet;
};

enum option_id {
	OPTION_LENS = 256,
	OPTION_RESULTS,
	OPTION_WAIT,
	OPTION_NAME,
	OPTION_QUIET,
	OPTION_HASH,
	OPTION_IO_URING,
	OPTION_REDACT,
	OPTION_PASSPHRASE,
	OPTION_HELP
};

static const struct option long_options[] = {
    {"lens", required_argument, NULL, OPTION_LENS},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"name", required_argument, NULL, OPTION_NAME},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"hash", required_argument, NULL, OPTION_HASH},
    {"io-uring", required_argument, NULL, OPTION_IO_URING},
    {"passphrase-fd", required_argument, NULL, OPTION_PASSPHRASE},
    {"redact", required_argument, NULL, OPTION_REDACT},
    {"results", required_argument, NULL, OPTION_RESULTS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* One of two words; false when it is neither. */
static bool choose(const char *word, const char *no, const char *yes, bool *out)
{
	*out = strcmp(word, yes) == 0;
	return *out || strcmp(word, no) == 0;
}

/* -1: go on; else the exit status. */
static int take_option(struct wishes *wishes, int option, const char *option_text)
{
	struct guardian_config *config = &wishes->guardian;
	struct err err = {.number = 0};

	switch (option) {
	case OPTION_LENS:
		if (!lens_find(optarg, &config->lens))
			return options_mistake(&command_trace, "--lens takes changes, reads or all", optarg);
		return -1;
	case OPTION_RESULTS:
		if (!results_find(optarg, &config->results))
			return options_mistake(&command_trace, "--results takes perform, verify or none", optarg);
		return -1;
	case OPTION_WAIT:
		if (!choose(optarg, "tree", "main", &config->wait_main))
			return options_mistake(&command_trace, "--wait takes tree or main", optarg);
		return -1;
	case OPTION_NAME:
		config->name = optarg;
		return store_check_name(optarg, &err) ? -1 : render_error(&err);
	case OPTION_QUIET:
		wishes->quiet = true;
		return -1;
	case OPTION_HASH:
		if (strcmp(optarg, "images") != 0)
			return options_mistake(&command_trace, "--hash takes images", optarg);
		config->hash_images = true;
		return -1;
	case OPTION_IO_URING:
		if (!choose(optarg, "deny", "allow", &config->io_uring_allowed))
			return options_mistake(&command_trace, "--io-uring takes deny or allow", optarg);
		return -1;
	case OPTION_PASSPHRASE:
		wishes->source.given = text_decimal_parse(bytes_of(optarg), &wishes->source.descriptor);
		return wishes->source.given
			   ? -1
			   : options_mistake(&command_trace, "--passphrase-fd takes a descriptor", optarg);
	case OPTION_REDACT:
		if (config->pattern_count == PATTERNS_LIMIT)
			return options_mistake(&command_trace, "--redact was given too often", NULL);
		wishes->patterns[config->pattern_count++] = optarg;
		return -1;
	case OPTION_HELP:
		options_print_help(&command_trace, stdout);
		return EXIT_OK;
	default:
		return options_mistake(&command_trace, option == ':' ? "option needs a value" : "unknown option",
				       option_text);
	}
}

/* A line of ours on the terminal that the agent may be using: at the start of a line, and only there. */
static void say(void *context, const char *line)
{
	struct buf text CLEANUP_BUF = {.limit = 4096};

	enum { PATIENCE_MS = 200 }; /* signals and the end of the run wait meanwhile */

	(void)context;
	buf_append_text(&text, "assure: ");
	text_for_terminal(&text, bytes_of(line));
	buf_append_char(&text, '\n');
	render_to_stderr(buf_bytes(&text), PATIENCE_MS);
}

/* True when it says how complete the run is. */
static bool print_screen(const struct wishes *wishes, const struct guardian_outcome *outcome)
{
	struct err err = {.number = 0};

	if (wishes->quiet)
		return false;
	struct run *run = run_open(wishes->guardian.home, outcome->run, &err);
	bool shown = run && render_run_screen(stderr, wishes->guardian.home, run, &err);
	if (!shown)
		(void)render_error(&err);
	bool told = shown && run_get_summary(run)->state != RUN_COMPLETE;
	if (run)
		run_close(run);
	return told;
}

static int run(int argc, char **argv)
{
	static char home[PATH_MAX];
	struct wishes wishes = {
	    .guardian = {
		.lens = LENS_reads, .results = RESULTS_perform, .version = ASSURE_VERSION, .build = ASSURE_BUILD}};
	struct guardian_outcome outcome;
	struct err err = {.number = 0};
	int option;

	optind = 1;
	/* '+': options behind the command are the command's. */
	while ((option = getopt_long(argc, argv, "+:", long_options, NULL)) != -1) {
		int status = take_option(&wishes, option, argv[optind - 1]);
		if (status >= 0)
			return status;
	}
	if (optind >= argc)
		return options_mistake(&command_trace, "there is no command to run", NULL);
	wishes.guardian.argv = argv + optind;
	wishes.guardian.patterns = wishes.patterns;
	struct redactor *redactor = redactor_new(wishes.patterns, wishes.guardian.pattern_count, &err);
	if (!redactor)
		return options_mistake(&command_trace, err.text, "--redact");
	wishes.guardian.redactor = redactor;
	wishes.guardian.home = home;
	if (!wishes.quiet)
		wishes.guardian.notice = say;
	wishes.guardian.passphrase = &wishes.passphrase;
	bool ran = store_home(home, sizeof(home), true, &err) &&
		   passphrase_ask(home, &wishes.source, &wishes.passphrase, &err) &&
		   guardian_run(&wishes.guardian, &outcome, &err);
	passphrase_wipe(&wishes.passphrase);
	if (!ran) {
		(void)render_error(&err);
		return err.exit_status ? err.exit_status : EXIT_OURS;
	}
	bool shown = print_screen(&wishes, &outcome);
	bool helper_died = outcome.helper_died;
	if (helper_died || (outcome.reason[0] && !shown && !wishes.quiet)) {
		err_set(&err, 0, "the run is not complete: %s", outcome.reason);
		err_hint(&err, "what was recorded until then can be read: assure show %.8s", outcome.run);
		(void)render_error(&err);
	}
	if (helper_died)
		return EXIT_OURS;
	(void)fflush(NULL);
	guardian_exit_like(outcome.wait_status);
}

const struct command command_trace = {
    .name = "trace",
    .usage = "trace [--lens changes|reads|all] [--results perform|verify|none] [--wait tree|main] [--name N] [--quiet] "
	     "[--hash images] "
	     "[--io-uring deny|allow] [--redact REGEX]... [--passphrase-fd N] [--] COMMAND [ARG...]",
    .help =
	"Run a command and record what its process tree does.\n"
	"\n"
	"  --lens changes   everything but reads; read-only opens run at native cost\n"
	"  --lens reads     also what was read, once per process and file (the default)\n"
	"  --lens all       every single read, and executable mappings\n"
	"  --results perform   make what changes something for the command, where nobody can tell the difference, so\n"
	"                      that the record is what was done; verify the rest (the default)\n"
	"  --results verify    never act for it: the kernel makes each call, and its result is read from the task\n"
	"  --results none      look at attempts only\n"
	"  --wait tree      return when everything that the command started has ended (the default)\n"
	"  --wait main      return when the command itself has ended; the rest stays watched\n"
	"  --name N         a name for the run\n"
	"  --quiet          no lines of our own on the terminal\n"
	"  --hash images    record the SHA-256 of each program that is executed\n"
	"  --io-uring deny  answer io_uring as a kernel without it (the default), so that nothing goes unseen\n"
	"  --redact REGEX   what matches is withheld, besides what looks like a key, token or password; repeatable\n"
	"  --passphrase-fd N   where the passphrase of a sealed host key is read, instead of from the terminal\n"
	"  --io-uring allow let it work: what it does is not seen, and a run that used it is incomplete\n"
	"\n"
	"The exit status is the command's; 125: our failure, 126: it cannot be executed, 127: it was not found.\n",
    .run = run,
};
