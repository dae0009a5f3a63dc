/* Heads of requests, by the grammar of webhookrx/http/grammar.py, which says why it is as strict as it is. */
#include "speedups.h"

enum { TOKEN = 1, TARGET = 2, VALUE = 4, NAME = 8, ADDRESS = 16, DIGIT = 32 };

#define IS_DIGIT(byte) ((byte) >= '0' && (byte) <= '9')
#define IS_HEX(byte) (IS_DIGIT(byte) || ((byte) >= 'A' && (byte) <= 'F') || ((byte) >= 'a' && (byte) <= 'f'))
#define IS_LETTER(byte) (((byte) >= 'A' && (byte) <= 'Z') || ((byte) >= 'a' && (byte) <= 'z'))
#define IS_COMMON(byte)                                                                                                \
    (IS_LETTER(byte) || IS_DIGIT(byte) || (byte) == '!' || (byte) == '$' || (byte) == '%' || (byte) == '&' ||          \
     (byte) == '\'' || (byte) == '*' || (byte) == '+' || (byte) == '-' || (byte) == '.' || (byte) == '_' ||            \
     (byte) == '~')
/* RFC 9110 section 5.6.2. */
#define IS_TOKEN(byte) (IS_COMMON(byte) || (byte) == '#' || (byte) == '^' || (byte) == '`' || (byte) == '|')
#define IS_TARGET(byte) ((byte) > 0x20 && (byte) < 0x7F && (byte) != '#')
/* With obs-text (RFC 9110 section 5.5). */
#define IS_VALUE(byte) ((byte) == '\t' || ((byte) >= 0x20 && (byte) != 0x7F))
/* In a Host: a name or an IPv4 address, and what stands between brackets (RFC 3986 section 3.2.2). */
#define IS_NAME(byte)                                                                                                  \
    (IS_COMMON(byte) || (byte) == '(' || (byte) == ')' || (byte) == ',' || (byte) == ';' || (byte) == '=')
#define IS_ADDRESS(byte) (IS_HEX(byte) || (byte) == ':' || (byte) == '.')
#define KIND(byte)                                                                                                     \
    (uint8_t)((IS_TOKEN(byte) ? TOKEN : 0) | (IS_TARGET(byte) ? TARGET : 0) | (IS_VALUE(byte) ? VALUE : 0) |           \
              (IS_NAME(byte) ? NAME : 0) | (IS_ADDRESS(byte) ? ADDRESS : 0) | (IS_DIGIT(byte) ? DIGIT : 0))
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

/* Read the header line at `text`, its value without the blanks around it. Return what follows, NULL if it is none. */
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

/* Read a request line, its target in origin-form (RFC 9112 section 3.2.1). Return what follows, NULL if it is none. */
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
    enum { COLON_AND_PORT = 6 };
    const uint8_t *text = skip(value.start, value.end, NAME);
    if (text == value.start && text < value.end && *text == '[') {
        text = skip(text + 1, value.end, ADDRESS);
        if (text == value.start + 1 || text == value.end || *text++ != ']')
            return false;
    }
    if (text == value.end)
        return true;
    return *text == ':' && value.end - text <= COLON_AND_PORT && skip(text + 1, value.end, DIGIT) == value.end;
}

/* Read a Content-Length; -1 if it is not well-formed, or has more digits than fit. */
static int64_t length_of(Span value)
{
    enum { MOST_DIGITS = 18 };
    if (size_of(value) - 1 >= MOST_DIGITS || skip(value.start, value.end, DIGIT) != value.end)
        return -1;
    int64_t length = 0;
    for (const uint8_t *text = value.start; text < value.end; text++)
        length = length * 10 + (*text - '0');
    return length;
}

/* What the header lines of a head say. */
typedef struct {
    bool has_host, has_length, closes;
    int64_t length;
    PyObject *prefetched; /* a dict, or NULL when there is none of these lines */
} Framing;

typedef enum { TAKEN, UNUSUAL, FAILED } Outcome;

/* Take note of a header line that says where the request ends or what becomes of the connection (RFC 9112, 6 and 9). */
static Outcome take_framing(Framing *framing, Span name, Span value)
{
    if (IS(name, "host")) {
        if (framing->has_host || !is_host(value))
            return UNUSUAL;
        framing->has_host = true;
    } else if (IS(name, "content-length")) {
        framing->length = framing->has_length ? -1 : length_of(value);
        framing->has_length = true;
        return framing->length < 0 ? UNUSUAL : TAKEN;
    } else if (IS(name, "connection")) {
        if (IS(value, "close"))
            framing->closes = true;
        else if (!IS(value, "keep-alive"))
            return UNUSUAL;
    } else if (IS(name, "transfer-encoding") || IS(name, "expect"))
        return UNUSUAL;
    return TAKEN;
}

