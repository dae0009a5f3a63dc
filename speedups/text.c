/* UTF-8, and texts as strings of JSON. */
#include "speedups.h"

enum { INVALID = 0x110000 };

/*
 * Read the character at `text`, which is before `end`, and return how many bytes it has (RFC 3629 section 4). A byte
 * that begins none is one on its own, and INVALID.
 */
__attribute__((always_inline)) static inline size_t read_character(
    const uint8_t *text, const uint8_t *end, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* in so many bytes; anything less is overlong */
    uint8_t first = *text;
    *character = first < 0x80 ? first : INVALID;
    size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (first < 0xC2 || first > 0xF4 || (size_t)(end - text) < size)
        return 1;
    uint32_t found = first & (0x7Fu >> size);
    for (size_t place = 1; place < size; place++) {
        if ((text[place] & 0xC0) != 0x80)
            return 1;
        found = found << 6 | (text[place] & 0x3F);
    }
    bool is_surrogate = found >= 0xD800 && found <= 0xDFFF;
    if (found < least[size] || is_surrogate || found >= INVALID)
        return 1;
    *character = found;
    return size;
}

bool is_plain_utf_8(Span text)
{
    while ((text.start = skip(text.start, text.end, BEYOND_ASCII)) < text.end)
        while (text.start < text.end && *text.start >= 0x7F) {
            uint32_t character;
            text.start += read_character(text.start, text.end, &character);
            if (character == INVALID || misleads(character))
                return false;
        }
    return true;
}

/* -- escapes ------------------------------------------------------------------------------------------------------- */

static const char SHORT_ESCAPES[0x80] = {
    ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

/* Return how many bytes the escape of a character has that begins where a search stops; 0 if it needs none. */
static inline size_t escape_size(uint32_t character)
{
    if (character < 0x80)
        return SHORT_ESCAPES[character] ? 2 : 6;
    return misleads(character) ? 6 : 0;
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
static inline size_t escape(Span text, uint8_t *output, int at)
{
    size_t written = 0;
    while (text.start < text.end) {
        bool is_stop = stops(*text.start, at); /* before 16 are: in JSON within JSON escapes stand close together */
#if defined(__SSE2__)
        if (!is_stop && size_of(text) >= 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)text.start);
            if (output) /* what is left takes at least its own size: no escape is shorter than its character */
                _mm_storeu_si128((__m128i *)(output + written), bytes);
            unsigned places = stops_among(bytes, at);
            size_t plain = places ? (size_t)__builtin_ctz(places) : 16;
            text.start += plain;
            written += plain;
            if (!places)
                continue;
            is_stop = true;
        }
#endif
        uint32_t character = 0;
        size_t length = is_stop ? read_character(text.start, text.end, &character) : 1;
        size_t size = is_stop ? escape_size(character) : 0;
        if (output && size)
            write_escape(character, size, output + written);
        else if (output)
            output[written] = *text.start;
        written += size ? size : 1;
        text.start += size ? length : 1; /* no byte behind the first one of a character is a stop */
    }
    return written;
}

uint8_t *write_json_escaped(Span text, uint8_t *output) { return output + escape(text, output, AT_JSON); }

size_t json_escaped_size(Span text)
{
    enum { PIECE = 32 };
    size_t size = 0;
    for (; size_of(text) >= PIECE; text.start += PIECE) {
        uint8_t more = 0; /* what escapes add; without a branch, so that a compiler adds them up at once */
        for (size_t place = 0; place < PIECE; place++) {
            uint8_t byte = text.start[place], is_control = byte < 0x20;
            uint8_t is_long = is_control & ((byte < '\b') | (byte > '\r') | (byte == '\v'));
            more = (uint8_t)(more + (is_control | (byte == '"') | (byte == '\\')) + 4 * is_long);
        }
        size += PIECE + more;
    }
    return size + escape(text, NULL, AT_JSON);
}

/* -- functions of whole bodies ------------------------------------------------------------------------------------- */

bool read_arguments(PyObject *const *arguments, Py_ssize_t given, Py_ssize_t taken, Span *bytes, int bytes_count)
{
    if (given != taken) {
        PyErr_Format(PyExc_TypeError, "%zd arguments expected, not %zd", taken, given);
        return false;
    }
    for (int place = 0; place < bytes_count; place++) {
        PyObject *argument = arguments[place];
        /* No sum of three sizes with escapes may be too large for its type. */
        if (!PyBytes_Check(argument) || PyBytes_GET_SIZE(argument) > PY_SSIZE_T_MAX / 16) {
            PyErr_Format(PyExc_TypeError, "bytes expected, and not too many, not %.100s", Py_TYPE(argument)->tp_name);
            return false;
        }
        bytes[place] = inside_of(argument);
    }
    return true;
}

PyObject *speedups_escape_text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    enum { TEXT, BEFORE, AFTER, FOR_JSON, FOR_PEOPLE, COUNT };
    Span parts[FOR_JSON];
    if (!read_arguments(arguments, count, COUNT, parts, FOR_JSON))
        return NULL;
    bool for_json = arguments[FOR_JSON] == Py_True, for_people = !for_json || arguments[FOR_PEOPLE] == Py_True;
    size_t given = size_of(parts[TEXT]), before = size_of(parts[BEFORE]), after = size_of(parts[AFTER]);
    PyThreadState *state = unlock(given);
    size_t size = for_json ? json_escaped_size(parts[TEXT]) : given;
    if (for_people) /* no character has an escape of both kinds */
        size += escape(parts[TEXT], NULL, AT_MISLEADING) - given;
    lock(state);
    if (!for_json && size == given && !before && !after) /* without escapes: nearly always */
        return Py_NewRef(arguments[TEXT]);
    PyObject *escaped = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(before + size + after));
    if (escaped == NULL)
        return NULL;
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(escaped);
    state = unlock(given);
    output = put(output, parts[BEFORE]);
    if (for_json && for_people) /* so that each call has a constant for what is escaped */
        output += escape(parts[TEXT], output, AT_JSON | AT_MISLEADING);
    else if (for_json)
        output += escape(parts[TEXT], output, AT_JSON);
    else
        output += escape(parts[TEXT], output, AT_MISLEADING);
    put(output, parts[AFTER]);
    lock(state);
    return escaped;
}
