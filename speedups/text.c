/* UTF-8, and texts as strings of JSON. */
#include "speedups.h"

static inline bool continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }
static inline bool needs_json_escape(uint32_t unit) { return unit < 0x20 || unit == '"' || unit == '\\'; }

/* What a search stops at, besides an end: escapes of JSON; DEL and what begins a misleading character; all but ASCII. */
enum { AT_JSON = 1, AT_MISLEADING = 2, BEYOND_ASCII = 4 };

static inline bool stops(uint8_t byte, int at)
{
    return (at & AT_JSON && needs_json_escape(byte)) || (at & BEYOND_ASCII && byte >= 0x7F) ||
           (at & AT_MISLEADING && (byte == 0x7F || byte == 0xC2 || byte == 0xD8 || byte == 0xE2));
}

#if defined(__SSE2__)
static inline __m128i equal(__m128i bytes, int byte) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte)); }

/* Tell the bytes that need an escape in a string of JSON. */
static inline __m128i json_escapes(__m128i bytes)
{
    __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), _mm_set1_epi8(0x1F));
    return _mm_or_si128(control, _mm_or_si128(equal(bytes, '"'), equal(bytes, '\\')));
}
#endif

/* Return the first byte that stops, or end. What it stops at is constant where it is inlined. */
static inline const uint8_t *skip(const uint8_t *text, const uint8_t *end, int at)
{
#if defined(__SSE2__)
    while (end - text >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text), found = _mm_setzero_si128();
        if (at & BEYOND_ASCII)
            found = _mm_or_si128(bytes, equal(bytes, 0x7F)); /* their highest bits */
        if (at & AT_JSON)
            found = _mm_or_si128(found, json_escapes(bytes));
        if (at & AT_MISLEADING) {
            __m128i two = _mm_or_si128(equal(bytes, 0x7F), equal(bytes, 0xC2));
            found = _mm_or_si128(_mm_or_si128(found, two), _mm_or_si128(equal(bytes, 0xD8), equal(bytes, 0xE2)));
        }
        int places = _mm_movemask_epi8(found);
        if (places)
            return text + __builtin_ctz((unsigned)places);
        text += 16;
    }
#endif
    while (text < end && !stops(*text, at))
        text++;
    return text;
}

const uint8_t *find_json_escape(const uint8_t *text, const uint8_t *end) { return skip(text, end, AT_JSON); }

enum { REPLACEMENT = 0xFFFD, INVALID = 0x110000 };

/*
 * Read the character at `text`, which is before `end`, and return how many bytes it has. Where there is none, *character
 * is INVALID, and the bytes are those for which one U+FFFD stands (The Unicode Standard, section 3.9, table 3-8).
 */
__attribute__((always_inline)) static inline size_t read_character(
    const uint8_t *text, const uint8_t *end, uint32_t *character)
{
    uint8_t first = text[0];
    size_t left = (size_t)(end - text);
    *character = first;
    if (first < 0x80)
        return 1;
    *character = INVALID;
    if (first < 0xC2 || first > 0xF4 || left < 2 || !continues(text[1]))
        return 1;
    uint32_t second = text[1] & 0x3Fu;
    if (first < 0xE0) {
        *character = (first & 0x1Fu) << 6 | second;
        return 2;
    }
    if (first < 0xF0) {
        if ((first == 0xE0 && second < 0x20) || (first == 0xED && second > 0x1F)) /* overlong; a surrogate */
            return 1;
        if (left < 3 || !continues(text[2]))
            return 2;
        *character = (first & 0x0Fu) << 12 | second << 6 | (text[2] & 0x3Fu);
        return 3;
    }
    if ((first == 0xF0 && second < 0x10) || (first == 0xF4 && second > 0x0F)) /* overlong; too large */
        return 1;
    if (left < 3 || !continues(text[2]))
        return 2;
    if (left < 4 || !continues(text[3]))
        return 3;
    *character = (first & 0x07u) << 18 | second << 12 | (text[2] & 0x3Fu) << 6 | (text[3] & 0x3Fu);
    return 4;
}

