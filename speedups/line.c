/*
 * Lines of the log: what webhookrx.intake.judge and webhookrx.message.encoders make of a usual request.
 *
 * A line is {"ISODATE":…,"HOST":…,"MESSAGE":…,"SOURCE":… then the pairs of the body, what was seen of the request, and
 * "RAWMSG_SIZE":…,"TAGS":…,"RCPTID":…}. All but MESSAGE, the pairs and numbers comes from Python, as finished JSON.
 */
#include "speedups.h"

/* Limits of webhookrx.intake.pairs: the bytes repeated in front of names are what name_budget() grants any body. */
enum { MAX_PAIRS = 10 * 1000, MAX_REPEATED = 64 * 1024 };

/* Bytes of a pair's name, and of a body and of its pairs that need no memory but the stack's; slots of a table. */
enum { MAX_NAME = 1024, SMALL_BODY = 8 * 1024, SMALL_PAIRS = 24 * 1024, TABLE_SLOTS = 1024, MAX_DECIMAL = 20 };

/* Add names, each of which has a NUL behind it. */
static void add_names(uint32_t *slots, size_t mask, Span names)
{
    for (const uint8_t *stop; (stop = memchr(names.start, 0, size_of(names))) != NULL; names.start = stop + 1)
        add_name(slots, mask, hash_name((Span){names.start, stop}, 0));
}

/* name_table(names): return a set of names as line() takes it. */
PyObject *speedups_name_table(PyObject *Py_UNUSED(module), PyObject *names)
{
    uint32_t slots[TABLE_SLOTS] = {0};
    Span given;
    if (!read_arguments(&names, 1, 1, &given, 1))
        return NULL;
    add_names(slots, TABLE_SLOTS - 1, given);
    return PyBytes_FromStringAndSize((const char *)slots, sizeof slots);
}

/* -- pairs --------------------------------------------------------------------------------------------------------- */

/* The pairs of one body. The values of HOST and MESSAGE are cut out: these stand in front of a line. */
typedef struct {
    Scan scan;
    const uint32_t *special;
    size_t pairs_left, repeated_left;
    Span host, message;     /* empty, and at the begin, where the body has none */
    uint8_t name[MAX_NAME]; /* of the current pair, as far as it is known */
} Pairs;

static inline Span name_of(const Pairs *pairs, size_t size) { return (Span){pairs->name, pairs->name + size}; }

/* Return whether a name, or its begin up to the second dot in names of "webhook.", is a special one. */
static bool is_special(const Pairs *pairs, Span name, uint64_t hash)
{
    if (has_name(pairs->special, TABLE_SLOTS - 1, hash))
        return true;
    if (size_of(name) < 8 || memcmp(name.start, "webhook.", 8) != 0)
        return false;
    name.end = memchr(name.start + 8, '.', size_of(name) - 8);
    return name.end != NULL && has_name(pairs->special, TABLE_SLOTS - 1, hash_name(name, 0));
}

/* Write a pair whose value is next. */
static bool write_pair(Pairs *pairs, Span name, int depth)
{
    *pairs->scan.output++ = ',';
    write_name(&pairs->scan, name);
    return compact_value(&pairs->scan, depth + 1);
}

static bool write_members(Pairs *pairs, size_t size, int depth);

/* Write the member whose joined name has so many bytes, and whose value is next. */
static bool write_member(Pairs *pairs, size_t size, int depth)
{
    Scan *scan = &pairs->scan;
    Span name = name_of(pairs, size);
    uint64_t hash = hash_name(name, 0);
    if (!add_name(scan->slots, scan->mask, hash)) /* that of an object, too, so that no other member has it */
        return false;
    if (!is_special(pairs, name, hash))
        return peek(scan) == '{' ? write_members(pairs, size, depth + 1) : write_pair(pairs, name, depth);
    Span *front = is_equal(name, span_of("HOST")) ? &pairs->host : &pairs->message;
    bool is_front = front == &pairs->host || is_equal(name, span_of("MESSAGE"));
    if (!is_front || peek(scan) == '{') /* the members of an object would be pairs */
        return false;
    front->start = scan->output;
    bool is_taken = compact_value(scan, 2);
    front->end = scan->output;
    return is_taken;
}

