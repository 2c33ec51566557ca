/*
 * Encodings as text: UTF-8 checking, decimal numbers, Base64, Crockford Base32, hexadecimal, and the one terminal escaper.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* True when the bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF). */
bool text_is_utf8(struct bytes bytes);

/* Decode the code point that the bytes start with. Returns how many bytes it takes, or 0 when it is not well-formed. */
size_t text_utf8_decode(struct bytes bytes, uint32_t *code_point);

/* How many decimal digits a number has: 1 to 20. */
unsigned text_decimal_size(uint64_t value);

/* Write the number with this many digits, zeros first, and no NUL; a longer number loses its first digits. Returns where
   the text ends. */
char *text_put_decimal(char *to, uint64_t value, unsigned digits);

/* Append a decimal number. */
void text_decimal(struct buf *out, uint64_t value);

/* Append standard Base64 with padding (RFC 4648 section 4). */
void text_base64(struct buf *out, struct bytes bytes);

/* Append lower-case hexadecimal. */
void text_hex(struct buf *out, struct bytes bytes);

/* Exactly `size` bytes as lower-case hexadecimal, and nothing else. */
bool text_hex_parse(struct bytes text, void *out, size_t size);
/*
 * Append what padded standard Base64 stands for. Strict: one form of each value (unused bits are zero, padding complete,
 * no other character). False without anything appended when it is not that.
 */
bool text_base64_parse(struct buf *out, struct bytes text);
/* A decimal number in its one form: no sign, no zero in front. */
bool text_decimal_parse(struct bytes text, uint64_t *value);
/* 128 bits as 26 characters of Crockford Base32, most significant first, NUL-terminated. */
void text_crockford128(const uint8_t value[16], char out[27]);
/* One character as a reader may type it (lower case; O as 0, I and L as 1) in canonical form, or 0 when it is none. */
char text_crockford_canonical(char c);

/*
 * Append bytes as they may appear on a terminal: control characters, invalid UTF-8, bidirectional controls, zero-width
 * and other invisible characters, and line separators are shown as \xHH, \n, \t or \u{HHHH}; a backslash as \\.
 * Nothing of the agent reaches a terminal in any other way.
 */
void text_for_terminal(struct buf *out, struct bytes bytes);

/*
 * The same care, quoted so that a POSIX shell would read exactly these bytes as one word: bare, '...', or $'...' where
 * escapes are needed. Those are \n, \t and three-digit octal bytes, the only forms that all shells with $'...' agree on.
 */
void text_shell_word(struct buf *out, struct bytes bytes);

/* Terminal columns that the escaped text would take (wide characters count two), for aligning tables. */
size_t text_width(struct bytes escaped);
