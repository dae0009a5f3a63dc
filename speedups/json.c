/* JSON (RFC 8259) as compact text: what webhookrx.intake.json_body reads and webhookrx.message.escapes writes again. */
#include "speedups.h"

enum {
    MAX_BODY = 10 * 1024 * 1024, /* MAX_JSON of webhookrx.intake.json_body; its other limits, or below them: */
    MAX_SEPARATORS = 100 * 1000, /* MAX_ELEMENTS */
    MAX_DIGITS = 64,
    FEW_INTEGERS = 4 * 1024,
    MOST_SLOTS = 256 * 1024, /* twice as many as there are names */
    MOST_TRIES = 32,
};

/* -- names that may not come twice --------------------------------------------------------------------------------- */

uint64_t hash_name(const uint8_t *name, size_t size, uint64_t seed)
{
    static const uint64_t odd = 0x9E3779B97F4A7C15u; /* 2^64 divided by the golden ratio: no product loses a bit */
    uint64_t hash = (seed ^ size) * odd;
    while (size) {
        uint64_t word = 0;
        size_t part = size < sizeof word ? size : sizeof word;
        memcpy(&word, name, part);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
        name += part;
        size -= part;
    }
    hash *= odd; /* the last word has reached the upper half only once */
    hash ^= hash >> 29;
    return hash ? hash : 1;
}

/* Return the slot of a hash, or the empty one where it belongs; NULL after MOST_TRIES, as many names are made to need. */
static uint64_t *find_slot(uint64_t *slots, size_t mask, uint64_t hash)
{
    size_t step = (size_t)(hash >> 32) | 1, place = (size_t)hash & mask;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (!slots[place] || slots[place] == hash)
            return slots + place;
        place = (place + step) & mask;
    }
    return NULL;
}

static bool grow(NameSet *names)
{
    size_t size = 4 * (names->mask + 1);
    uint64_t *slots = size > MOST_SLOTS ? NULL : PyMem_RawCalloc(size, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t old = 0; old <= names->mask; old++) {
        if (!names->slots[old])
            continue;
        uint64_t *slot = find_slot(slots, size - 1, names->slots[old]);
        if (slot == NULL) {
            PyMem_RawFree(slots);
            return false;
        }
        *slot = names->slots[old];
    }
    free_names(names);
    names->slots = slots;
    names->mask = size - 1;
    return true;
}

bool add_name(NameSet *names, uint64_t hash)
{
    if (names->count > names->mask / 2 && !grow(names))
        return false;
    uint64_t *slot = find_slot(names->slots, names->mask, hash);
    if (slot == NULL || *slot)
        return false;
    *slot = hash;
    names->count++;
    return true;
}