/* Append the value to the list of its name, if it is one of `names`: a tuple of bytes in lower case. */
static Outcome prefetch(Framing *framing, Span name, Span value, PyObject *names)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *wanted = PyTuple_GET_ITEM(names, i);
        if (!PyBytes_Check(wanted)) {
            PyErr_SetString(PyExc_TypeError, "names: tuple[bytes, ...]");
            return FAILED;
        }
        if (!is_same(name, PyBytes_AS_STRING(wanted), (size_t)PyBytes_GET_SIZE(wanted)))
            continue;
        if (framing->prefetched == NULL && (framing->prefetched = PyDict_New()) == NULL)
            return FAILED;
        PyObject *text = bytes_of(value), *empty = PyList_New(0), *values = NULL;
        if (text != NULL && empty != NULL)
            values = PyDict_SetDefault(framing->prefetched, wanted, empty);
        int failed = values == NULL ? -1 : PyList_Append(values, text);
        Py_XDECREF(text);
        Py_XDECREF(empty);
        return failed ? FAILED : TAKEN;
    }
    return TAKEN;
}

/* The arguments of parse_head. */
enum { DATA, TARGET_LIMIT, BLOCK_LIMIT, COUNT_LIMIT, PEER, KEPT, CLOSED, USUAL_METHOD, NAMES, NOTHING, LINES_TYPE };
enum { HEAD_TYPE = LINES_TYPE + 1, ARGUMENTS };

/* Call the type of heads; `end` is that of the head. */
static PyObject *make_head(PyObject *const *arguments, const uint8_t *end, const RequestLine *line, const Framing *said)
{
    enum { METHOD, PATH, QUERY, HEADERS, OTHER_END, PREFETCHED, SIZE, LENGTH, CONNECTION, FIELDS };
    PyObject *fields[FIELDS] = {NULL}, *head = NULL;
    Span block = {(const uint8_t *)PyBytes_AS_STRING(arguments[DATA]), end};
    size_t usual = (size_t)PyBytes_GET_SIZE(arguments[USUAL_METHOD]);
    bool is_usual =
        size_of(line->method) == usual && !memcmp(PyBytes_AS_STRING(arguments[USUAL_METHOD]), block.start, usual);
    PyObject *text = bytes_of(block);

    /* First, since Python code must not run once something has failed. */
    fields[HEADERS] = text == NULL ? NULL : PyObject_Vectorcall(arguments[LINES_TYPE], &text, 1, NULL);
    fields[METHOD] = is_usual ? Py_NewRef(arguments[USUAL_METHOD]) : bytes_of(line->method);
    fields[PATH] = bytes_of(line->path);
    fields[QUERY] = line->query.start ? bytes_of(line->query) : Py_NewRef(Py_None);
    fields[OTHER_END] = Py_NewRef(arguments[PEER]);
    fields[PREFETCHED] = Py_NewRef(said->prefetched == NULL ? arguments[NOTHING] : said->prefetched);
    fields[SIZE] = PyLong_FromSize_t(size_of(block));
    fields[LENGTH] = PyLong_FromLongLong(said->length);
    fields[CONNECTION] = Py_NewRef(arguments[said->closes ? CLOSED : KEPT]);
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

/* See webhookrx.speedups.Compiled.parse_head. */
PyObject *speedups_parse_head(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != ARGUMENTS || !PyBytes_Check(arguments[DATA]) || !PyBytes_Check(arguments[USUAL_METHOD]) ||
        !PyTuple_Check(arguments[NAMES])) {
        PyErr_SetString(PyExc_TypeError, "parse_head: see webhookrx.speedups.Compiled");
        return NULL;
    }
    /* A limit beyond what fits is as good as the largest that does. */
    Py_ssize_t most_target = PyNumber_AsSsize_t(arguments[TARGET_LIMIT], NULL);
    Py_ssize_t most_bytes = PyNumber_AsSsize_t(arguments[BLOCK_LIMIT], NULL);
    Py_ssize_t most_lines = PyNumber_AsSsize_t(arguments[COUNT_LIMIT], NULL);
    if ((most_target == -1 || most_bytes == -1 || most_lines == -1) && PyErr_Occurred())
        return NULL;
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(arguments[DATA]);
    const uint8_t *end = start + PyBytes_GET_SIZE(arguments[DATA]);
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
        outcome = text == NULL ? UNUSUAL : take_framing(&framing, name, value);
        if (outcome == TAKEN)
            outcome = prefetch(&framing, name, value, arguments[NAMES]);
    }
    PyObject *head = NULL;
    if (outcome == TAKEN && end - text >= 2 && text[1] == '\n' && framing.has_host)
        head = make_head(arguments, text + 2, &line, &framing);
    else if (outcome != FAILED)
        head = Py_NewRef(Py_None);
    Py_XDECREF(framing.prefetched);
    return head;
}

