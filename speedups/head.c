/* Heads of requests, by the grammar of webhookrx/http/grammar.py, which says why it is as strict as it is. */
#include "speedups.h"

enum { TOKEN = 1, TARGET = 2, VALUE = 4, AUTHORITY = 8 };

#define IS_LETTER(byte) (((byte) >= 'A' && (byte) <= 'Z') || ((byte) >= 'a' && (byte) <= 'z'))
#define IS_DIGIT(byte) ((byte) >= '0' && (byte) <= '9')
#define IS_COMMON(byte)                                                                                                \
    (IS_LETTER(byte) || IS_DIGIT(byte) || (byte) == '!' || (byte) == '$' || (byte) == '%' || (byte) == '&' ||          \
     (byte) == '\'' || (byte) == '*' || (byte) == '+' || (byte) == '-' || (byte) == '.' || (byte) == '_' || (byte) == '~')
/* RFC 9110 section 5.6.2. */
#define IS_TOKEN(byte) (IS_COMMON(byte) || (byte) == '#' || (byte) == '^' || (byte) == '`' || (byte) == '|')
/* A name or an IPv4 address (RFC 3986 section 3.2.2). */
#define IS_AUTHORITY(byte)                                                                                             \
    (IS_COMMON(byte) || (byte) == '(' || (byte) == ')' || (byte) == ',' || (byte) == ';' || (byte) == '=')
#define IS_TARGET(byte) ((byte) > 0x20 && (byte) < 0x7F && (byte) != '#')
/* With obs-text (RFC 9110 section 5.5). */
#define IS_VALUE(byte) ((byte) == '\t' || ((byte) >= 0x20 && (byte) != 0x7F))
#define KIND(byte)                                                                                                     \
    (uint8_t)((IS_TOKEN(byte) ? TOKEN : 0) | (IS_TARGET(byte) ? TARGET : 0) | (IS_VALUE(byte) ? VALUE : 0) |           \
              (IS_AUTHORITY(byte) ? AUTHORITY : 0))
#define FOUR(byte) KIND(byte), KIND((byte) + 1), KIND((byte) + 2), KIND((byte) + 3)
#define SIXTEEN(byte) FOUR(byte), FOUR((byte) + 4), FOUR((byte) + 8), FOUR((byte) + 12)
#define ALL(byte) SIXTEEN(byte), SIXTEEN((byte) + 16), SIXTEEN((byte) + 32), SIXTEEN((byte) + 48)

static const uint8_t kinds[256] = {ALL(0), ALL(64), ALL(128), ALL(192)};

typedef struct {
    const uint8_t *start, *end;
} Span;

static inline size_t size_of(Span span) { return (size_t)(span.end - span.start); }

static inline PyObject *bytes_of(Span span)
{
    return PyBytes_FromStringAndSize((const char *)span.start, span.end - span.start);
}

static inline const uint8_t *skip(const uint8_t *text, const uint8_t *end, uint8_t kind)
{
    while (text < end && kinds[*text] & kind)
        text++;
    return text;
}

/* Return the first byte that can't be in the value of a header, such as the CR at its end; or end. */
static const uint8_t *skip_value(const uint8_t *text, const uint8_t *end)
{
#if defined(__SSE2__)
    while (end - text >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)text);
        __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, _mm_set1_epi8(0x1F)), _mm_set1_epi8(0x1F));
        __m128i is_del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7F));
        int found = _mm_movemask_epi8(_mm_or_si128(control, is_del));
        if (found) {
            text += __builtin_ctz((unsigned)found);
            break; /* a tab, which may stand in it, or the end */
        }
        text += 16;
    }
#endif
    return skip(text, end, VALUE);
}

static inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

static inline uint8_t lower(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 0x20) : byte; }

