#include <stdio.h>

#include "base/json.h"
#include "base/text.h"
#include "command.h"
#include "ledger/attestation.h"
#include "ledger/claim.h"
#include "ledger/verify.h"
#include "named.h"
#include "options.h"
#include "render.h"

/* What was checked is a seal, whatever is sealed; of what cannot be read nothing is known but what somebody says. */
static enum record_class verdict_class(const struct verification *found)
{
	return claim_class(CLAIM_seal, found->class[0] ? claim_class_named(found->class) : CLASS_external);
}

static void write_json(const struct verification *found, struct buf *out)
{
	CLEANUP_BUF struct buf root = {.limit = 128};
	struct json json;

	text_base64(&root, digest_bytes(&found->root));
	json_start(&json, out);
	json_begin_object(&json, NULL);
	if (found->is_attestation)
		json_bool(&json, "attestation", true);
	if (found->class[0])
		json_text(&json, "class", found->class);
	json_bool(&json, "complete", found->verdict == VERDICT_INTACT);
	json_uint(&json, "covered", found->covered);
	json_uint(&json, "effects", found->effects);
	if (found->is_attestation)
		json_uint(&json, "files", found->files);
	if (found->has_seq)
		json_uint(&json, "first_bad", found->seq);
	json_bytes(&json, "host", found->host[0] ? bytes_of(found->host) : BYTES_NONE);
	json_bytes(&json, "host_key", found->host_key[0] ? bytes_of(found->host_key) : BYTES_NONE);
	json_bool(&json, "in_log", found->in_log);
	if (found->exposed[0])
		json_text(&json, "key_exposed", found->exposed);
	json_uint(&json, "records", found->records);
	json_bool(&json, "recovered", found->recovered);
	if (found->is_redacted)
		json_uint(&json, "redacted", found->redacted);
	json_word(&json, "root", buf_bytes(&root));
	json_bytes(&json, "run", found->run[0] ? bytes_of(found->run) : BYTES_NONE);
	json_text(&json, "schema", "assure.verify/1");
	json_bool(&json, "sealed", found->sealed);
	json_bool(&json, "store_covered", found->store_covered);
	json_text(&json, "verdict", verdict_name(found->verdict));
	json_text(&json, "verdict_class", record_class_name(verdict_class(found)));
	json_bytes(&json, "why", found->why[0] ? bytes_of(found->why) : BYTES_NONE);
	json_end_object(&json);
	buf_append_char(out, '\n');
}

static void row(struct buf *out, const char *title)
{
	buf_append_format(out, "  %s%-9s%s", render_style(stdout, STYLE_DIM), title, render_style(stdout, STYLE_PLAIN));
}

static const char *headline(const struct verification *found)
{
	switch (found->verdict) {
	case VERDICT_INTACT:
		return "intact and complete";
	case VERDICT_TAMPERED:
		return "TAMPERED WITH";
	case VERDICT_INCOMPLETE:
		return found->recovered ? "intact, recovered" : "intact, incomplete";
	case VERDICT_UNREADABLE:
		return "cannot be read";
	default:
		return "intact, by a key that was not named";
	}
}

/* Of a statement about a run: what it is about, and what nobody can see in it. */
static void show_attested(const struct verification *found, struct buf *out)
{
	row(out, "files");
	render_count(out, found->files);
	buf_append_text(out, found->files == 1 ? " whose content" : " whose contents");
	buf_append_text(out, " when the run ended it states; compare with sha256sum\n");
	row(out, "limit");
	buf_append_text(out, "it was signed after the seal, by the host's key (" EXPORT_SIGNED ")\n");
	row(out, "limit");
	buf_append_text(out, "the records are not in it: that they are what was sealed, only the run's\n"
			     "           bundle shows\n");
}

static void show_contents(const struct verification *found, struct buf *out)
{
	CLEANUP_BUF struct buf root = {.limit = 128};

	text_hex(&root, digest_bytes(&found->root));
	row(out, "records");
	render_count(out, found->records);
	if (found->covered < found->records) {
		buf_append_text(out, ", of which ");
		render_count(out, found->covered);
		buf_append_text(out, " are signed");
	}
	if (!root.failed)
		buf_append_format(out, "; root %.4s%s%s", root.data, render_more(), root.data + root.size - 4);
	buf_append_char(out, '\n');
	if (found->host_key[0]) {
		row(out, "signed");
		buf_append_text(out, "by the host ");
		text_for_terminal(out, bytes_of(found->host));
		buf_append_format(out, " (key %.16s%s)%s\n", found->host_key, render_more(),
				  found->in_log ? ", whose log knows the run" : "");
	}
}