/* The most header lines that are recorded; and bytes that a member in JSON takes beside its name and value. */
enum { MOST_RECORDED = 128, AROUND_VALUE = 8 };

/* Members of an object, each behind a comma, and the hashes of their texts. */
typedef struct {
    uint8_t *output, *end;
    Py_hash_t seen[MOST_RECORDED];
    size_t count;
} Members;

/* Write the member of a header line, whose text is in `names`; see webhookrx.speedups.Compiled.recorded_headers. */
static Outcome record(Members *members, Span name, Span value, PyObject *names)
{
    PyObject *key = bytes_of(name), *text = key == NULL ? NULL : PyObject_GetItem(names, key);
    Py_XDECREF(key);
    if (text == NULL)
        return FAILED;
    size_t size = PyBytes_Check(text) ? (size_t)PyBytes_GET_SIZE(text) : 0;
    Py_hash_t hash = PyObject_Hash(text);
    bool taken = size && hash != -1 && members->count < MOST_RECORDED && is_plain_utf_8(value.start, value.end) &&
                 (size_t)(members->end - members->output) >= size + 6 * size_of(value) + AROUND_VALUE;
    for (size_t i = 0; i < members->count; i++) /* that two texts have one hash only leaves the head to Python */
        taken = taken && members->seen[i] != hash;
    if (taken) {
        members->seen[members->count++] = hash;
        *members->output = ',';
        memcpy(members->output + 1, PyBytes_AS_STRING(text), size);
        members->output += 1 + size;
        if (members->output[-1] == '"') { /* else the value is masked */
            members->output = write_json_escaped(value.start, value.end, members->output);
            memcpy(members->output, "\"]", 2);
            members->output += 2;
        }
    }
    Py_DECREF(text);
    return taken ? TAKEN : PyErr_Occurred() ? FAILED : UNUSUAL;
}

/* See webhookrx.speedups.Compiled.recorded_headers. */
PyObject *speedups_recorded_headers(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 2 || !PyBytes_Check(arguments[0]) || !PyDict_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "recorded_headers(block: bytes, names: dict)");
        return NULL;
    }
    const uint8_t *text = (const uint8_t *)PyBytes_AS_STRING(arguments[0]);
    size_t size = (size_t)PyBytes_GET_SIZE(arguments[0]);
    const uint8_t *end = text + size, *line_end = memchr(text, '\r', size);
    if (line_end == NULL || end - line_end < 4 || line_end[1] != '\n' || size > UNLOCKED_SIZE)
        Py_RETURN_NONE;
    size_t room = 6 * size + AROUND_VALUE * MOST_RECORDED;
    uint8_t *buffer = PyMem_Malloc(room);
    if (buffer == NULL)
        return PyErr_NoMemory();
    Members members = {.output = buffer, .end = buffer + room};
    Outcome outcome = TAKEN;
    for (text = line_end + 2; outcome == TAKEN && text < end && *text != '\r';) {
        Span name, value;
        text = read_line(text, end, &name, &value);
        outcome = text == NULL ? UNUSUAL : record(&members, name, value, arguments[1]);
    }
    PyObject *result = NULL;
    if (outcome == TAKEN && members.count && end - text == 2 && text[1] == '\n') {
        *buffer = '{'; /* in the place of the first comma */
        *members.output++ = '}';
        result = PyBytes_FromStringAndSize((const char *)buffer, members.output - buffer);
    } else if (outcome != FAILED)
        result = Py_NewRef(Py_None);
    PyMem_Free(buffer);
    return result;
}