/* Tell whether a text is, but for the case of its letters, one in lower case. */
static inline bool is_same(Span text, const void *lower_case, size_t size)
{
    if (size_of(text) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (lower(text.start[i]) != ((const uint8_t *)lower_case)[i])
            return false;
    return true;
}

#define IS(text, literal) is_same(text, literal, sizeof(literal) - 1)

/* Read the header line at `text`, its value without the white space around it. Return what follows, NULL if it is none. */
static const uint8_t *read_line(const uint8_t *text, const uint8_t *end, Span *name, Span *value)
{
    name->start = text;
    name->end = text = skip(text, end, TOKEN);
    if (text == name->start || text == end || *text != ':')
        return NULL;
    value->start = text + 1;
    value->end = text = skip_value(text + 1, end);
    if (end - text < 2 || text[0] != '\r' || text[1] != '\n')
        return NULL;
    while (value->start < value->end && is_blank(*value->start))
        value->start++;
    while (value->end > value->start && is_blank(value->end[-1]))
        value->end--;
    return text + 2;
}

/* The parts of a request line; the query is without a start when there is none. */
typedef struct {
    Span method, path, query;
} RequestLine;

/* Read a request line with a target in origin-form (RFC 9112 section 3.2.1). Return what follows, NULL if it is none. */
static const uint8_t *read_request_line(const uint8_t *text, const uint8_t *end, RequestLine *line)
{
    static const char version[] = " HTTP/1.1\r\n";
    enum { LONGEST_METHOD = 32, VERSION_SIZE = sizeof version - 1 };
    line->method.start = text;
    line->method.end = text = skip(text, end, TOKEN);
    size_t size = size_of(line->method);
    if (size == 0 || size > LONGEST_METHOD || (size == 7 && !memcmp(line->method.start, "CONNECT", 7)))
        return NULL;
    if (end - text < 2 || text[0] != ' ' || text[1] != '/')
        return NULL;
    line->path.start = ++text;
    while (text < end && kinds[*text] & TARGET && *text != '?')
        text++;
    line->path.end = text;
    if (text < end && *text == '?') {
        line->query.start = ++text;
        line->query.end = text = skip(text, end, TARGET);
    }
    if (end - text < VERSION_SIZE || memcmp(text, version, VERSION_SIZE) != 0)
        return NULL;
    return text + VERSION_SIZE;
}

/* Tell whether a value of Host is well-formed: a name or an address, and a port or not (RFC 9110 section 7.2). */
static bool is_host(Span value)
{
    enum { LONGEST_PORT = 5 };
    const uint8_t *text = value.start, *end = value.end;
    if (text < end && *text == '[') {
        text++;
        while (text < end && (IS_DIGIT(*text) || (lower(*text) >= 'a' && lower(*text) <= 'f') || *text == ':' || *text == '.'))
            text++;
        if (text == value.start + 1 || text == end || *text != ']')
            return false;
        text++;
    } else
        text = skip(text, end, AUTHORITY);
    if (text == end)
        return true;
    if (*text != ':' || end - text > 1 + LONGEST_PORT)
        return false;
    for (text++; text < end; text++)
        if (!IS_DIGIT(*text))
            return false;
    return true;
}

/* Read a Content-Length; -1 if it is not well-formed, or has more digits than fit. */
static int64_t length_of(Span value)
{
    enum { MOST_DIGITS = 18 };
    if (value.start == value.end || size_of(value) > MOST_DIGITS)
        return -1;
    int64_t length = 0;
    for (const uint8_t *text = value.start; text < value.end; text++) {
        if (!IS_DIGIT(*text))
            return -1;
        length = length * 10 + (*text - '0');
    }
    return length;
}

/* What the header lines of a head say. */
typedef struct {
    bool has_host, has_length, closes;
    int64_t length;
    PyObject *prefetched; /* a dict, or NULL when there is none of these lines */
} Framing;

typedef enum { TAKEN, UNUSUAL, FAILED } Outcome;

/* Take note of a header line that says where the request ends or what becomes of the connection (RFC 9112 section 6, 9). */
static Outcome take_framing(Framing *framing, Span name, Span value)
{
    switch (size_of(name)) {
    case 4:
        if (IS(name, "host")) {
            if (framing->has_host || !is_host(value))
                return UNUSUAL;
            framing->has_host = true;
        }
        return TAKEN;
    case 6:
        return IS(name, "expect") ? UNUSUAL : TAKEN;
    case 10:
        if (IS(name, "connection") && !IS(value, "keep-alive")) {
            if (!IS(value, "close"))
                return UNUSUAL;
            framing->closes = true;
        }
        return TAKEN;
    case 14:
        if (IS(name, "content-length")) {
            framing->length = framing->has_length ? -1 : length_of(value);
            framing->has_length = true;
            if (framing->length < 0)
                return UNUSUAL;
        }
        return TAKEN;
    case 17:
        return IS(name, "transfer-encoding") ? UNUSUAL : TAKEN;
    default:
        return TAKEN;
    }
}

/* Append the value to the list of its name, if it is one of `names`: a tuple of bytes in lower case. */
static Outcome prefetch(Framing *framing, Span name, Span value, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *wanted = PyTuple_GET_ITEM(names, i);
        if (!is_same(name, PyBytes_AS_STRING(wanted), (size_t)PyBytes_GET_SIZE(wanted)))
            continue;
        if (framing->prefetched == NULL && (framing->prefetched = PyDict_New()) == NULL)
            return FAILED;
        PyObject *text = bytes_of(value);
        if (text == NULL)
            return FAILED;
        PyObject *values = PyDict_GetItemWithError(framing->prefetched, wanted);
        int failed = -1;
        if (values != NULL)
            failed = PyList_Append(values, text);
        else if (!PyErr_Occurred() && (values = PyList_New(1)) != NULL) {
            PyList_SET_ITEM(values, 0, Py_NewRef(text));
            failed = PyDict_SetItem(framing->prefetched, wanted, values);
            Py_DECREF(values);
        }
        Py_DECREF(text);
        return failed ? FAILED : TAKEN;
    }
    return TAKEN;
}

