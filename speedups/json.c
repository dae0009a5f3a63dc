/* JSON (RFC 8259) as compact text: what webhookrx.intake.json_body reads and webhookrx.message.escapes writes again. */
#include "speedups.h"

/* Limits of webhookrx.intake.json_body, and of a set of names: enough slots for all names that there may be. */
enum { MAX_SEPARATORS = 100000, MAX_DIGITS = 64, FEW_INTEGERS = 4 * 1024, MOST_SLOTS = 256 * 1024, MOST_TRIES = 32 };

/* -- names that may not come twice --------------------------------------------------------------------------------- */

uint64_t hash_name(Span name, uint64_t seed)
{
    static const uint64_t odd = 0x9E3779B97F4A7C15u; /* 2^64 divided by the golden ratio: no product loses a bit */
    size_t size = size_of(name);
    uint64_t hash = (seed ^ size) * odd;
    for (size_t place = 0; place < size; place += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, name.start + place, size - place < sizeof word ? size - place : sizeof word);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    hash *= odd; /* the last word has reached the upper half only once */
    return hash ^ hash >> 29;
}

/* The part of a hash that is kept; odd, so that as a step it comes to all slots. */
static inline uint32_t mark_of(uint64_t hash) { return (uint32_t)(hash >> 32) | 1; }

/* Return the place of a name, or where it may be added: that slot is 0. */
static inline size_t place_of(const uint32_t *slots, size_t mask, uint64_t hash)
{
    size_t place = (size_t)hash & mask;
    for (int tries = 0; tries < MOST_TRIES && slots[place] && slots[place] != mark_of(hash); tries++)
        place = (place + mark_of(hash)) & mask;
    return place;
}

bool has_name(const uint32_t *slots, size_t mask, uint64_t hash) { return slots[place_of(slots, mask, hash)] != 0; }

bool add_name(uint32_t *slots, size_t mask, uint64_t hash)
{
    uint32_t *slot = slots + place_of(slots, mask, hash);
    if (*slot)
        return false;
    *slot = mark_of(hash);
    return true;
}

/* -- a scan of a body ---------------------------------------------------------------------------------------------- */

static inline bool is_digit(uint8_t byte) { return byte >= '0' && byte <= '9'; }

/* Return whether more than MAX_DIGITS digits stand in a row anywhere, be it within a string. */
static bool has_long_digits(const uint8_t *text, size_t size)
{
    /* Such a row has a byte at a multiple of MAX_DIGITS. */
    for (size_t probe = 0; probe < size; probe += MAX_DIGITS) {
        size_t first = probe, end = probe;
        while (end < size && end - probe <= MAX_DIGITS && is_digit(text[end]))
            end++;
        while (end > probe && first && end - first <= MAX_DIGITS && is_digit(text[first - 1]))
            first--;
        if (end - first > MAX_DIGITS)
            return true;
    }
    return false;
}

bool begin_scan(Scan *scan, Span body, uint8_t *output)
{
    size_t size = size_of(body);
    *scan = (Scan){.text = body.start, .end = body.end, .output = output, .mask = FEW_NAMES - 1};
    scan->slots = scan->few;
    if (size > MAX_BODY || !is_plain_utf_8(body) || (size > FEW_INTEGERS && has_long_digits(body.start, size)))
        return false;
    while (scan->mask < size / 6 && scan->mask < MOST_SLOTS - 1) /* each name takes six bytes or more, as in "a":1, */
        scan->mask = 2 * scan->mask + 1;
    if (scan->mask >= FEW_NAMES)
        scan->slots = PyMem_RawCalloc(scan->mask + 1, sizeof *scan->slots);
    skip_blanks(scan);
    return scan->slots != NULL;
}

void end_scan(Scan *scan)
{
    if (scan->slots != scan->few)
        PyMem_RawFree(scan->slots);
}

/* Go behind a byte and the blanks that follow; return false if another byte is next. */
static inline bool take(Scan *scan, uint8_t byte)
{
    if (peek(scan) != byte)
        return false;
    scan->text++;
    skip_blanks(scan);
    return true;
}

bool open_container(Scan *scan, uint8_t closing, bool *is_empty)
{
    scan->text++;
    skip_blanks(scan);
    *is_empty = take(scan, closing);
    return ++scan->separators <= MAX_SEPARATORS;
}

bool next_member(Scan *scan, uint8_t closing, bool *is_last)
{
    skip_blanks(scan);
    *is_last = take(scan, closing);
    return *is_last || (take(scan, ',') && ++scan->separators <= MAX_SEPARATORS);
}

bool read_name(Scan *scan, Span *name)
{
    if (peek(scan) != '"')
        return false;
    name->start = scan->text + 1;
    name->end = scan->text = skip(name->start, scan->end, AT_JSON);
    return take(scan, '"') && take(scan, ':'); /* names with escapes are Python's */
}

void write_name(Scan *scan, Span name)
{
    *scan->output++ = '"';
    scan->output = put(scan->output, name);
    *scan->output++ = '"';
    *scan->output++ = ':';
}

static inline void copy(Scan *scan, const uint8_t *stop)
{
    scan->output = put(scan->output, (Span){scan->text, stop});
    scan->text = stop;
}

/* -- values -------------------------------------------------------------------------------------------------------- */

