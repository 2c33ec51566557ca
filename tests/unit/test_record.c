#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <jansson.h>

#include "ledger/record.h"

/* Seal and parse: every record must be valid JSON with its keys in order. */
static json_t *seal(const struct record_head *head, const struct buf *body, uint64_t seq)
{
	CLEANUP_BUF struct buf sealed = {.limit = 1 << 20};
	json_error_t error;
	assert_true(record_seal(&sealed, head, buf_bytes(body), seq));
	assert_true(sealed.size <= RECORD_SIZE_LIMIT);
	json_t *json = json_loadb(sealed.data, sealed.size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
	assert_non_null(json);
	assert_int_equal(json_integer_value(json_object_get(json, "seq")), seq);
	char *sorted = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
	assert_int_equal(strlen(sorted), sealed.size);
	assert_memory_equal(sorted, sealed.data, sealed.size);
	free(sorted);
	return json;
}

static const char *text_at(const json_t *json, const char *outer, const char *key)
{
	return json_string_value(json_object_get(outer ? json_object_get(json, outer) : json, key));
}

static void test_small_effect(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct effect effect = {
	    .kind = EFFECT_file_create,
	    .syscall = "openat",
	    .how = HOW_verified,
	    .stamp = {.mono_ns = 5, .realtime_ns = 1000000001, .class = CLASS_mediated},
	    .process = {7, 4127, 4128, BYTES("/usr/bin/node")},
	    .object = {.path = BYTES("/a\n\"b"),
		       .has_inode = true,
		       .dev_major = 8,
		       .dev_minor = 1,
		       .ino = UINT64_MAX,
		       .type = S_IFREG},
	    .flags = {"O_WRONLY", "O_CREAT"},
	    .flag_count = 2,
	    .has_flags = true,
	    .flags_rest = 0x40,
	    .has_mode = true,
	    .mode = 0644,
	    .result = {.state = RESULT_FAILED, .error = ENOENT},
	};
	assert_true(record_effect(&body, &head, &effect, NULL));
	assert_int_equal(head.pid, 4127);
	assert_int_equal(head.kind, EFFECT_file_create);
	json_t *json = seal(&head, &body, 12);
	assert_string_equal(text_at(json, NULL, "schema"), "assure.effect/1");
	assert_string_equal(text_at(json, NULL, "path"), "/a\n\"b");
	assert_string_equal(text_at(json, NULL, "dev"), "8:1");
	assert_string_equal(text_at(json, NULL, "ino"), "18446744073709551615");
	assert_string_equal(text_at(json, NULL, "mode"), "0644");
	assert_string_equal(text_at(json, NULL, "type"), "file");
	assert_string_equal(text_at(json, NULL, "time"), "1970-01-01T00:00:01.000000001Z");
	assert_string_equal(text_at(json, "result", "errno"), "ENOENT");
	assert_string_equal(json_string_value(json_array_get(json_object_get(json, "flags"), 2)), "0x40");
	assert_null(json_object_get(json, "argv"));
	assert_null(json_object_get(json, "to"));
	json_decref(json);
}

static void test_foreign_bytes(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct bytes argv[] = {BYTES("a"), BYTES("\xff\xfe"), BYTES_NONE};
	struct effect effect = {
	    .kind = EFFECT_proc_exec,
	    .object = {.path = BYTES("/\xff"), .as_given = BYTES("x\xc3(")},
	    .has_argv = true,
	    .argv = argv,
	    .argv_count = 3,
	    .to = {.path = BYTES("\x80")},
	};
	effect.values[0] = (struct effect_value){.name = "zeta", .type = VALUE_INT, .number = -3};
	effect.values[1] = (struct effect_value){.name = "alpha", .type = VALUE_BYTES, .bytes = BYTES("\xfe")};
	effect.values[2] = (struct effect_value){.name = "zeta", .type = VALUE_INT, .number = 4};
	effect.value_count = 3;
	assert_true(record_effect(&body, &head, &effect, NULL));
	json_t *json = seal(&head, &body, 0);
	assert_string_equal(text_at(json, NULL, "path_b64"), "L/8=");
	assert_null(json_object_get(json, "path"));
	assert_string_equal(text_at(json, "to", "path_b64"), "gA==");
	assert_string_equal(text_at(json, "args", "alpha_b64"), "/g==");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "args"), "zeta")), -3);
	json_t *list = json_object_get(json, "argv");
	assert_int_equal(json_array_size(list), 3);
	assert_string_equal(text_at(json_array_get(list, 1), NULL, "b64"), "//4=");
	assert_string_equal(json_string_value(json_array_get(list, 2)), "");
	json_decref(json);
}

