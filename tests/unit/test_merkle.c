/*
 * The tree of RFC 6962: known answers, and every proof of small trees against a slow reading of the definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/merkle.h"
#include "base/text.h"

enum { MOST = 70 };

static struct digest leaves[MOST];
static struct hasher *hasher;

static bool give_leaf(void *context, uint64_t index, struct digest *out)
{
	(void)context;
	*out = leaves[index];
	return index < MOST;
}

static void expect_digest(const struct digest *digest, const char *digits)
{
	struct digest wanted;

	assert_true(text_hex_parse(bytes_of(digits), wanted.bytes, DIGEST_SIZE));
	assert_memory_equal(digest->bytes, wanted.bytes, DIGEST_SIZE);
}

/* MTH, word for word. */
static struct digest definition(size_t start, size_t end)
{
	struct digest out;
	char text[1 + 2 * DIGEST_SIZE] = {1};

	if (end - start == 1)
		return leaves[start];
	size_t left = 1;
	while (left * 2 < end - start)
		left *= 2;
	struct digest one = definition(start, start + left), other = definition(start + left, end);
	memcpy(text + 1, one.bytes, DIGEST_SIZE);
	memcpy(text + 1 + DIGEST_SIZE, other.bytes, DIGEST_SIZE);
	assert_true(digest_of((struct bytes){text, sizeof(text)}, &out));
	return out;
}

static void test_known(void **state)
{
	static const struct bytes records[] = {
	    BYTES(""),
	    BYTES("\x00"),
	    BYTES("\x10"),
	    BYTES("\x20\x21"),
	    BYTES("\x30\x31"),
	    BYTES("\x40\x41\x42\x43"),
	    BYTES("\x50\x51\x52\x53\x54\x55\x56\x57"),
	    BYTES("\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f")};
	static const char *const roots[] = {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
					    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
					    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
					    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
					    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
					    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
					    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
					    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
					    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
	struct merkle tree = {.size = 0};
	struct digest root, leaf;

	(void)state;
	for (size_t i = 0; i <= 8; i++) {
		assert_true(merkle_root(&tree, hasher, &root));
		expect_digest(&root, roots[i]);
		if (i < 8) {
			assert_true(merkle_leaf(hasher, records[i], &leaf));
			assert_true(merkle_append(&tree, hasher, &leaf));
		}
	}
	assert_true(merkle_leaf(hasher, BYTES("L123456"), &leaf));
	expect_digest(&leaf, "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56");
}

static void test_roots(void **state)
{
	struct merkle tree = {.size = 0};
	struct digest root;

	(void)state;
	for (size_t size = 1; size <= MOST; size++) {
		assert_true(merkle_append(&tree, hasher, &leaves[size - 1]));
		assert_true(merkle_root(&tree, hasher, &root));
		struct digest wanted = definition(0, size);
		assert_true(digest_equal(&root, &wanted));
	}
}

/* Whatever one bit of a proof or of what it is about is changed, it does not hold any more. */
static void refuse_changed(struct merkle_proof *proof, uint64_t index, uint64_t size, const struct digest *root)
{
	struct digest other = leaves[index];

	for (unsigned i = 0; i < proof->count; i++) {
		proof->steps[i].bytes[i % DIGEST_SIZE] ^= (uint8_t)(1 << (i % 8));
		assert_false(merkle_check_leaf(hasher, proof, index, size, &leaves[index], root));
		proof->steps[i].bytes[i % DIGEST_SIZE] ^= (uint8_t)(1 << (i % 8));
	}
	other.bytes[3] ^= 4;
	assert_false(merkle_check_leaf(hasher, proof, index, size, &other, root));
	for (uint64_t at = 0; at < size; at++)
		if (at != index)
			assert_false(merkle_check_leaf(hasher, proof, at, size, &leaves[index], root));
	proof->count++;
	proof->steps[proof->count - 1] = leaves[0];
	assert_false(merkle_check_leaf(hasher, proof, index, size, &leaves[index], root));
	proof->count--;
	if (proof->count > 0) {
		proof->count--;
		assert_false(merkle_check_leaf(hasher, proof, index, size, &leaves[index], root));
	}
}

static void test_leaves(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= MOST; size++) {
		struct digest root = definition(0, size);
		for (uint64_t index = 0; index < size; index++) {
			struct merkle_proof proof;
			assert_true(merkle_prove_leaf(hasher, give_leaf, NULL, index, size, &proof));
			assert_true(merkle_check_leaf(hasher, &proof, index, size, &leaves[index], &root));
			if (size < 20)
				refuse_changed(&proof, index, size, &root);
		}
		struct merkle_proof none;
		assert_false(merkle_prove_leaf(hasher, give_leaf, NULL, size, size, &none));
	}
}

static void test_growth(void **state)
{
	(void)state;
	for (uint64_t size = 1; size <= MOST; size++) {
		struct digest root = definition(0, size);
		for (uint64_t old = 1; old <= size; old++) {
			struct digest before = definition(0, old), wrong = before;
			struct merkle_proof proof;
			assert_true(merkle_prove_growth(hasher, give_leaf, NULL, old, size, &proof));
			assert_true(merkle_check_growth(hasher, &proof, old, size, &before, &root));
			wrong.bytes[0] ^= 1;
			assert_false(merkle_check_growth(hasher, &proof, old, size, &wrong, &root));
			assert_false(merkle_check_growth(hasher, &proof, old, size, &before, &wrong));
			for (unsigned i = 0; i < proof.count; i++) {
				proof.steps[i].bytes[31] ^= 0x80;
				assert_false(merkle_check_growth(hasher, &proof, old, size, &before, &root));
				proof.steps[i].bytes[31] ^= 0x80;
			}
		}
	}
}

static int begin(void **state)
{
	(void)state;
	hasher = hasher_new(NULL);
	for (size_t i = 0; i < MOST; i++) {
		char text[2] = {(char)i, 'x'};
		if (!merkle_leaf(hasher, (struct bytes){text, sizeof(text)}, &leaves[i]))
			return -1;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	hasher_free(hasher);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known),
	    cmocka_unit_test(test_roots),
	    cmocka_unit_test(test_leaves),
	    cmocka_unit_test(test_growth),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
