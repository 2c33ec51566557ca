#include "base/note.h"

#include "base/text.h"

/* U+2014 and a space. */
static const char dash[] = "\xe2\x80\x94 ";

enum { DASH_SIZE = sizeof(dash) - 1, ID_SIZE = 4 };

/* White space by Unicode, as C2SP's names exclude it. */
static bool is_space(uint32_t code)
{
	return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
	       (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
	       code == 0x205f || code == 0x3000;
}

bool note_name_is_good(struct bytes name)
{
	if (name.size == 0 || name.size > NOTE_NAME_LIMIT)
		return false;
	while (name.size > 0) {
		uint32_t code;
		size_t size = text_utf8_decode(name, &code);
		if (size == 0 || code == '+' || code < 0x20 || is_space(code))
			return false;
		name.data += size;
		name.size -= size;
	}
	return true;
}

bool note_key_id(const struct note_key *key, uint8_t out[4])
{
	CLEANUP_BUF struct buf text = {.limit = NOTE_NAME_LIMIT + 64};
	struct digest digest;

	buf_append_bytes(&text, key->name);
	buf_append_char(&text, '\n');
	buf_append_char(&text, (char)key->algorithm);
	buf_append(&text, key->key.bytes, ED25519_KEY_SIZE);
	if (text.failed || !digest_of(buf_bytes(&text), &digest))
		return false;
	memcpy(out, digest.bytes, ID_SIZE);
	return true;
}

void note_key_format(const struct note_key *key, struct buf *out)
{
	uint8_t id[ID_SIZE], bytes[1 + ED25519_KEY_SIZE] = {(uint8_t)key->algorithm};

	if (!note_key_id(key, id)) {
		out->failed = true;
		return;
	}
	memcpy(bytes + 1, key->key.bytes, ED25519_KEY_SIZE);
	buf_append_bytes(out, key->name);
	buf_append_char(out, '+');
	text_hex(out, (struct bytes){(const char *)id, sizeof(id)});
	buf_append_char(out, '+');
	text_base64(out, (struct bytes){(const char *)bytes, sizeof(bytes)});
}

/* Up to `end`; `rest` begins behind it. */
static bool take_until(struct bytes *rest, char end, struct bytes *out)
{
	const char *found = rest->size ? memchr(rest->data, end, rest->size) : NULL;

	if (!found)
		return false;
	*out = (struct bytes){rest->data, (size_t)(found - rest->data)};
	rest->data += out->size + 1;
	rest->size -= out->size + 1;
	return true;
}

bool note_key_parse(struct bytes text, struct note_key *out)
{
	CLEANUP_BUF struct buf bytes = {.limit = 64};
	uint8_t said[ID_SIZE], id[ID_SIZE];
	struct bytes number;

	if (!take_until(&text, '+', &out->name) || !take_until(&text, '+', &number) || !note_name_is_good(out->name) ||
	    !text_hex_parse(number, said, sizeof(said)) || !text_base64_parse(&bytes, text) ||
	    bytes.size != 1 + ED25519_KEY_SIZE)
		return false;
	if (bytes.data[0] != NOTE_ED25519 && bytes.data[0] != NOTE_COSIGNATURE)
		return false;
	out->algorithm = (enum note_algorithm)bytes.data[0];
	memcpy(out->key.bytes, bytes.data + 1, ED25519_KEY_SIZE);
	return note_key_id(out, id) && memcmp(id, said, sizeof(id)) == 0;
}

void note_sign(struct bytes text, struct bytes name, const struct ed25519_secret *secret, struct buf *out)
{
	struct note_key key = {name, NOTE_ED25519, *ed25519_public(secret)};
	struct ed25519_signature signature;
	char blob[ID_SIZE + ED25519_SIGNATURE_SIZE];

	if (!note_name_is_good(name) || text.size == 0 || text.data[text.size - 1] != '\n' ||
	    !note_key_id(&key, (uint8_t *)blob)) {
		out->failed = true;
		return;
	}
	ed25519_sign(secret, text, &signature);
	memcpy(blob + ID_SIZE, signature.bytes, ED25519_SIGNATURE_SIZE);
	buf_append_bytes(out, text);
	buf_append_char(out, '\n');
	buf_append(out, dash, DASH_SIZE);
	buf_append_bytes(out, name);
	buf_append_char(out, ' ');
	text_base64(out, (struct bytes){blob, sizeof(blob)});
	buf_append_char(out, '\n');
}

static bool malformed(struct err *err, const char *why)
{
	return err_set(err, 0, "not a signed note: %s", why);
}

static bool parse_signature(struct bytes line, struct note *note)
{
	struct note_signature *signature = &note->signatures[note->count];
	size_t before = note->decoded.size;

	if (line.size < DASH_SIZE || memcmp(line.data, dash, DASH_SIZE) != 0)
		return false;
	line.data += DASH_SIZE;
	line.size -= DASH_SIZE;
	if (!take_until(&line, ' ', &signature->name) || !note_name_is_good(signature->name) ||
	    !text_base64_parse(&note->decoded, line) || note->decoded.size - before <= ID_SIZE)
		return false;
	memcpy(signature->id, note->decoded.data + before, ID_SIZE);
	/* The buffer has its final size from the start: nothing in it moves. */
	signature->blob = (struct bytes){note->decoded.data + before + ID_SIZE, note->decoded.size - before - ID_SIZE};
	note->count++;
	return true;
}

static bool text_is_good(struct bytes bytes)
{
	for (size_t i = 0; i < bytes.size; i++)
		if ((unsigned char)bytes.data[i] < 0x20 && bytes.data[i] != '\n')
			return false;
	return text_is_utf8(bytes);
}

bool note_parse(struct bytes bytes, struct note *out, struct err *err)
{
	size_t split = 0;

	*out = (struct note){.decoded = {.limit = NOTE_SIZE_LIMIT}};
	if (bytes.size > NOTE_SIZE_LIMIT)
		return malformed(err, "too long");
	if (bytes.size == 0 || bytes.data[bytes.size - 1] != '\n' || !text_is_good(bytes))
		return malformed(err, "not lines of text");
	for (size_t i = bytes.size - 1; i > 0 && split == 0; i--)
		if (bytes.data[i] == '\n' && bytes.data[i - 1] == '\n')
			split = i;
	if (split == 0)
		return malformed(err, "no empty line before the signatures");
	out->text = (struct bytes){bytes.data, split};
	struct bytes rest = {bytes.data + split + 1, bytes.size - split - 1}, line;
	if (!buf_reserve(&out->decoded, rest.size))
		return err_set(err, 0, "not enough memory for a note");
	while (take_until(&rest, '\n', &line)) {
		if (out->count == NOTE_SIGNATURES_LIMIT)
			return malformed(err, "too many signatures");
		if (!parse_signature(line, out))
			return malformed(err, "a line that is no signature");
	}
	return out->count > 0 || malformed(err, "no signature");
}

void note_free(struct note *note)
{
	buf_free(&note->decoded);
}

/* What a cosigner signs is the time and the whole text (tlog-cosignature). */
static bool verify_cosignature(struct bytes text, struct bytes blob, const struct ed25519_key *key)
{
	CLEANUP_BUF struct buf message = {.limit = NOTE_SIZE_LIMIT + 64};
	struct ed25519_signature signature;
	uint64_t time = 0;

	if (blob.size != 8 + ED25519_SIGNATURE_SIZE)
		return false;
	for (size_t i = 0; i < 8; i++)
		time = time << 8 | (unsigned char)blob.data[i];
	memcpy(signature.bytes, blob.data + 8, ED25519_SIGNATURE_SIZE);
	buf_append_text(&message, "cosignature/v1\ntime ");
	text_decimal(&message, time);
	buf_append_char(&message, '\n');
	buf_append_bytes(&message, text);
	return !message.failed && ed25519_verify(key, buf_bytes(&message), &signature);
}

static bool verify_one(struct bytes text, struct bytes blob, const struct note_key *key)
{
	struct ed25519_signature signature;

	if (key->algorithm == NOTE_COSIGNATURE)
		return verify_cosignature(text, blob, &key->key);
	if (blob.size != ED25519_SIGNATURE_SIZE)
		return false;
	memcpy(signature.bytes, blob.data, ED25519_SIGNATURE_SIZE);
	return ed25519_verify(&key->key, text, &signature);
}

enum note_verdict note_verify(const struct note *note, const struct note_key *key)
{
	enum note_verdict verdict = NOTE_UNKNOWN;
	uint8_t id[ID_SIZE];

	if (!note_key_id(key, id))
		return NOTE_BAD;
	for (size_t i = 0; i < note->count; i++) {
		const struct note_signature *signature = &note->signatures[i];
		if (!bytes_equal(signature->name, key->name) || memcmp(signature->id, id, sizeof(id)) != 0)
			continue;
		/* A second one of the same key could be read as another's by somebody else. */
		if (verdict != NOTE_UNKNOWN || !verify_one(note->text, signature->blob, key))
			return NOTE_BAD;
		verdict = NOTE_GOOD;
	}
	return verdict;
}

void checkpoint_format(const struct checkpoint *checkpoint, struct buf *out)
{
	buf_append_bytes(out, checkpoint->origin);
	buf_append_char(out, '\n');
	text_decimal(out, checkpoint->size);
	buf_append_char(out, '\n');
	text_base64(out, digest_bytes(&checkpoint->root));
	buf_append_char(out, '\n');
	for (size_t i = 0; i < checkpoint->extension_count; i++) {
		buf_append_bytes(out, checkpoint->extensions[i]);
		buf_append_char(out, '\n');
	}
}

bool checkpoint_parse(struct bytes text, struct checkpoint *out, struct err *err)
{
	CLEANUP_BUF struct buf root = {.limit = 64};
	struct bytes line;

	*out = (struct checkpoint){.size = 0};
	if (!take_until(&text, '\n', &out->origin) || out->origin.size == 0)
		return err_set(err, 0, "not a checkpoint: no origin");
	if (!take_until(&text, '\n', &line) || !text_decimal_parse(line, &out->size))
		return err_set(err, 0, "not a checkpoint: no size");
	if (!take_until(&text, '\n', &line) || !text_base64_parse(&root, line) || root.size != DIGEST_SIZE)
		return err_set(err, 0, "not a checkpoint: no root");
	memcpy(out->root.bytes, root.data, DIGEST_SIZE);
	while (take_until(&text, '\n', &line)) {
		if (line.size == 0 || out->extension_count == CHECKPOINT_EXTENSIONS_LIMIT)
			return err_set(err, 0, "not a checkpoint: lines behind the root");
		out->extensions[out->extension_count++] = line;
	}
	return text.size == 0 || err_set(err, 0, "not a checkpoint: an unfinished line");
}

static const struct bytes tlog_proof_head = BYTES("c2sp.org/tlog-proof@v1"), tlog_proof_extra = BYTES("extra "),
			  tlog_proof_index = BYTES("index ");

void tlog_proof_format(const struct tlog_proof *proof, struct buf *out)
{
	buf_append_bytes(out, tlog_proof_head);
	buf_append_char(out, '\n');
	if (proof->has_extra) {
		buf_append_bytes(out, tlog_proof_extra);
		text_base64(out, buf_bytes(&proof->extra));
		buf_append_char(out, '\n');
	}
	buf_append_bytes(out, tlog_proof_index);
	text_decimal(out, proof->index);
	buf_append_char(out, '\n');
	for (unsigned i = 0; i < proof->proof.count; i++) {
		text_base64(out, digest_bytes(&proof->proof.steps[i]));
		buf_append_char(out, '\n');
	}
	buf_append_char(out, '\n');
	buf_append_bytes(out, proof->checkpoint);
}

/* What stands behind this word on the line. */
static bool take_word(struct bytes *line, struct bytes word)
{
	if (!bytes_start_with(*line, word))
		return false;
	line->data += word.size;
	line->size -= word.size;
	return true;
}

static bool parse_step(struct bytes line, struct merkle_proof *proof)
{
	CLEANUP_BUF struct buf step = {.limit = DIGEST_SIZE};

	if (proof->count == sizeof(proof->steps) / sizeof(proof->steps[0]) || !text_base64_parse(&step, line) ||
	    step.size != DIGEST_SIZE)
		return false;
	memcpy(proof->steps[proof->count++].bytes, step.data, DIGEST_SIZE);
	return true;
}

static bool parse_proof(struct bytes text, struct tlog_proof *out)
{
	struct bytes line;

	if (!take_until(&text, '\n', &line) || !bytes_equal(line, tlog_proof_head) || !take_until(&text, '\n', &line))
		return false;
	out->has_extra = take_word(&line, tlog_proof_extra);
	if (out->has_extra && (!text_base64_parse(&out->extra, line) || !take_until(&text, '\n', &line)))
		return false;
	if (!take_word(&line, tlog_proof_index) || !text_decimal_parse(line, &out->index))
		return false;
	do {
		if (!take_until(&text, '\n', &line) || (line.size > 0 && !parse_step(line, &out->proof)))
			return false;
	} while (line.size > 0);
	out->checkpoint = text;
	return text.size > 0;
}

bool tlog_proof_parse(struct bytes text, struct tlog_proof *out, struct err *err)
{
	*out = (struct tlog_proof){.extra = {.limit = TLOG_PROOF_SIZE_LIMIT}};
	return (text.size <= TLOG_PROOF_SIZE_LIMIT && parse_proof(text, out)) || err_set(err, 0, "not a tlog-proof");
}

void tlog_proof_free(struct tlog_proof *proof)
{
	buf_free(&proof->extra);
}
