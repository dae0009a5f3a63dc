/* Heads of requests, by the grammar of webhookrx/http/grammar.py, which says why it is as strict as it is. */
#include "speedups.h"

/* Where a byte may stand. In a Host: in a name or an IPv4 address, or between brackets (RFC 3986 section 3.2.2). */
enum { TOKEN = 1, TARGET = 2, VALUE = 4, NAME = 8, ADDRESS = 16, DIGIT = 32 };
enum { VISIBLE = TARGET | VALUE, MARK = TOKEN | VISIBLE, COMMON = NAME | MARK };

/* Tokens: RFC 9110 section 5.6.2; values of headers, with obs-text: section 5.5. */
static const uint8_t kinds[256] = {
    ['\t'] = VALUE, [' '] = VALUE, ['!'] = COMMON, ['"'] = VISIBLE, ['#'] = TOKEN | VALUE, ['$' ... '\''] = COMMON,
    ['(' ... ')'] = VISIBLE | NAME, ['*' ... '+'] = COMMON, [','] = VISIBLE | NAME, ['-'] = COMMON,
    ['.'] = COMMON | ADDRESS, ['/'] = VISIBLE, ['0' ... '9'] = COMMON | ADDRESS | DIGIT, [':'] = VISIBLE | ADDRESS,
    [';'] = VISIBLE | NAME, ['<'] = VISIBLE, ['='] = VISIBLE | NAME, ['>' ... '@'] = VISIBLE,
    ['A' ... 'F'] = COMMON | ADDRESS, ['G' ... 'Z'] = COMMON, ['[' ... ']'] = VISIBLE, ['^'] = MARK, ['_'] = COMMON,
    ['`'] = MARK, ['a' ... 'f'] = COMMON | ADDRESS, ['g' ... 'z'] = COMMON, ['{'] = VISIBLE, ['|'] = MARK,
    ['}'] = VISIBLE, ['~'] = COMMON, [0x80 ... 0xFF] = VALUE,
};

static inline const uint8_t *skip_kind(const uint8_t *text, const uint8_t *end, uint8_t kind)
{
    while (text < end && kinds[*text] & kind)
        text++;
    return text;
}

static inline PyObject *bytes_of(Span span)
{
    return PyBytes_FromStringAndSize((const char *)span.start, span.end - span.start);
}

static inline bool is_blank(uint8_t byte) { return byte == ' ' || byte == '\t'; }

static inline uint8_t lower(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 0x20) : byte; }

/* Tell whether a text is, but for the case of its letters, below (-), the same as (0) or above (+) one in lower case. */
static inline int order_of(Span text, Span lower_case)
{
    int order = (size_of(text) > size_of(lower_case)) - (size_of(text) < size_of(lower_case));
    while (!order && text.start < text.end)
        order = lower(*text.start++) - *lower_case.start++;
    return order;
}

static inline bool is_same(Span text, Span lower_case) { return order_of(text, lower_case) == 0; }

/* Read the header line at `text`, its value without the blanks around it. Return what follows, NULL if it is none. */
static const uint8_t *read_line(const uint8_t *text, const uint8_t *end, Span *name, Span *value)
{
    name->start = text;
    name->end = text = skip_kind(text, end, TOKEN);
    if (text == name->start || text == end || *text != ':')
        return NULL;
    value->start = text + 1;
    value->end = text = skip_kind(skip(text + 1, end, CONTROL | DELETE), end, VALUE);
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
    line->method.end = text = skip_kind(text, end, TOKEN);
    size_t size = size_of(line->method);
    if (size == 0 || size > LONGEST_METHOD || is_equal(line->method, span_of("CONNECT")))
        return NULL;
    if (end - text < 2 || text[0] != ' ' || text[1] != '/')
        return NULL;
    line->path.start = ++text;
    while (text < end && kinds[*text] & TARGET && *text != '?')
        text++;
    line->path.end = text;
    if (text < end && *text == '?') {
        line->query.start = ++text;
        line->query.end = text = skip_kind(text, end, TARGET);
    }
    if (end - text < VERSION_SIZE || memcmp(text, version, VERSION_SIZE) != 0)
        return NULL;
    return text + VERSION_SIZE;
}

/* Tell whether a value of Host is well-formed: a name or an address, and a port or not (RFC 9110 section 7.2). */
static bool is_host(Span value)
{
    enum { COLON_AND_PORT = 6 };
    const uint8_t *text = skip_kind(value.start, value.end, NAME);
    if (text == value.start && text < value.end && *text == '[') {
        text = skip_kind(text + 1, value.end, ADDRESS);
        if (text == value.start + 1 || text == value.end || *text++ != ']')
            return false;
    }
    if (text == value.end)
        return true;
    return *text == ':' && value.end - text <= COLON_AND_PORT && skip_kind(text + 1, value.end, DIGIT) == value.end;
}

