/*
 * The compiled path: what a usual request costs most, in C.
 *
 * Each function takes what is usual and returns None for anything else; then the Python path decides. So what is taken
 * here must be a subset of what Python takes, with the same result. Nothing here keeps anything of a request.
 *
 * Every read is bounded by an `end` that is passed along, not by the NUL behind a bytes object.
 */
#ifndef WEBHOOKRX_SPEEDUPS_H
#define WEBHOOKRX_SPEEDUPS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Bytes from which on work is done without the interpreter's lock; taking it again costs about a microsecond. */
enum { UNLOCKED_SIZE = 64 * 1024 };

/* text.c: UTF-8, and texts as strings of JSON. */

/* Return whether bytes are UTF-8 (RFC 3629) without DEL and without any of webhookrx.message.escapes.MISLEADING. */
bool is_plain_utf_8(const uint8_t *text, const uint8_t *end);

/* Return the first byte that can't stand unescaped in a string of JSON: a quote, a backslash, a C0 control; or end. */
const uint8_t *find_json_escape(const uint8_t *text, const uint8_t *end);

/*
 * Write a text with the escapes of a JSON string, as msgspec does: \" \\ \b \f \n \r \t, and \u00xx for other C0 controls.
 * `output` must have room for six bytes for each of the text. Return the end of what was written.
 */
uint8_t *write_json_escaped(const uint8_t *text, const uint8_t *end, uint8_t *output);

/* The functions of the module. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_text_line(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