/* Read \uXXXX, and return its number; -1 if that is not what stands there. */
static int32_t read_code_unit(Scan *scan)
{
    if (scan->end - scan->text < 6 || scan->text[0] != '\\' || scan->text[1] != 'u')
        return -1;
    /* One more than what each hexadecimal digit stands for: digits and letters come in no order to foresee. */
    static const uint8_t digits[256] = {['0'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ['A'] = 11, 12, 13, 14, 15, 16,
                                        ['a'] = 11, 12, 13, 14, 15, 16};
    int32_t unit = 0;
    for (int place = 2; place < 6; place++) {
        uint8_t digit = digits[scan->text[place]];
        if (!digit)
            return -1;
        unit = unit * 16 + digit - 1;
    }
    scan->text += 6;
    return unit;
}

/* Write the character that \uXXXX stands for, or two of these; not a misleading one, nor half of one. */
static bool compact_code_units(Scan *scan)
{
    int32_t unit = read_code_unit(scan);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return false;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int32_t low = read_code_unit(scan);
        if (low < 0xDC00 || low > 0xDFFF)
            return false;
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    if (misleads((uint32_t)unit))
        return false;
    if (unit < 0x80) {
        uint8_t byte = (uint8_t)unit;
        scan->output = write_json_escaped((Span){&byte, &byte + 1}, scan->output); /* at most six, as were read */
        return true;
    }
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t size = unit < 0x800 ? 2 : unit < 0x10000 ? 3 : 4;
    for (size_t place = size - 1; place; place--, unit >>= 6)
        scan->output[place] = (uint8_t)(0x80 | (unit & 0x3F));
    scan->output[0] = (uint8_t)(marks[size] | unit);
    scan->output += size;
    return true;
}

static bool compact_escape(Scan *scan)
{
    uint8_t letter = scan->end - scan->text < 2 ? 0 : scan->text[1];
    if (letter == 'u')
        return compact_code_units(scan);
    if (!letter || !strchr("\"\\/bfnrt", letter))
        return false;
    scan->text += letter == '/'; /* which is written without the backslash */
    copy(scan, scan->text + (letter == '/' ? 1 : 2));
    return true;
}

static bool compact_string(Scan *scan)
{
    *scan->output++ = '"';
    scan->text++;
    for (;;) {
        copy(scan, skip(scan->text, scan->end, AT_JSON));
        uint8_t byte = peek(scan);
        if (byte == '"') {
            copy(scan, scan->text + 1);
            return true;
        }
        if (byte != '\\' || !compact_escape(scan)) /* a control character, or the end */
            return false;
    }
}

/* Move on to the end of some digits; return whether there are any. */
static bool skip_digits(const uint8_t **text, const uint8_t *end)
{
    const uint8_t *begin = *text;
    while (*text < end && is_digit(**text))
        ++*text;
    return *text > begin;
}

/* Copy a number with its spelling, unless Python has another one for it: -0, and what is longer than MAX_DIGITS. */
static bool compact_number(Scan *scan)
{
    const uint8_t *end = scan->end, *digits = scan->text + (peek(scan) == '-'), *stop = digits;
    if (!skip_digits(&stop, end) || (*digits == '0' && stop - digits > 1))
        return false;
    const uint8_t *integer_end = stop;
    if (stop < end && *stop == '.') {
        stop++;
        if (!skip_digits(&stop, end))
            return false;
    }
    if (stop < end && (*stop == 'e' || *stop == 'E')) {
        stop++;
        if (stop < end && (*stop == '+' || *stop == '-'))
            stop++;
        if (!skip_digits(&stop, end))
            return false;
    }
    if (stop == integer_end && (stop - digits > MAX_DIGITS || (*digits == '0' && digits > scan->text)))
        return false;
    copy(scan, stop);
    return true;
}

static bool compact_word(Scan *scan, const char *word, size_t size)
{
    if ((size_t)(scan->end - scan->text) < size || memcmp(scan->text, word, size) != 0)
        return false;
    copy(scan, scan->text + size);
    return true;
}

static bool compact_container(Scan *scan, int depth)
{
    bool is_object = peek(scan) == '{', is_last;
    uint8_t closing = is_object ? '}' : ']';
    uint64_t object = (uint64_t)++scan->objects << 32; /* one set of names serves all objects */
    *scan->output++ = *scan->text;
    if (depth > MAX_NESTING || !open_container(scan, closing, &is_last))
        return false;
    while (!is_last) {
        if (is_object) {
            Span name;
            if (!read_name(scan, &name) || !add_name(scan->slots, scan->mask, hash_name(name, object)))
                return false;
            write_name(scan, name);
        }
        if (!compact_value(scan, depth + 1) || !next_member(scan, closing, &is_last))
            return false;
        if (!is_last)
            *scan->output++ = ',';
    }
    *scan->output++ = closing;
    return true;
}

bool compact_value(Scan *scan, int depth)
{
    switch (peek(scan)) {
    case '"':
        return compact_string(scan);
    case '{':
    case '[':
        return compact_container(scan, depth);
    case 't':
        return compact_word(scan, "true", 4);
    case 'f':
        return compact_word(scan, "false", 5);
    case 'n':
        return compact_word(scan, "null", 4);
    default:
        return compact_number(scan);
    }
}

/* compact_object(body): return the object or array in a body as compact text; None if Python must read it. */
PyObject *speedups_compact_object(PyObject *Py_UNUSED(module), PyObject *body)
{
    Span text;
    if (!read_arguments(&body, 1, 1, &text, 1))
        return NULL;
    PyObject *compact = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size_of(text));
    if (compact == NULL)
        return NULL;
    PyThreadState *state = unlock(size_of(text));
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(compact);
    Scan scan;
    bool is_taken = begin_scan(&scan, text, output) && (peek(&scan) == '{' || peek(&scan) == '[');
    is_taken = is_taken && compact_value(&scan, 1) && scan.text == scan.end;
    end_scan(&scan);
    lock(state);
    if (!is_taken) {
        Py_DECREF(compact);
        Py_RETURN_NONE;
    }
    _PyBytes_Resize(&compact, scan.output - output); /* which sets it to NULL when it fails */
    return compact;
}