static void test_signal_and_status(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct effect effect = {.kind = EFFECT_proc_exit,
				.has_status = true,
				.status_code = -1,
				.status_signal = SIGSEGV,
				.status_core = true};
	assert_true(record_effect(&body, &head, &effect, NULL));
	json_t *json = seal(&head, &body, 1);
	assert_string_equal(text_at(json, "status", "signal"), "SIGSEGV");
	assert_true(json_is_true(json_object_get(json_object_get(json, "status"), "core")));
	assert_null(json_object_get(json, "syscall"));
	json_decref(json);
}

/* A long command line is cut, and the record says so: it is never left out. */
static void test_cut_argv(void **state)
{
	(void)state;
	enum { COUNT = 9000 };
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct bytes *argv = calloc(COUNT, sizeof(*argv));
	for (size_t i = 0; i < COUNT; i++)
		argv[i] = BYTES("an argument");
	struct effect effect = {.kind = EFFECT_proc_exec, .has_argv = true, .argv = argv, .argv_count = COUNT};
	effect.image.present = effect.image.has_argv = true;
	effect.image.argv = argv;
	effect.image.argv_count = COUNT;
	assert_true(record_effect(&body, &head, &effect, NULL));
	json_t *json = seal(&head, &body, UINT32_MAX);
	assert_int_equal(json_integer_value(json_object_get(json, "argv_total")), COUNT);
	assert_true(json_array_size(json_object_get(json, "argv")) > 100);
	json_t *image = json_object_get(json, "image");
	assert_int_equal(json_integer_value(json_object_get(image, "argv_total")), COUNT);
	assert_true(json_array_size(json_object_get(image, "argv")) > 100);
	json_t *cut = json_object_get(json_object_get(json, "args"), "cut");
	assert_int_equal(json_array_size(cut), 1);
	assert_string_equal(json_string_value(json_array_get(cut, 0)), "argv");
	json_decref(json);
	free(argv);
}

/* The worst that fits into the types: control characters in everything. */
static void test_cut_everything(void **state)
{
	(void)state;
	enum { SIZE = 100000 };
	CLEANUP_BUF struct buf body = {.limit = 1 << 24};
	struct record_head head;
	char *junk = malloc(SIZE);
	memset(junk, 1, SIZE);
	struct bytes all = {junk, SIZE}, items[20];
	for (size_t i = 0; i < 20; i++)
		items[i] = all;
	struct effect_object object = {.path = all, .host_path = all, .as_given = all, .has_inode = true};
	struct effect_peer peer = {
	    .present = true, .family = all, .address = all, .path = all, .protocol = all, .object = object};
	struct effect effect = {
	    .kind = EFFECT_net_connect,
	    .object = object,
	    .to = object,
	    .to_text = all,
	    .peer = peer,
	    .local = peer,
	    .target = {.present = true, .executable = all},
	    .has_argv = true,
	    .argv = items,
	    .argv_count = 20,
	    .cwd = all,
	    .image = {.present = true,
		      .object = object,
		      .sha256 = all,
		      .interpreters = items,
		      .interpreter_count = 20,
		      .has_argv = true,
		      .argv = items,
		      .argv_count = 20},
	    .delegated = all,
	    .note = all,
	    .process = {.executable = all},
	};
	for (size_t i = 0; i < EFFECT_VALUE_LIMIT; i++) {
		static const char names[EFFECT_VALUE_LIMIT][2] = {"a", "b", "c", "d", "e", "f", "g", "h",
								  "i", "j", "k", "l", "m", "n", "o", "p",
								  "q", "r", "s", "t", "u", "v", "w", "x"};
		effect.values[i] = (struct effect_value){.name = names[i], .type = VALUE_LIST};
		effect.values[i].list.items = items;
		effect.values[i].list.count = 20;
	}
	effect.value_count = EFFECT_VALUE_LIMIT;
	assert_true(record_effect(&body, &head, &effect, NULL));
	json_t *json = seal(&head, &body, 1);
	json_t *cut = json_object_get(json_object_get(json, "args"), "cut");
	assert_int_equal(json_array_size(cut), 3);
	json_decref(json);
	free(junk);
}

static void test_other_records(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct record_process process = {.id = 2,
					 .parent = 1,
					 .pid = 10,
					 .lineage = LINEAGE_birth,
					 .executable = BYTES("/bin/\xff"),
					 .start_ticks = UINT64_MAX};
	assert_true(record_process(&body, &head, &process));
	json_decref(seal(&head, &body, 1));
	buf_reset(&body);
	struct record_gap gap = {.code = GAP_memory, .count = 4, .pid = 3, .syscall = "openat", .detail = BYTES("x")};
	assert_true(record_gap(&body, &head, &gap));
	json_decref(seal(&head, &body, 2));
	buf_reset(&body);
	enum { READS = 3000 };
	struct record_reads_item *items = calloc(READS, sizeof(*items));
	for (size_t i = 0; i < READS; i++)
		items[i] = (struct record_reads_item){BYTES("/usr/lib/some/file.so"), 8, 1, i, 2};
	struct record_reads reads = {.process = 4, .pid = 9, .items = items, .count = READS, .total_files = READS};
	assert_true(record_reads(&body, &head, &reads));
	json_t *json = seal(&head, &body, 3);
	assert_int_equal(json_array_size(json_object_get(json, "items")) +
			     (size_t)json_integer_value(json_object_get(json, "items_cut")),
			 READS);
	json_decref(json);
	free(items);
}