/* What a verifier must not leave unsaid (evidence: the weaker sentence). */
static void show_limits(const struct verification *found, struct buf *out)
{
	if (found->class[0]) {
		row(out, "class");
		buf_append_format(out, "what its records say is %s at most\n",
				  record_class_name(claim_class_named(found->class)));
	}
	if (found->exposed[0]) {
		row(out, "limit");
		text_for_terminal(out, bytes_of(found->exposed));
		buf_append_text(out, ": who ran as the traced user could use the host's key,\n");
		buf_append_text(out, "           and replace the whole run; a head kept elsewhere would show it\n");
	}
	if (strcmp(found->class, "verifiable") == 0) {
		row(out, "limit");
		buf_append_text(out, "the tree began as root, which could pass for its witness\n");
	}
	if (found->is_redacted) {
		row(out, "limit");
		render_counted(out, found->redacted, "record", "records");
		buf_append_text(out, " redacted by the exporter: their content is vouched for by the host\n"
				     "           key alone (" EXPORT_SIGNED ")\n");
	}
	if (!found->in_log) {
		row(out, "limit");
		buf_append_text(out, "no host log was asked whether there was another run of this name\n");
	}
	if (found->sealed && !found->store_covered) {
		row(out, "limit");
		buf_append_text(out, "unused bytes of its file are not covered by the seal\n");
	}
}

static void write_screen(const struct verification *found, struct buf *out)
{
	enum style style = found->verdict == VERDICT_INTACT     ? STYLE_GREEN
			   : found->verdict == VERDICT_TAMPERED ? STYLE_RED
								: STYLE_YELLOW;
	bool shown = found->verdict != VERDICT_TAMPERED && found->verdict != VERDICT_UNREADABLE;

	buf_append_format(out, "%s%s: %s%s%s", found->is_attestation ? "attestation of run " : "run ", found->run,
			  render_style(stdout, style), headline(found), render_style(stdout, STYLE_PLAIN));
	render_class(out, stdout, verdict_class(found), found->exposed);
	buf_append_char(out, '\n');
	if (found->why[0]) {
		row(out, "why");
		text_for_terminal(out, bytes_of(found->why));
		buf_append_char(out, '\n');
	}
	if (shown) {
		show_contents(found, out);
		if (found->is_attestation)
			show_attested(found, out);
		show_limits(found, out);
	}
}

static int conclude(const struct verification *found, bool json)
{
	CLEANUP_BUF struct buf out = {.limit = 1 << 16};

	if (json)
		write_json(found, &out);
	else
		write_screen(found, &out);
	int status = render_out(stdout, &out);
	return status == EXIT_OK ? (int)found->verdict : status;
}

static int run(int argc, char **argv)
{
	bool json = false, malformed;
	char home[PATH_MAX];
	const char *key = NULL;
	char fingerprint[1][ED25519_FINGERPRINT_SIZE];
	struct arguments rest = {.least = 1, .most = 1};
	struct named_run named;
	struct verification found;
	struct err err = {.number = 0};
	int status;
	const struct option_row rows[] = {{.name = "json", .flag = &json}, {.name = "key", .text = &key}};

	if (!options_parse(&command_verify, argc, argv, rows, 2, &rest, &status))
		return status;
	if (key && !named_key(key, fingerprint[0], &err))
		return render_error(&err);
	struct verify_request request = {
	    .keys = (const char(*)[ED25519_FINGERPRINT_SIZE])fingerprint,
	    .key_count = key ? 1 : 0,
	    /* What came from elsewhere is asked of this host's log too: whether it is of here, and who is believed. */
	    .home = store_home(home, sizeof(home), false, NULL) ? home : NULL,
	};
	if (attestation_is(rest.items[0])) {
		attestation_verify(rest.items[0], &request, &found);
		return conclude(&found, json);
	}
	if (!named_run(rest.items[0], &named, &malformed, &err)) {
		(void)render_error(&err);
		return malformed ? VERDICT_TAMPERED : VERDICT_UNREADABLE;
	}
	request.folder = named.folder;
	request.run = named.id;
	if (named.is_bundle)
		request.log = (struct bytes){named.bundle.log, named.bundle.log_size};
	if (named.is_bundle)
		request.redaction = (struct bytes){named.bundle.redaction, named.bundle.redaction_size};
	else
		request.home = named.home;
	verify_run(&request, &found);
	named_release(&named);
	return conclude(&found, json);
}

const struct command command_verify = {
    .name = "verify",
    .usage = "verify RUN|FILE [--key FILE|FINGERPRINT] [--json]",
    .help = "Check that a run is what was sealed.\n\n"
	    "RUN is a run as everywhere, or the path of a run's folder; FILE is a bundle or an\n"
	    "attestation that `assure export` wrote. Everything is computed anew: every\n"
	    "record, its tree, every checkpoint, the certificates and the seal, and what the host\n"
	    "log says of the run; of an attestation, its signature and what was sealed. Nothing\n"
	    "secret is needed.\n\n"
	    "  --key K     believe this host key alone: a fingerprint, or a file with one or\n"
	    "              with what `assure keys export` prints. Without it: the keys of the\n"
	    "              host log beside the run\n"
	    "  --json      one JSON object (assure.verify/1)\n\n"
	    "Exit status: 0 intact and complete, 1 tampered with, 2 intact but incomplete or\n"
	    "recovered, 3 unreadable, 4 intact but signed by a key that was not named.\n",
    .run = run,
};
