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

/* webhookrx.message.escapes.MISLEADING: DEL and C1, ARABIC LETTER MARK, LRM and RLM, line ends and bidi controls. */
static inline bool misleads(uint32_t character)
{
    if (character < 0x2000)
        return (character >= 0x7F && character < 0xA0) || character == 0x061C;
    return character == 0x200E || character == 0x200F || (character >= 0x2028 && character <= 0x202E) ||
           (character >= 0x2066 && character <= 0x2069);
}

/* Return whether bytes are UTF-8 (RFC 3629) without DEL and without any of webhookrx.message.escapes.MISLEADING. */
bool is_plain_utf_8(const uint8_t *text, const uint8_t *end);

/* Return the first byte that can't stand unescaped in a string of JSON: a quote, a backslash, a C0 control; or end. */
const uint8_t *find_json_escape(const uint8_t *text, const uint8_t *end);

/*
 * Write a text with the escapes of a JSON string, as msgspec does: \" \\ \b \f \n \r \t, and \u00xx for other C0 controls.
 * `output` must have room for six bytes for each of the text. Return the end of what was written.
 */
uint8_t *write_json_escaped(const uint8_t *text, const uint8_t *end, uint8_t *output);

/* Return how many bytes that writes. */
size_t json_escaped_size(const uint8_t *text, const uint8_t *end);

/* Return the bytes of an argument, with their number in *size; NULL with an exception for anything else. */
const uint8_t *read_bytes(PyObject *argument, size_t *size);

/* json.c: JSON (RFC 8259) as compact text. */

/* MAX_BODY is MAX_JSON of webhookrx.intake.json_body, and MAX_NESTING at most MAX_DEPTH there. */
enum { MAX_BODY = 10 * 1024 * 1024, MAX_NESTING = 32, FEW_NAMES = 256 };

/* Return the hash of a name: those of names with the same seed are different, as good as always. */
uint64_t hash_name(const uint8_t *name, size_t size, uint64_t seed);

/*
 * A set of names is mask + 1 slots, a power of two, each 0 or a part of a hash. It may have a name that nobody has added,
 * as names can be made to: that only leaves a body to Python. *free_place becomes that of a new name, unless it is NULL.
 */
bool has_name(const uint32_t *slots, size_t mask, uint64_t hash, size_t *free_place);

/* Add a name; return whether it is new. */
bool add_name(uint32_t *slots, size_t mask, uint64_t hash);

/*
 * A scan of a body: what is not read yet, where the compact text of it goes, and a set of names. What is written is never
 * longer than what was read.
 */
typedef struct {
    const uint8_t *text, *end;
    uint8_t *output;
    size_t separators, objects, mask;
    uint32_t *slots, few[FEW_NAMES];
} Scan;

/* Go to the first byte that is not blank; return whether the body may be taken at all. end_scan() must follow. */
bool begin_scan(Scan *scan, const uint8_t *body, size_t size, uint8_t *output);
void end_scan(Scan *scan);

/* Return the next byte; NUL, which JSON never holds, at the end. */
static inline uint8_t peek(const Scan *scan) { return scan->text < scan->end ? *scan->text : 0; }

static inline void skip_blanks(Scan *scan)
{
    const uint8_t *text = scan->text;
    while (text < scan->end && (*text == ' ' || *text == '\n' || *text == '\r' || *text == '\t'))
        text++;
    scan->text = text;
}

static inline bool is_at_end(Scan *scan)
{
    skip_blanks(scan);
    return scan->text == scan->end;
}

/* Each of these reads what it names, with the blanks behind it, and returns false if Python must read the body. */
bool open_container(Scan *scan, uint8_t closing, bool *is_empty);
bool next_member(Scan *scan, uint8_t closing, bool *is_last);
bool read_name(Scan *scan, const uint8_t **name, size_t *size);

/* Write "name": as it is. */
void write_name(Scan *scan, const uint8_t *name, size_t size);

/* Read one value, and write it as compact text. The outermost is at depth 1. */
bool compact_value(Scan *scan, int depth);

/* The functions of the module. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_recorded_headers(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_compact_object(PyObject *module, PyObject *body);
PyObject *speedups_decode_text(PyObject *module, PyObject *body);
PyObject *speedups_escape_text(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_name_table(PyObject *module, PyObject *names);
PyObject *speedups_line(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
