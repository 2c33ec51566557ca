/*
 * Private to this room: what takes a climb along "..".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "decode/path.h"

/*
 * The absolute path of a directory whose name exceeds what the kernel prints (PATH_MAX): its last names are looked up in
 * their parents one by one until the rest fits. Absent when that takes too long or a parent cannot be read.
 */
struct bytes deep_path(int directory, struct arena *arena);