/* Read a Content-Length; -1 if it is not well-formed, or has more digits than fit. */
static int64_t length_of(Span value)
{
    enum { MOST_DIGITS = 18 };
    if (size_of(value) - 1 >= MOST_DIGITS || skip_kind(value.start, value.end, DIGIT) != value.end)
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

/* Note where a header line says the request ends, or the connection (RFC 9112, 6 and 9); false if that is unusual. */
static bool take_framing(Framing *framing, Span name, Span value)
{
    if (is_same(name, span_of("host"))) {
        if (framing->has_host || !is_host(value))
            return false;
        framing->has_host = true;
    } else if (is_same(name, span_of("content-length"))) {
        framing->length = framing->has_length ? -1 : length_of(value);
        framing->has_length = true;
        return framing->length >= 0;
    } else if (is_same(name, span_of("connection"))) {
        if (is_same(value, span_of("close")))
            framing->closes = true;
        else if (!is_same(value, span_of("keep-alive")))
            return false;
    } else if (is_same(name, span_of("transfer-encoding")) || is_same(name, span_of("expect")))
        return false;
    return true;
}

/* Append the value to the list of its name, if that is one of `names`, in order; false with an exception. */
static bool prefetch(Framing *framing, Span name, Span value, PyObject *names)
{
    for (Py_ssize_t first = 0, behind = PyTuple_GET_SIZE(names); first < behind;) {
        Py_ssize_t middle = (first + behind) / 2;
        PyObject *wanted = PyTuple_GET_ITEM(names, middle);
        if (!PyBytes_Check(wanted))
            return PyErr_SetString(PyExc_TypeError, "names: tuple[bytes, ...]"), false;
        int order = order_of(name, inside_of(wanted));
        *(order < 0 ? &behind : &first) = order < 0 ? middle : middle + 1;
        if (order != 0)
            continue;
        if (framing->prefetched == NULL && (framing->prefetched = PyDict_New()) == NULL)
            return false;
        PyObject *text = bytes_of(value), *empty = PyList_New(0), *values = NULL;
        if (text != NULL && empty != NULL)
            values = PyDict_SetDefault(framing->prefetched, wanted, empty);
        int failed = values == NULL ? -1 : PyList_Append(values, text);
        Py_XDECREF(text);
        Py_XDECREF(empty);
        return !failed;
    }
    return true;
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
    bool is_usual = is_equal(line->method, inside_of(arguments[USUAL_METHOD]));
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
PyObject *speedups_parse_head(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Span data;
    if (!read_arguments(arguments, count, ARGUMENTS, &data, 1))
        return NULL;
    if (!PyBytes_Check(arguments[USUAL_METHOD]) || !PyTuple_Check(arguments[NAMES]))
        return PyErr_Format(PyExc_TypeError, "usual_method: bytes, names: tuple[bytes, ...]");
    /* A limit beyond what fits is as good as the largest that does. */
    Py_ssize_t most_target = PyNumber_AsSsize_t(arguments[TARGET_LIMIT], NULL);
    Py_ssize_t most_bytes = PyNumber_AsSsize_t(arguments[BLOCK_LIMIT], NULL);
    Py_ssize_t most_lines = PyNumber_AsSsize_t(arguments[COUNT_LIMIT], NULL);
    if ((most_target == -1 || most_bytes == -1 || most_lines == -1) && PyErr_Occurred())
        return NULL;
    if (data.end - data.start > most_bytes) /* so that nothing behind it is looked at, whatever follows the head */
        data.end = data.start + most_bytes;
    RequestLine line = {0};
    const uint8_t *text = read_request_line(data.start, data.end, &line);
    if (text == NULL || (line.query.start ? line.query.end : line.path.end) - line.path.start > most_target)
        Py_RETURN_NONE;
    Framing framing = {0};
    bool is_taken = true;
    while (is_taken && text < data.end && *text != '\r') {
        Span name, value;
        text = most_lines-- > 0 ? read_line(text, data.end, &name, &value) : NULL;
        is_taken = text != NULL && take_framing(&framing, name, value) &&
                   prefetch(&framing, name, value, arguments[NAMES]);
    }
    PyObject *head = NULL;
    if (is_taken && data.end - text >= 2 && text[1] == '\n' && framing.has_host)
        head = make_head(arguments, text + 2, &line, &framing);
    else if (!PyErr_Occurred())
        head = Py_NewRef(Py_None);
    Py_XDECREF(framing.prefetched);
    return head;
}