bool is_plain_utf_8(const uint8_t *text, const uint8_t *end)
{
    while ((text = skip(text, end, BEYOND_ASCII)) < end)
        while (text < end && *text >= 0x7F) {
            uint32_t character;
            text += read_character(text, end, &character);
            if (character == INVALID || misleads(character))
                return false;
        }
    return true;
}

/* -- escapes ------------------------------------------------------------------------------------------------------- */

static const char SHORT_ESCAPES[0x80] = {
    ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

/* Return how many bytes the escape of a character has; 0 if it needs none. */
static inline size_t escape_size(uint32_t character, int at)
{
    if (at & AT_JSON && needs_json_escape(character))
        return SHORT_ESCAPES[character] ? 2 : 6;
    return at & AT_MISLEADING && misleads(character) ? 6 : 0;
}

/* Write a character as \n or \u000a, whichever has that size. */
static inline void write_escape(uint32_t character, size_t size, uint8_t *output)
{
    static const char hexadecimal[] = "0123456789abcdef";
    output[0] = '\\';
    output[1] = size == 2 ? (uint8_t)SHORT_ESCAPES[character] : 'u';
    for (size_t place = 2; place < size; place++)
        output[place] = (uint8_t)hexadecimal[character >> 4 * (5 - place) & 15];
}

/* Write a text with escapes of JSON, of misleading characters, or both; or nothing for NULL. Return its size. */
static inline size_t escape(const uint8_t *text, const uint8_t *end, uint8_t *output, int at)
{
    size_t written = 0;
    for (;;) {
        const uint8_t *stop = skip(text, end, at);
        if (output)
            memcpy(output + written, text, (size_t)(stop - text));
        written += (size_t)(stop - text);
        for (text = stop; text < end && stops(*text, at);) {
            uint32_t character;
            size_t length = read_character(text, end, &character), size = escape_size(character, at);
            if (output && size)
                write_escape(character, size, output + written);
            else if (output)
                for (size_t place = 0; place < length; place++)
                    output[written + place] = text[place];
            written += size ? size : length;
            text += length;
        }
        if (text == end)
            return written;
    }
}

uint8_t *write_json_escaped(const uint8_t *text, const uint8_t *end, uint8_t *output)
{
#if defined(__SSE2__)
    /* JSON itself has escapes close together. There is room for at least as many bytes as are left of the text. */
    while (end - text >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text);
        _mm_storeu_si128((__m128i *)output, bytes);
        unsigned places = (unsigned)_mm_movemask_epi8(json_escapes(bytes));
        size_t plain = places ? (size_t)__builtin_ctz(places) : 16;
        text += plain;
        output += plain;
        if (places) {
            size_t size = escape_size(*text, AT_JSON);
            write_escape(*text++, size, output);
            output += size;
        }
    }
#endif
    return output + escape(text, end, output, AT_JSON);
}

/* Return how many bytes the escapes of JSON add to a text of at most 32; without a branch, so that they are added at once. */
static inline size_t few_escapes(const uint8_t *text, size_t size)
{
    uint8_t more = 0;
    for (size_t place = 0; place < size; place++) {
        uint8_t byte = text[place], is_control = byte < 0x20;
        uint8_t is_long = is_control & ((byte < '\b') | (byte > '\r') | (byte == '\v'));
        more = (uint8_t)(more + (is_control | (byte == '"') | (byte == '\\')) + 4 * is_long);
    }
    return more;
}

size_t json_escaped_size(const uint8_t *text, const uint8_t *end)
{
    size_t size = (size_t)(end - text);
    for (; end - text >= 32; text += 32)
        size += few_escapes(text, 32);
    return size + few_escapes(text, (size_t)(end - text));
}

/* Do the same with each choice a constant where it is inlined. */
static size_t escape_chosen(const uint8_t *text, size_t size, uint8_t *output, bool for_json, bool for_people)
{
    if (!for_json)
        return escape(text, text + size, output, AT_MISLEADING);
    return escape(text, text + size, output, for_people ? AT_JSON | AT_MISLEADING : AT_JSON);
}