void free_names(NameSet *names)
{
    if (names->slots != names->few)
        PyMem_RawFree(names->slots);
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

bool begin_scan(Scan *scan, const uint8_t *body, size_t size, uint8_t *output)
{
    const uint8_t *end = body + size;
    scan->text = body;
    scan->end = end;
    scan->output = output;
    scan->growth = scan->separators = 0;
    scan->objects = 0;
    scan->names.count = 0;
    scan->names.slots = scan->names.few;
    scan->names.mask = sizeof scan->names.few / sizeof *scan->names.few - 1;
    memset(scan->names.few, 0, sizeof scan->names.few);
    if (size > MAX_BODY || !is_plain_utf_8(body, end) || (size > FEW_INTEGERS && has_long_digits(body, size)))
        return false;
    skip_blanks(scan);
    return true;
}

bool next_member(Scan *scan, uint8_t closing, bool *is_last)
{
    skip_blanks(scan);
    uint8_t byte = peek(scan);
    *is_last = byte == closing;
    if (!*is_last && (byte != ',' || ++scan->separators > MAX_SEPARATORS))
        return false;
    scan->text++;
    skip_blanks(scan);
    return true;
}

bool open_container(Scan *scan, uint8_t closing, bool *is_empty)
{
    scan->text++;
    skip_blanks(scan);
    *is_empty = peek(scan) == closing;
    if (*is_empty)
        scan->text++;
    return ++scan->separators <= MAX_SEPARATORS;
}

bool read_name(Scan *scan, const uint8_t **name, size_t *size)
{
    if (peek(scan) != '"')
        return false;
    *name = scan->text + 1;
    const uint8_t *stop = find_json_escape(*name, scan->end);
    if (stop == scan->end || *stop != '"') /* names with escapes are Python's */
        return false;
    *size = (size_t)(stop - *name);
    scan->growth += 2;
    scan->text = stop + 1;
    skip_blanks(scan);
    if (peek(scan) != ':')
        return false;
    scan->text++;
    skip_blanks(scan);
    return true;
}

static inline void copy(Scan *scan, const uint8_t *stop)
{
    size_t size = (size_t)(stop - scan->text);
    memcpy(scan->output, scan->text, size);
    scan->output += size;
    scan->text = stop;
}

/* -- strings ------------------------------------------------------------------------------------------------------- */

/* Read \uXXXX, and return its number; -1 if that is not what stands there. */
static int32_t read_code_unit(Scan *scan)
{
    if (scan->end - scan->text < 6 || scan->text[0] != '\\' || scan->text[1] != 'u')
        return -1;
    int32_t unit = 0;
    for (int place = 2; place < 6; place++) {
        uint8_t byte = scan->text[place], letter = byte | 0x20;
        if (is_digit(byte))
            unit = unit * 16 + (byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            unit = unit * 16 + (letter - 'a' + 10);
        else
            return -1;
    }
    scan->text += 6;
    scan->growth++;
    return unit;
}

static size_t write_utf_8(uint32_t character, uint8_t *output)
{
    if (character < 0x80) {
        output[0] = (uint8_t)character;
        return 1;
    }
    size_t size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const uint8_t marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t place = size - 1; place; place--, character >>= 6)
        output[place] = (uint8_t)(0x80 | (character & 0x3F));
    output[0] = (uint8_t)(marks[size] | character);
    return size;
}

/* Write the character that \uXXXX stands for, or two of these; not a misleading one, nor half of one. */
static bool compact_code_units(Scan *scan)
{
    int32_t unit = read_code_unit(scan);
    if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
        return false;
    uint32_t character = (uint32_t)unit;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        int32_t low = read_code_unit(scan);
        if (low < 0xDC00 || low > 0xDFFF)
            return false;
        character = 0x10000u + ((character - 0xD800u) << 10) + ((uint32_t)low - 0xDC00u);
    }
    uint8_t encoded[4];
    size_t size = write_utf_8(character, encoded);
    if (!is_plain_utf_8(encoded, encoded + size))
        return false;
    scan->output = write_json_escaped(encoded, encoded + size, scan->output); /* at most the six bytes that were read */
    return true;
}

static bool compact_escape(Scan *scan)
{
    static const uint8_t growth[256] = {['"'] = 2, ['\\'] = 2, ['b'] = 1, ['f'] = 1, ['n'] = 1, ['r'] = 1, ['t'] = 1};
    uint8_t letter = scan->end - scan->text < 2 ? 0 : scan->text[1];
    if (letter == 'u')
        return compact_code_units(scan);
    if (letter == '/') {
        scan->growth++;
        scan->text++;
        copy(scan, scan->text + 1);
        return true;
    }
    scan->growth += growth[letter];
    copy(scan, scan->text + (growth[letter] ? 2 : 0));
    return growth[letter];
}

static bool compact_string(Scan *scan)
{
    scan->growth += 2;
    *scan->output++ = '"';
    scan->text++;
    for (;;) {
        copy(scan, find_json_escape(scan->text, scan->end));
        uint8_t byte = peek(scan);
        if (byte == '"') {
            copy(scan, scan->text + 1);
            return true;
        }
        if (byte != '\\' || !compact_escape(scan)) /* a control character, or the end */
            return false;
    }
}

