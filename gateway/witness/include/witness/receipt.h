/*
 * Witness envelopes in the form cuecrux.mediation.witness.v1, for the exchanges whose dialect that form knows. Pure: the records
 * are made here, whoever holds the key signs them, and the envelope is put together of both.
 *
 * A record is signed as compact JSON with the keys of each object in order of their bytes. It holds no prompt and no answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/ed25519.h"
#include "witness/witness.h"

#define RECEIPT_SCHEMA "cuecrux.mediation.witness.v1"
enum { RECEIPT_NONCE_SIZE = 16, RECEIPT_ID_LIMIT = 256, RECEIPT_KID_SIZE = 21 /* "wit_", 16 digits and a NUL */ };

/* What a record has that the exchange does not say. */
struct receipt_stamp {
	const char *receipt_id; /* ASCII */
	uint8_t nonce[RECEIPT_NONCE_SIZE];
	int64_t
	    created_ns; /* CLOCK_REALTIME; 60 seconds early and 600 seconds late are accepted where it is taken in */
};

/* Does the form know this exchange's dialect? Gemini's it does not. */
bool receipt_knows(const struct exchange *exchange);
/* The record of the request. False when the form does not know it, or `out` failed. */
bool receipt_request(const struct exchange *exchange, const struct receipt_stamp *stamp, struct buf *out);
/* The record of the answer; `request_receipt_id` is that of the request's. */
bool receipt_response(const struct exchange *exchange, const struct receipt_stamp *stamp,
		      const char *request_receipt_id, struct buf *out);
/* Of what was passed on and not read. It has neither nonce nor id. */
bool receipt_unwitnessed(const struct exchange *exchange, const struct receipt_stamp *stamp, struct buf *out);

/* The name of a witness's key. False when it cannot be hashed. */
bool receipt_kid(const struct ed25519_key *key, char out[RECEIPT_KID_SIZE]);
/* A record with its signature. False when `out` failed. */
bool receipt_envelope(struct bytes record, const struct ed25519_key *key, const struct ed25519_signature *signature,
		      struct buf *out);