/* -- functions of whole bodies ------------------------------------------------------------------------------------- */

const uint8_t *read_bytes(PyObject *argument, size_t *size)
{
    if (!PyBytes_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "bytes expected, not %.100s", Py_TYPE(argument)->tp_name);
        return NULL;
    }
    *size = (size_t)PyBytes_GET_SIZE(argument);
    if (*size > (size_t)PY_SSIZE_T_MAX / 8) { /* no sum of three with escapes can be too large for its type */
        PyErr_NoMemory();
        return NULL;
    }
    return (const uint8_t *)PyBytes_AS_STRING(argument);
}

PyObject *speedups_escape_text(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    const uint8_t *parts[3];
    size_t sizes[3];
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "escape_text(text, before, after, for_json, for_people)");
        return NULL;
    }
    for (int part = 0; part < 3; part++)
        if ((parts[part] = read_bytes(arguments[part], sizes + part)) == NULL)
            return NULL;
    bool for_json = arguments[3] == Py_True, for_people = arguments[4] == Py_True;
    PyThreadState *state = unlock(sizes[0]);
    size_t size = escape_chosen(parts[0], sizes[0], NULL, for_json, for_people);
    lock(state);
    if (!for_json && size == sizes[0] && !sizes[1] && !sizes[2]) /* without escapes: nearly always */
        return Py_NewRef(arguments[0]);
    PyObject *escaped = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(sizes[1] + size + sizes[2]));
    if (escaped == NULL)
        return NULL;
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(escaped);
    state = unlock(sizes[0]);
    memcpy(output, parts[1], sizes[1]);
    escape_chosen(parts[0], sizes[0], output + sizes[1], for_json, for_people);
    memcpy(output + sizes[1] + size, parts[2], sizes[2]);
    lock(state);
    return escaped;
}

/* Write the characters in units of this width; if it is 0, find the largest, and whether all are exact. Count them. */
static inline Py_ssize_t decode(
    const uint8_t *text, const uint8_t *end, void *units, int width, uint32_t *largest, bool *exact)
{
    Py_ssize_t place = 0;
    for (;;) {
        const uint8_t *stop = skip(text, end, BEYOND_ASCII);
        if (!width)
            place += stop - text;
        else
            for (; text < stop; text++)
                PyUnicode_WRITE(width, units, place++, *text);
        for (text = stop; text < end && *text >= 0x7F; place++) {
            uint32_t character;
            text += read_character(text, end, &character);
            if (character == INVALID) {
                *exact = false;
                character = REPLACEMENT;
            }
            if (width)
                PyUnicode_WRITE(width, units, place, character);
            else if (character > *largest)
                *largest = character;
        }
        if (text == end)
            return place;
    }
}

PyObject *speedups_decode_text(PyObject *module, PyObject *body)
{
    (void)module;
    size_t size;
    const uint8_t *text = read_bytes(body, &size);
    if (text == NULL)
        return NULL;
    const uint8_t *end = text + size;
    uint32_t largest = 0;
    bool exact = true;
    PyThreadState *state = unlock(size);
    Py_ssize_t length = decode(text, end, NULL, 0, &largest, &exact);
    lock(state);
    PyObject *decoded = PyUnicode_New(length, largest);
    if (decoded == NULL)
        return NULL;
    void *units = PyUnicode_DATA(decoded);
    state = unlock(size);
    if (largest < 0x100)
        decode(text, end, units, PyUnicode_1BYTE_KIND, &largest, &exact);
    else if (largest < 0x10000)
        decode(text, end, units, PyUnicode_2BYTE_KIND, &largest, &exact);
    else
        decode(text, end, units, PyUnicode_4BYTE_KIND, &largest, &exact);
    lock(state);
    return Py_BuildValue("NO", decoded, exact ? Py_True : Py_False);
}
