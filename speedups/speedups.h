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

/* Between the two, only objects are read that never change, and only those are written that nobody else knows yet. */
static inline PyThreadState *unlock(size_t size) { return size > UNLOCKED_SIZE ? PyEval_SaveThread() : NULL; }
static inline void lock(PyThreadState *state) { state == NULL ? (void)0 : PyEval_RestoreThread(state); }

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

/* json.c: JSON (RFC 8259) as compact text. */

enum { MAX_NESTING = 32, FEW_NAMES = 256 };

/* A set of hashes, none of them 0. Two names with one hash count as the same: that only leaves a body to Python. */
typedef struct {
    uint64_t *slots;
    size_t mask, count;
    uint64_t few[FEW_NAMES];
} NameSet;

/* Return the hash of a name, such that it is that name's alone among those of one seed, as good as always. */
uint64_t hash_name(const uint8_t *name, size_t size, uint64_t seed);

/* Add a hash; return whether it is new, and there is room. */
bool add_name(NameSet *names, uint64_t hash);

void free_names(NameSet *names);

/*
 * A scan of a body: what is not read yet, and where the compact text of it goes. What is written is never longer than
 * what was read. `growth` counts the bytes that what was read takes more as the inside of a string of JSON.
 */
typedef struct {
    const uint8_t *text, *end;
    uint8_t *output;
    size_t growth, separators;
    uint32_t objects;
    NameSet names;
} Scan;

/* Begin at the first byte that is not blank; return whether the body may be taken at all. free_names() must follow. */
bool begin_scan(Scan *scan, const uint8_t *body, size_t size, uint8_t *output);

/* Return the next byte; NUL, which JSON never holds, at the end. */
static inline uint8_t peek(const Scan *scan) { return scan->text < scan->end ? *scan->text : 0; }

static inline void skip_blanks(Scan *scan)
{
    for (; scan->text < scan->end && *scan->text <= ' '; scan->text++) {
        if (*scan->text == '\n' || *scan->text == '\r' || *scan->text == '\t')
            scan->growth++;
        else if (*scan->text != ' ')
            return;
    }
}

/* Each of these reads what it names, with the blanks behind it, and returns false if Python must read the body. */
bool open_container(Scan *scan, uint8_t closing, bool *is_empty);
bool next_member(Scan *scan, uint8_t closing, bool *is_last);
bool read_name(Scan *scan, const uint8_t **name, size_t *size);

/* Read one value, and write it as compact text. The outermost is at depth 1. */
bool compact_value(Scan *scan, int depth);

/* The functions of the module. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_compact_object(PyObject *module, PyObject *body);
PyObject *speedups_decode_text(PyObject *module, PyObject *body);
PyObject *speedups_escape_text(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_text_line(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