/* -- other values -------------------------------------------------------------------------------------------------- */

static const uint8_t *skip_digits(const uint8_t *text, const uint8_t *end)
{
    while (text < end && is_digit(*text))
        text++;
    return text;
}

/* Copy a number with its spelling, unless Python has another one for it: -0, and what is longer than MAX_DIGITS. */
static bool compact_number(Scan *scan)
{
    const uint8_t *end = scan->end, *digits = scan->text + (peek(scan) == '-'), *stop = skip_digits(digits, end);
    if (stop == digits || (*digits == '0' && stop - digits > 1))
        return false;
    bool is_exact = stop - digits <= MAX_DIGITS && !(*digits == '0' && digits > scan->text);
    if (stop < end && *stop == '.') {
        const uint8_t *fraction = stop + 1;
        stop = skip_digits(fraction, end);
        if (stop == fraction)
            return false;
        is_exact = true;
    }
    if (stop < end && (*stop | 0x20) == 'e') {
        const uint8_t *exponent = stop + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-'))
            exponent++;
        stop = skip_digits(exponent, end);
        if (stop == exponent)
            return false;
        is_exact = true;
    }
    copy(scan, stop);
    return is_exact;
}

static bool compact_word(Scan *scan, const char *word, size_t size)
{
    if ((size_t)(scan->end - scan->text) < size || memcmp(scan->text, word, size) != 0)
        return false;
    copy(scan, scan->text + size);
    return true;
}

/* Write the name of a member, unless the object, known by its number, may have that name already. */
static bool compact_name(Scan *scan, uint32_t object)
{
    const uint8_t *name;
    size_t size;
    if (!read_name(scan, &name, &size) || !add_name(&scan->names, hash_name(name, size, (uint64_t)object << 32)))
        return false;
    *scan->output++ = '"';
    memcpy(scan->output, name, size);
    scan->output += size;
    *scan->output++ = '"';
    *scan->output++ = ':';
    return true;
}

static bool compact_container(Scan *scan, int depth)
{
    bool is_object = peek(scan) == '{', is_last;
    uint32_t object = ++scan->objects;
    *scan->output++ = *scan->text;
    if (depth > MAX_NESTING || !open_container(scan, is_object ? '}' : ']', &is_last))
        return false;
    while (!is_last) {
        if (is_object && !compact_name(scan, object))
            return false;
        if (!compact_value(scan, depth + 1) || !next_member(scan, is_object ? '}' : ']', &is_last))
            return false;
        if (!is_last)
            *scan->output++ = ',';
    }
    *scan->output++ = is_object ? '}' : ']';
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
PyObject *speedups_compact_object(PyObject *module, PyObject *body)
{
    (void)module;
    if (!PyBytes_Check(body)) {
        PyErr_SetString(PyExc_TypeError, "compact_object(body: bytes)");
        return NULL;
    }
    size_t size = (size_t)PyBytes_GET_SIZE(body);
    PyObject *compact = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (compact == NULL)
        return NULL;
    PyThreadState *state = unlock(size);
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(compact);
    Scan scan;
    bool is_taken = begin_scan(&scan, (const uint8_t *)PyBytes_AS_STRING(body), size, output);
    is_taken = is_taken && (peek(&scan) == '{' || peek(&scan) == '[') && compact_value(&scan, 1);
    if (is_taken)
        skip_blanks(&scan);
    is_taken = is_taken && scan.text == scan.end;
    free_names(&scan.names);
    lock(state);
    if (!is_taken) {
        Py_DECREF(compact);
        Py_RETURN_NONE;
    }
    _PyBytes_Resize(&compact, scan.output - output); /* which sets it to NULL when it fails */
    return compact;
}
