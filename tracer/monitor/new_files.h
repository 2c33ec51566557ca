/*
 * Private to this room: when a file of the tree came into being, by its inode. A file system gives the number of a file that
 * is gone to the next one, and birth times are too coarse to tell two that follow within milliseconds.
 */
#pragma once

#include <stdint.h>

#include "ledger/effect.h"

/* Inodes share places: what is asked about one may be the answer of another, and then is later, never earlier. */
enum { NEW_FILES_PLACES = 4096 };

struct new_files {
	uint64_t now;   /* counts what came into being */
	uint64_t floor; /* when one did of which the inode is not known: it may be any */
	uint64_t last[NEW_FILES_PLACES];
};

/* Take notice of an effect that makes a file, or may have. */
void new_files_note(struct new_files *files, const struct effect *effect);
/* Since when this inode may be the file that it is. */
uint64_t new_files_since(const struct new_files *files, const struct effect_object *object);