/* Count one pair more, with so many bytes in front of its own name. */
static bool spend(Pairs *pairs, size_t repeated)
{
    if (!pairs->pairs_left || repeated > pairs->repeated_left)
        return false;
    pairs->pairs_left--;
    pairs->repeated_left -= repeated;
    return true;
}

/* Write the members of an object. So many bytes of their names are known: the prefix, or the name of the object. */
static bool write_members(Pairs *pairs, size_t size, int depth)
{
    Scan *scan = &pairs->scan;
    bool is_last;
    if (depth > MAX_NESTING || !open_container(scan, '}', &is_last))
        return false;
    if (depth > 1 && is_last) { /* without members it is the value of a pair */
        *scan->output++ = ',';
        write_name(scan, name_of(pairs, size));
        scan->output = put(scan->output, span_of("{}"));
    } else if (depth > 1)
        pairs->name[size++] = '.';
    while (!is_last) {
        Span name;
        if (!read_name(scan, &name) || size_of(name) >= MAX_NAME - size || !spend(pairs, size))
            return false;
        memcpy(pairs->name + size, name.start, size_of(name));
        if (!write_member(pairs, size + size_of(name), depth) || !next_member(scan, '}', &is_last))
            return false;
    }
    return true;
}

/* Write a number in decimal, with at least so many digits, at the end of MAX_DECIMAL bytes. */
static Span write_decimal(uint64_t number, size_t digits, uint8_t *output)
{
    Span written = {output + MAX_DECIMAL, output + MAX_DECIMAL};
    for (uint8_t *place = output + MAX_DECIMAL; number || size_of(written) < digits; number /= 10) {
        *--place = (uint8_t)('0' + number % 10);
        written.start = place;
    }
    return written;
}

