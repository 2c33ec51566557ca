#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ledger/claim.h"

/* From the weakest to the strongest: what everything here rests on. */
static void test_order(void **state)
{
	(void)state;
	assert_true(CLASS_telemetry < CLASS_verifiable && CLASS_verifiable < CLASS_mediated &&
		    CLASS_mediated < CLASS_external);
	assert_int_equal(claim_weaker(CLASS_mediated, CLASS_verifiable), CLASS_verifiable);
	assert_int_equal(claim_weaker(CLASS_telemetry, CLASS_external), CLASS_telemetry);
	assert_int_equal(claim_weaker(CLASS_mediated, CLASS_mediated), CLASS_mediated);
}

/* Never more than the weakest input, never more than the table; and no claim of this build is external. */
static void test_minimum(void **state)
{
	(void)state;
	for (enum claim claim = 0; claim < CLAIM_COUNT; claim++) {
		for (enum record_class class = CLASS_telemetry; class <= CLASS_external; class ++) {
			assert_true(claim_class(claim, class) <= class);
			assert_true(claim_class(claim, class) <= claim_class(claim, CLASS_external));
		}
		assert_true(claim_class(claim, CLASS_external) < CLASS_external);
		assert_int_equal(claim_class(claim, CLASS_telemetry), CLASS_telemetry);
	}
	/* A run of root, and one of a user: what it did, and that its records are those. */
	assert_int_equal(claim_class(CLAIM_count, CLASS_verifiable), CLASS_verifiable);
	assert_int_equal(claim_class(CLAIM_count, CLASS_mediated), CLASS_mediated);
	assert_int_equal(claim_class(CLAIM_seal, CLASS_mediated), CLASS_verifiable);
	assert_int_equal(claim_class(CLAIM_log, CLASS_external), CLASS_verifiable);
}

static void test_effects(void **state)
{
	(void)state;
	assert_int_equal(claim_effect_class(CLASS_mediated, HOW_performed), CLASS_mediated);
	assert_int_equal(claim_effect_class(CLASS_mediated, HOW_verified), CLASS_mediated);
	assert_int_equal(claim_effect_class(CLASS_mediated, HOW_observed), CLASS_mediated);
	assert_int_equal(claim_effect_class(CLASS_external, HOW_performed), CLASS_mediated);
	assert_int_equal(claim_effect_class(CLASS_verifiable, HOW_performed), CLASS_verifiable);
	assert_int_equal(claim_effect_class(CLASS_mediated, HOW_declared), CLASS_telemetry);
	assert_int_equal(claim_effect_class(CLASS_mediated, HOW_COUNT), CLASS_telemetry);
	assert_int_equal(claim_effect_class(CLASS_mediated, UINT32_MAX), CLASS_telemetry);
}

static void test_names(void **state)
{
	(void)state;
	assert_int_equal(claim_class_named("mediated"), CLASS_mediated);
	assert_int_equal(claim_class_named("verifiable"), CLASS_verifiable);
	assert_int_equal(claim_class_named("certain"), CLASS_telemetry);
	assert_int_equal(claim_class_named(""), CLASS_telemetry);
	assert_int_equal(claim_class_named(NULL), CLASS_telemetry);
}

static void test_recorded(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		enum record_class class;
	} cases[] = {
	    {"{\"class\":\"mediated\",\"kind\":\"file.read\"}", CLASS_mediated},
	    {"{\"argv\":[\"x\"],\"class\":\"verifiable\"}", CLASS_verifiable},
	    {"{\"class\":\"external\"}", CLASS_external},
	    {"{\"class\":\"media\"}", CLASS_telemetry},
	    {"{\"class\":\"mediated-not\"}", CLASS_telemetry},
	    {"{\"class\":\"med", CLASS_telemetry},
	    {"{\"class\":\"mediated", CLASS_telemetry},
	    {"{\"class\":\"", CLASS_telemetry},
	    {"{}", CLASS_telemetry},
	    {"", CLASS_telemetry},
	    /* what the agent wrote cannot pass for it: */
	    {"{\"argv\":[\"\\\"class\\\":\\\"mediated\\\"\"]}", CLASS_telemetry},
	    {"{\"argv\":[\"\\\"class\\\":\\\"mediated\\\"\"],\"class\":\"verifiable\"}", CLASS_verifiable},
	    /* of two the weaker: */
	    {"{\"args\":{\"class\":\"idle\"},\"class\":\"mediated\"}", CLASS_telemetry},
	    {"{\"a\":{\"class\":\"mediated\"},\"class\":\"verifiable\"}", CLASS_verifiable},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(claim_class_recorded(bytes_of(cases[i].json)), cases[i].class);
	assert_int_equal(claim_class_recorded(BYTES_NONE), CLASS_telemetry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order), cmocka_unit_test(test_minimum),  cmocka_unit_test(test_effects),
	    cmocka_unit_test(test_names), cmocka_unit_test(test_recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
