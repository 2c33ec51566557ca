/*
 * The processes of a run as its records tell of them.
 */
#pragma once

#include "base/bytes.h"
#include "ledger/store.h"

struct tree_exec {
	uint64_t seq;         /* of its record */
	struct bytes image;   /* owned */
	struct bytes command; /* owned; shell-quoted and escaped */
	bool ok;
	char result[32]; /* escaped */
};

struct tree_process {
	uint64_t id, parent;
	int64_t pid;
	char lineage[16];        /* escaped */
	struct bytes exe;        /* owned */
	struct bytes status;     /* owned; "exit 0"; absent while it is not known to have ended */
	struct tree_exec *execs; /* owned */
	size_t exec_count;
	uint64_t effects, failed;
	enum record_class class;              /* of the weakest record about it */
	size_t first_child, last_child, next; /* index + 1; 0: none */
	bool has_parent;
};

struct tree {
	struct tree_process *items; /* owned */
	size_t count, capacity;
	size_t *places; /* owned; open addressing from id to index + 1 */
	size_t place_count;
};

bool tree_load(struct tree *tree, struct run *run, struct err *err);
void tree_free(struct tree *tree);