/* Write the elements of an array: the prefix and its number are the name of each. */
static bool write_elements(Pairs *pairs, size_t prefix)
{
    Scan *scan = &pairs->scan;
    bool is_last;
    if (!open_container(scan, ']', &is_last))
        return false;
    for (uint64_t number = 1; !is_last; number++) {
        uint8_t buffer[MAX_DECIMAL];
        Span digits = write_decimal(number, 1, buffer);
        memcpy(pairs->name + prefix, digits.start, size_of(digits));
        Span name = name_of(pairs, prefix + size_of(digits));
        uint64_t hash = hash_name(name, 0);
        /* Quotes and the colon are not in the body either. No element has the name of another one. */
        bool is_known = is_special(pairs, name, hash) || has_name(scan->slots, scan->mask, hash);
        bool is_taken = !is_known && spend(pairs, size_of(name) + 3) && write_pair(pairs, name, 1);
        if (!is_taken || !next_member(scan, ']', &is_last))
            return false;
    }
    return true;
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

/* The arguments of line(), in their order: bytes up to SPECIAL. */
enum { BODY, PREFIX, BEFORE, AFTER, HOST, SOURCE, SEEN, TAGS, IDENTIFIER, GROUPS, SPECIAL, RECEIVED, KEEPS_TEXT };

/* Read the body, and write its pairs if it has some; return whether it may be taken. end_scan() must follow. */
static bool write_pairs(Pairs *pairs, const Span *given, uint8_t *output)
{
    Scan *scan = &pairs->scan;
    Span prefix = given[PREFIX];
    if (!begin_scan(scan, given[BODY], output))
        return false;
    if (!size_of(given[SPECIAL]))
        return true;
    if (size_of(prefix) > MAX_NAME - MAX_DECIMAL)
        return false;
    memcpy(pairs->name, prefix.start, size_of(prefix));
    add_names(scan->slots, scan->mask, given[GROUPS]);
    bool is_taken = peek(scan) == '{' ? write_members(pairs, size_of(prefix), 1)
                                      : peek(scan) == '[' && write_elements(pairs, size_of(prefix));
    return is_taken && scan->text == scan->end;
}

/* Return the line of what is given and of the written pairs. `text` is the size of the body as MESSAGE, or NULL. */
static PyObject *join_line(
    const Span *given, long long received, const Pairs *pairs, const uint8_t *begin, const size_t *text)
{
    Span body = given[BODY], host = pairs->host, message = pairs->message;
    Span first = host.end < message.end ? host : message, second = host.end < message.end ? message : host;
    bool has_host = size_of(host) && !is_equal(host, span_of("null")) && !is_equal(host, span_of("\"\""));
    uint8_t fraction[MAX_DECIMAL], size[MAX_DECIMAL];
    const Span parts[] = {
        given[BEFORE], write_decimal((uint64_t)received / 1000 % 1000000, 6, fraction), given[AFTER],
        has_host ? host : given[HOST],
        span_of(text ? ",\"MESSAGE\":\"" : size_of(message) ? ",\"MESSAGE\":" : ""),
        text ? body : message, span_of(text ? "\"" : ""), given[SOURCE],
        {begin, first.start}, {first.end, second.start}, {second.end, pairs->scan.output},
        given[SEEN], write_decimal(size_of(body), 1, size), given[TAGS], given[IDENTIFIER], span_of("\"}\n"),
    };
    enum { TEXT = 5, PARTS = sizeof parts / sizeof *parts };
    size_t total = text ? *text - size_of(body) : 0;
    for (size_t place = 0; place < PARTS; place++)
        total += size_of(parts[place]);
    PyObject *line = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (line == NULL)
        return NULL;
    PyThreadState *state = unlock(size_of(body));
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(line);
    for (size_t place = 0; place < PARTS; place++) {
        bool is_text = place == TEXT && text != NULL;
        output = is_text ? write_json_escaped(body, output) : put(output, parts[place]);
    }
    lock(state);
    return line;
}

PyObject *speedups_line(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Span given[RECEIVED];
    if (!read_arguments(arguments, count, KEEPS_TEXT + 1, given, RECEIVED))
        return NULL;
    long long received = PyLong_AsLongLong(arguments[RECEIVED]);
    if (PyErr_Occurred())
        return NULL;
    Span identifier = given[IDENTIFIER];
    bool needs_escape = skip(identifier.start, identifier.end, AT_JSON) < identifier.end || !is_plain_utf_8(identifier);
    size_t table = size_of(given[SPECIAL]), size = size_of(given[BODY]);
    if (received < 0 || size > MAX_BODY || (table && table != TABLE_SLOTS * sizeof(uint32_t)) || needs_escape)
        Py_RETURN_NONE;
    uint8_t small[SMALL_PAIRS], *output = small;
    size_t room = SMALL_PAIRS;
    if (size > SMALL_BODY && table) {
        room = size + MAX_REPEATED;
        if ((output = PyMem_RawMalloc(room)) == NULL)
            return PyErr_NoMemory();
    }
    Pairs pairs;
    pairs.special = (const uint32_t *)(const void *)given[SPECIAL].start; /* aligned, as all that bytes objects hold */
    pairs.pairs_left = MAX_PAIRS;
    pairs.repeated_left = table ? room - size : 0; /* whatever else is written was read before */
    pairs.host = pairs.message = (Span){output, output};
    PyThreadState *state = unlock(size);
    bool is_taken = write_pairs(&pairs, given, output);
    bool is_text = is_taken && arguments[KEEPS_TEXT] == Py_True && !size_of(pairs.message);
    size_t text = is_text ? json_escaped_size(given[BODY]) : 0;
    lock(state);
    PyObject *line = is_taken ? join_line(given, received, &pairs, output, is_text ? &text : NULL) : Py_NewRef(Py_None);
    end_scan(&pairs.scan);
    if (output != small)
        PyMem_RawFree(output);
    return line;
}