/* The arguments of parse_head. */
enum {
    DATA,
    TARGET_LIMIT,
    BLOCK_LIMIT,
    COUNT_LIMIT,
    PEER,
    KEPT,
    CLOSED,
    USUAL_METHOD,
    NAMES,
    NOTHING,
    LINES_TYPE,
    HEAD_TYPE,
    ARGUMENTS
};

/* Call the type of heads; `end` is that of the head. */
static PyObject *make_head(PyObject *const *arguments, const uint8_t *end, const RequestLine *line, const Framing *framing)
{
    enum { METHOD, PATH, QUERY, HEADERS, OTHER_END, PREFETCHED, SIZE, LENGTH, CONNECTION, FIELDS };
    PyObject *fields[FIELDS] = {NULL};
    PyObject *head = NULL;
    Span block = {(const uint8_t *)PyBytes_AS_STRING(arguments[DATA]), end};
    Span usual = {(const uint8_t *)PyBytes_AS_STRING(arguments[USUAL_METHOD]), NULL};
    usual.end = usual.start + PyBytes_GET_SIZE(arguments[USUAL_METHOD]);
    bool is_usual = size_of(usual) == size_of(line->method) && !memcmp(usual.start, line->method.start, size_of(usual));
    PyObject *text = bytes_of(block);

    /* First, since Python code must not run once something has failed. */
    fields[HEADERS] = text == NULL ? NULL : PyObject_Vectorcall(arguments[LINES_TYPE], &text, 1, NULL);
    fields[METHOD] = is_usual ? Py_NewRef(arguments[USUAL_METHOD]) : bytes_of(line->method);
    fields[PATH] = bytes_of(line->path);
    fields[QUERY] = line->query.start ? bytes_of(line->query) : Py_NewRef(Py_None);
    fields[OTHER_END] = Py_NewRef(arguments[PEER]);
    fields[PREFETCHED] = Py_NewRef(framing->prefetched == NULL ? arguments[NOTHING] : framing->prefetched);
    fields[SIZE] = PyLong_FromSize_t(size_of(block));
    fields[LENGTH] = PyLong_FromLongLong(framing->has_length ? framing->length : 0);
    fields[CONNECTION] = Py_NewRef(arguments[framing->closes ? CLOSED : KEPT]);
    bool complete = true;
    for (size_t i = 0; i < FIELDS; i++)
        complete = complete && fields[i] != NULL;
    if (complete)
        head = PyObject_Vectorcall(arguments[HEAD_TYPE], fields, FIELDS, NULL);
    for (size_t i = 0; i < FIELDS; i++)
        Py_XDECREF(fields[i]);
    Py_XDECREF(text);
    return head;
}

static bool are_all_bytes(PyObject *names)
{
    if (!PyTuple_Check(names))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(names, i)))
            return false;
    return true;
}

/* See webhookrx.speedups.Compiled.parse_head. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != ARGUMENTS || !PyBytes_Check(arguments[DATA]) || !PyBytes_Check(arguments[USUAL_METHOD]) ||
        !are_all_bytes(arguments[NAMES])) {
        PyErr_SetString(PyExc_TypeError, "parse_head: see webhookrx.speedups.Compiled");
        return NULL;
    }
    /* A limit beyond what fits is as good as the largest that does. */
    Py_ssize_t most_target = PyNumber_AsSsize_t(arguments[TARGET_LIMIT], NULL);
    Py_ssize_t most_bytes = PyNumber_AsSsize_t(arguments[BLOCK_LIMIT], NULL);
    Py_ssize_t most_lines = PyNumber_AsSsize_t(arguments[COUNT_LIMIT], NULL);
    if ((most_target == -1 || most_bytes == -1 || most_lines == -1) && PyErr_Occurred())
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(arguments[DATA]), *end = start + PyBytes_GET_SIZE(arguments[DATA]);
    if (end - start > most_bytes) /* so that nothing behind it is looked at, whatever follows the head */
        end = start + most_bytes;
    RequestLine line = {0};
    const uint8_t *text = read_request_line(start, end, &line);
    if (text == NULL || (line.query.start ? line.query.end : line.path.end) - line.path.start > most_target)
        Py_RETURN_NONE;
    Framing framing = {0};
    Outcome outcome = TAKEN;
    while (outcome == TAKEN && text < end && *text != '\r') {
        Span name, value;
        text = most_lines-- > 0 ? read_line(text, end, &name, &value) : NULL;
        if (text == NULL) {
            outcome = UNUSUAL;
            break;
        }
        outcome = take_framing(&framing, name, value);
        if (outcome == TAKEN)
            outcome = prefetch(&framing, name, value, arguments[NAMES]);
    }
    if (outcome == TAKEN && (end - text < 2 || text[1] != '\n' || !framing.has_host))
        outcome = UNUSUAL;
    PyObject *head = outcome == TAKEN     ? make_head(arguments, text + 2, &line, &framing)
                     : outcome == UNUSUAL ? Py_NewRef(Py_None)
                                          : NULL;
    Py_XDECREF(framing.prefetched);
    return head;
}
