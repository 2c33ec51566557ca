#include "ledger/claim.h"

#include <string.h>

static const enum record_class of_claims[CLAIM_COUNT] = {
#define CLAIM(identifier, class, meaning) [CLAIM_##identifier] = CLASS_##class,
#include "claims.def"
#undef CLAIM
};

static const enum record_class of_hows[HOW_COUNT] = {
#define HOW(identifier, name, class, meaning) [HOW_##identifier] = CLASS_##class,
#include "hows.def"
#undef HOW
};

/* From the weakest to the strongest, as classes.def has them. */
static const enum record_class all[] = {
#define CLASS(identifier, name, meaning) CLASS_##identifier,
#include "classes.def"
#undef CLASS
};

enum { COUNT = sizeof(all) / sizeof(all[0]) };

enum record_class claim_weaker(enum record_class left, enum record_class right)
{
	return left < right ? left : right;
}

enum record_class claim_class(enum claim claim, enum record_class weakest)
{
	return claim_weaker(of_claims[claim], weakest);
}

enum record_class claim_effect_class(enum record_class recorded, uint32_t how)
{
	return claim_class(CLAIM_effect, claim_weaker(recorded, how < HOW_COUNT ? of_hows[how] : CLASS_telemetry));
}

enum record_class claim_class_named(const char *name)
{
	for (size_t i = 0; name && i < COUNT; i++)
		if (strcmp(record_class_name(all[i]), name) == 0)
			return all[i];
	return CLASS_telemetry;
}

/* The class whose name and a closing quote stand at `at`. */
static enum record_class class_at(const char *at, size_t size)
{
	for (size_t i = 0; i < COUNT; i++) {
		const char *name = record_class_name(all[i]);
		size_t length = strlen(name);
		if (size > length && memcmp(at, name, length) == 0 && at[length] == '"')
			return all[i];
	}
	return CLASS_telemetry;
}

enum record_class claim_class_recorded(struct bytes json)
{
	/* Inside a JSON string the quotes would be escaped: no name can look like the key. */
	static const char key[] = "\"class\":\"";
	enum record_class weakest = CLASS_telemetry;
	bool any = false;

	while (json.size >= sizeof(key)) {
		const char *at = memmem(json.data, json.size, key, sizeof(key) - 1);
		if (!at)
			break;
		at += sizeof(key) - 1;
		json = (struct bytes){at, json.size - (size_t)(at - json.data)};
		enum record_class found = class_at(json.data, json.size);
		weakest = any ? claim_weaker(weakest, found) : found;
		any = true;
	}
	return weakest;
}
