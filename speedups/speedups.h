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

/* DIRECT of webhookrx.http.resources: work on more bytes is done without the interpreter's lock, not in the reactor. */
enum { UNLOCKED_SIZE = 128 * 1024 };

/* Between the two, only objects are read that never change, and only those are written that nobody else knows yet. */
static inline PyThreadState *unlock(size_t size) { return size > UNLOCKED_SIZE ? PyEval_SaveThread() : NULL; }
static inline void lock(PyThreadState *state) { state == NULL ? (void)0 : PyEval_RestoreThread(state); }

/* A piece of text, in memory that something else owns. */
typedef struct {
    const uint8_t *start, *end;
} Span;

static inline size_t size_of(Span span) { return (size_t)(span.end - span.start); }

static inline Span span_of(const void *text) { return (Span){text, (const uint8_t *)text + strlen(text)}; }

static inline bool is_equal(Span span, Span other)
{
    return size_of(span) == size_of(other) && memcmp(span.start, other.start, size_of(other)) == 0;
}

/* Return the inside of an object that is bytes. */
static inline Span inside_of(PyObject *bytes)
{
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(bytes);
    return (Span){start, start + PyBytes_GET_SIZE(bytes)};
}

/* Write a text, and return the end of it. */
static inline uint8_t *put(uint8_t *output, Span text)
{
    memcpy(output, text.start, size_of(text));
    return output + size_of(text);
}

/* What a search stops at: C0; DEL; quotes and backslashes; bytes that may begin what misleads; all but ASCII. */
enum { CONTROL = 1, DELETE = 2, QUOTE = 4, LEAD = 8, HIGH = 16 };
enum { AT_JSON = CONTROL | QUOTE, AT_MISLEADING = DELETE | LEAD, BEYOND_ASCII = DELETE | HIGH };

static inline bool stops(uint8_t byte, int at)
{
    return (at & CONTROL && byte < 0x20) || (at & DELETE && byte == 0x7F) || (at & HIGH && byte >= 0x80) ||
           (at & QUOTE && (byte == '"' || byte == '\\')) ||
           (at & LEAD && (byte == 0xC2 || byte == 0xD8 || byte == 0xE2));
}

#if defined(__SSE2__)
static inline __m128i equal(__m128i bytes, int byte) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte)); }

/* Return which of 16 bytes stop, the first in the lowest bit. */
static inline unsigned stops_among(__m128i bytes, int at)
{
    __m128i found = at & HIGH ? bytes : _mm_setzero_si128(); /* of each byte, only the highest bit counts */
    if (at & CONTROL)
        found = _mm_or_si128(found, equal(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), 0x1F));
    if (at & DELETE)
        found = _mm_or_si128(found, equal(bytes, 0x7F));
    if (at & QUOTE)
        found = _mm_or_si128(found, _mm_or_si128(equal(bytes, '"'), equal(bytes, '\\')));
    if (at & LEAD)
        found = _mm_or_si128(found, _mm_or_si128(equal(bytes, 0xC2), equal(bytes, 0xD8)));
    if (at & LEAD)
        found = _mm_or_si128(found, equal(bytes, 0xE2));
    return (unsigned)_mm_movemask_epi8(found);
}
#endif

/* Return the first byte that stops, or end. What it stops at is constant where this is inlined. */
static inline const uint8_t *skip(const uint8_t *text, const uint8_t *end, int at)
{
#if defined(__SSE2__)
    for (; end - text >= 16; text += 16) {
        unsigned places = stops_among(_mm_loadu_si128((const __m128i *)text), at);
        if (places)
            return text + __builtin_ctz(places);
    }
#endif
    while (text < end && !stops(*text, at))
        text++;
    return text;
}

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
bool is_plain_utf_8(Span text);

/*
 * Write a text with the escapes of a JSON string, as msgspec does: \" \\ \b \f \n \r \t, and \u00xx for other C0.
 * `output` must have room for exactly what is written, which is json_escaped_size(). Return the end of that.
 */
uint8_t *write_json_escaped(Span text, uint8_t *output);
size_t json_escaped_size(Span text);

/* Read the first arguments, which must be bytes. Return false with an exception, also where not as many are given. */
bool read_arguments(PyObject *const *arguments, Py_ssize_t given, Py_ssize_t taken, Span *bytes, int bytes_count);

/* json.c: JSON (RFC 8259) as compact text. */

/* MAX_BODY is MAX_JSON of webhookrx.intake.json_body, and MAX_NESTING at most MAX_DEPTH there. */
enum { MAX_BODY = 10 * 1024 * 1024, MAX_NESTING = 32, FEW_NAMES = 256 };

/* Return the hash of a name: those of names with the same seed are different, as good as always. */
uint64_t hash_name(Span name, uint64_t seed);

/*
 * A set of names is mask + 1 slots, a power of two, each 0 or a part of a hash. It may have a name that nobody has
 * added, as names can be made to: that only leaves a body to Python.
 */
bool has_name(const uint32_t *slots, size_t mask, uint64_t hash);

/* Add a name; return whether it is new. */
bool add_name(uint32_t *slots, size_t mask, uint64_t hash);

/*
 * A scan of a body: what is not read yet, where the compact text of it goes, and a set of names. What is written is
 * never longer than what was read.
 */
typedef struct {
    const uint8_t *text, *end;
    uint8_t *output;
    size_t separators, objects, mask;
    uint32_t *slots, few[FEW_NAMES];
} Scan;

/* Go to the first byte that is not blank; return whether the body may be taken at all. end_scan() must follow. */
bool begin_scan(Scan *scan, Span body, uint8_t *output);
void end_scan(Scan *scan);

/* Return the next byte; NUL, which JSON never holds, at the end. */
static inline uint8_t peek(const Scan *scan) { return scan->text < scan->end ? *scan->text : 0; }

static inline void skip_blanks(Scan *scan)
{
    while (peek(scan) == ' ' || peek(scan) == '\n' || peek(scan) == '\r' || peek(scan) == '\t')
        scan->text++;
}

/* Each of these reads what it names, with the blanks behind it, and returns false if Python must read the body. */
bool open_container(Scan *scan, uint8_t closing, bool *is_empty);
bool next_member(Scan *scan, uint8_t closing, bool *is_last);
bool read_name(Scan *scan, Span *name);

/* Write "name": as it is. */
void write_name(Scan *scan, Span name);

/* Read one value, and write it as compact text. The outermost is at depth 1. Blanks are left only behind a scalar. */
bool compact_value(Scan *scan, int depth);

/* The functions of the module. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_compact_object(PyObject *module, PyObject *body);
PyObject *speedups_escape_text(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *speedups_name_table(PyObject *module, PyObject *names);
PyObject *speedups_line(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