static void test_run_records(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf body = {.limit = 1 << 20};
	struct record_head head;
	struct bytes argv[] = {BYTES("./agent"), BYTES("fix it")};
	struct record_descriptor descriptors[2000];
	for (int i = 0; i < 2000; i++)
		descriptors[i] =
		    (struct record_descriptor){.fd = i, .path = BYTES("/dev/pts/1"), .access = BYTES("rw")};
	const struct record_probe found[] = {
	    {.id = BYTES("yama"), .state = BYTES("ok"), .detail = BYTES("not there")},
	    {.id = BYTES("cgroups"), .state = BYTES("missing"), .follows = BYTES("less")},
	};
	struct record_run_start start = {.run = BYTES("0123"),
					 .probes = found,
					 .probe_count = 2,
					 .argv = argv,
					 .argv_count = 2,
					 .cwd = BYTES("/home/a"),
					 .host = BYTES("h"),
					 .kernel = BYTES("6.1"),
					 .lens = BYTES("reads"),
					 .descriptors = descriptors,
					 .descriptor_count = 2000};
	assert_true(record_run_start(&body, &head, &start, NULL));
	json_t *json = seal(&head, &body, 0);
	assert_true(json_integer_value(json_object_get(json, "descriptors_cut")) > 0);
	assert_true(json_is_array(json_object_get(json, "environment_added")));
	assert_int_equal(json_array_size(json_object_get(json, "environment_added")), 0);
	assert_true(json_is_array(json_object_get(json, "flags_added")));
	json_t *probes = json_object_get(json, "probes");
	assert_int_equal(json_array_size(probes), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(probes, 0), "id")), "yama");
	assert_null(json_object_get(json_array_get(probes, 0), "follows"));
	assert_string_equal(json_string_value(json_object_get(json_array_get(probes, 1), "follows")), "less");
	json_decref(json);
	buf_reset(&body);
	struct record_run_end end = {.complete = true, .wait_status = 9, .effects = 3};
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++)
		end.by_kind[i] = i + 1;
	assert_true(record_run_end(&body, &head, &end));
	json = seal(&head, &body, 1);
	assert_string_equal(text_at(json, "status", "signal"), "SIGKILL");
	assert_int_equal(json_object_size(json_object_get(json, "by_kind")), EFFECT_KIND_COUNT);
	json_decref(json);
}

/* The head comes from another process. */
static void test_seal_refuses(void **state)
{
	(void)state;
	CLEANUP_BUF struct buf out = {.limit = 1 << 20};
	struct record_head head = {.seq_at = 7};
	assert_true(record_seal(&out, &head, BYTES("{\"a\":1,\"z\":2}"), 1));
	assert_string_equal(out.data, "{\"a\":1,\"seq\":1,\"z\":2}");
	for (uint32_t at = 0; at < 40; at++) {
		head.seq_at = at;
		if (at != 7)
			assert_false(record_seal(&out, &head, BYTES("{\"a\":1,\"z\":2}"), 1));
	}
	head.seq_at = UINT32_MAX;
	assert_false(record_seal(&out, &head, BYTES_NONE, 1));
	assert_false(record_seal(&out, &head, BYTES("{\"a\":1,\"z\":2}"), 1));
}

static void test_names(void **state)
{
	(void)state;
	enum effect_kind kind;
	for (unsigned i = 0; i < EFFECT_KIND_COUNT; i++) {
		assert_true(effect_kind_find(effect_kind_name((enum effect_kind)i), &kind));
		assert_int_equal(kind, i);
	}
	assert_false(effect_kind_find("file", &kind));
	assert_string_equal(record_type_name(RECORD_effect), "assure.effect/1");
	assert_int_equal(effect_kind_severity(EFFECT_proc_trace), SEVERITY_high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_small_effect),
	    cmocka_unit_test(test_foreign_bytes),
	    cmocka_unit_test(test_signal_and_status),
	    cmocka_unit_test(test_cut_argv),
	    cmocka_unit_test(test_cut_everything),
	    cmocka_unit_test(test_other_records),
	    cmocka_unit_test(test_run_records),
	    cmocka_unit_test(test_seal_refuses),
	    cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
