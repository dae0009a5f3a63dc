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

/* A part of a line, in memory that something else owns. */
typedef struct {
    const uint8_t *text;
    size_t size;
} Part;

/* Add names, each of which has a NUL behind it. */
static void add_names(uint32_t *slots, size_t mask, Part names)
{
    const uint8_t *end = names.text + names.size, *stop;
    for (const uint8_t *name = names.text; (stop = memchr(name, 0, (size_t)(end - name))) != NULL; name = stop + 1)
        add_name(slots, mask, hash_name(name, (size_t)(stop - name), 0));
}

/* name_table(names): return a set of names as line() takes it. */
PyObject *speedups_name_table(PyObject *Py_UNUSED(module), PyObject *names)
{
    uint32_t slots[TABLE_SLOTS] = {0};
    Part part;
    if ((part.text = read_bytes(names, &part.size)) == NULL)
        return NULL;
    add_names(slots, TABLE_SLOTS - 1, part);
    return PyBytes_FromStringAndSize((const char *)slots, sizeof slots);
}

/* -- pairs --------------------------------------------------------------------------------------------------------- */

/* The pairs of one body. The values of HOST and MESSAGE are cuts among them: these stand in front of a line. */
typedef struct {
    Scan scan;
    const uint32_t *special;
    size_t pairs_left, repeated_left, cut_count;
    Part cuts[2], *host, *message;
    uint8_t name[MAX_NAME]; /* of the current pair, as far as it is known */
} Pairs;

/* Return whether a name, or its begin up to the second dot in names of "webhook.", is a special one. */
static bool is_special(const Pairs *pairs, size_t size, uint64_t hash)
{
    if (has_name(pairs->special, TABLE_SLOTS - 1, hash, NULL))
        return true;
    if (size < 8 || memcmp(pairs->name, "webhook.", 8) != 0)
        return false;
    const uint8_t *dot = memchr(pairs->name + 8, '.', size - 8);
    hash = dot == NULL ? 0 : hash_name(pairs->name, (size_t)(dot - pairs->name), 0);
    return dot != NULL && has_name(pairs->special, TABLE_SLOTS - 1, hash, NULL);
}

/* Write the value of HOST or MESSAGE, unless it is an object, whose members would be pairs. */
static bool write_front(Pairs *pairs, Part **front)
{
    Part *cut = *front = &pairs->cuts[pairs->cut_count++]; /* each of the two names comes once */
    cut->text = pairs->scan.output;
    if (peek(&pairs->scan) == '{' || !compact_value(&pairs->scan, 2))
        return false;
    cut->size = (size_t)(pairs->scan.output - cut->text);
    return true;
}

/* Write a pair whose name has so many bytes, and whose value is next. */
static bool write_pair(Pairs *pairs, size_t size, int depth)
{
    *pairs->scan.output++ = ',';
    write_name(&pairs->scan, pairs->name, size);
    return compact_value(&pairs->scan, depth + 1);
}

/* Return whether an object with members is next. */
static bool has_members(const Scan *scan)
{
    if (peek(scan) != '{')
        return false;
    const uint8_t *next = scan->text + 1;
    while (next < scan->end && *next <= ' ')
        next++;
    return next < scan->end && *next != '}';
}

static bool write_members(Pairs *pairs, size_t size, int depth);

/* Write the member whose joined name has so many bytes, and whose value is next. */
static bool write_member(Pairs *pairs, size_t size, int depth)
{
    uint64_t hash = hash_name(pairs->name, size, 0);
    if (!add_name(pairs->scan.slots, pairs->scan.mask, hash)) /* that of an object, too, so that no other member has it */
        return false;
    if (is_special(pairs, size, hash)) {
        if (size == 4 && memcmp(pairs->name, "HOST", 4) == 0)
            return write_front(pairs, &pairs->host);
        return size == 7 && memcmp(pairs->name, "MESSAGE", 7) == 0 && write_front(pairs, &pairs->message);
    }
    if (!has_members(&pairs->scan))
        return write_pair(pairs, size, depth);
    pairs->name[size] = '.';
    return write_members(pairs, size + 1, depth + 1);
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

/* Write the members of an object. So many bytes of their names are known: the prefix, and the names of outer objects. */
static bool write_members(Pairs *pairs, size_t size, int depth)
{
    Scan *scan = &pairs->scan;
    bool is_last;
    if (depth > MAX_NESTING || !open_container(scan, '}', &is_last))
        return false;
    while (!is_last) {
        const uint8_t *name;
        size_t more;
        if (!read_name(scan, &name, &more) || more >= MAX_NAME - size || !spend(pairs, size))
            return false;
        memcpy(pairs->name + size, name, more);
        if (!write_member(pairs, size + more, depth) || !next_member(scan, '}', &is_last))
            return false;
    }
    return true;
}

/* Write a number in decimal, with at least so many digits, and return how many it has. */
static size_t write_decimal(uint64_t number, size_t digits, uint8_t *output)
{
    uint8_t reversed[MAX_DECIMAL];
    size_t size = 0;
    for (; number || size < digits; number /= 10)
        reversed[size++] = (uint8_t)('0' + number % 10);
    for (size_t place = 0; place < size; place++)
        output[place] = reversed[size - 1 - place];
    return size;
}

/* Write the elements of an array: the prefix and its number are the name of each. */
static bool write_elements(Pairs *pairs, size_t prefix)
{
    Scan *scan = &pairs->scan;
    bool is_last;
    if (!open_container(scan, ']', &is_last))
        return false;
    for (uint64_t number = 1; !is_last; number++) {
        size_t size = prefix + write_decimal(number, 1, pairs->name + prefix);
        uint64_t hash = hash_name(pairs->name, size, 0);
        /* Quotes and the colon are not in the body either. No element has the name of another one. */
        if (!spend(pairs, size + 3) || is_special(pairs, size, hash) || has_name(scan->slots, scan->mask, hash, NULL))
            return false;
        if (!write_pair(pairs, size, 1) || !next_member(scan, ']', &is_last))
            return false;
    }
    return true;
}

/* -- lines --------------------------------------------------------------------------------------------------------- */

/* The arguments of line(), in their order: bytes up to SPECIAL. */
enum { BODY, PREFIX, BEFORE, AFTER, HOST, SOURCE, SEEN, TAGS, IDENTIFIER, GROUPS, SPECIAL, RECEIVED, KEEPS_TEXT, COUNT };

static bool is_inside_string(Part text)
{
    const uint8_t *end = text.text + text.size;
    return find_json_escape(text.text, end) == end && is_plain_utf_8(text.text, end);
}

/* Read the body, and write its pairs if it has some; return whether it may be taken. end_scan() must follow. */
static bool write_pairs(Pairs *pairs, const Part *given, uint8_t *output)
{
    Scan *scan = &pairs->scan;
    Part body = given[BODY], prefix = given[PREFIX];
    if (!begin_scan(scan, body.text, body.size, output))
        return false;
    if (!given[SPECIAL].size)
        return true;
    if (prefix.size > MAX_NAME - MAX_DECIMAL)
        return false;
    memcpy(pairs->name, prefix.text, prefix.size);
    add_names(scan->slots, scan->mask, given[GROUPS]);
    bool is_object = peek(scan) == '{';
    if (!is_object && peek(scan) != '[')
        return false;
    return (is_object ? write_members(pairs, prefix.size, 1) : write_elements(pairs, prefix.size)) && is_at_end(scan);
}

static bool is_empty_value(const Part *value)
{
    return (value->size == 4 && memcmp(value->text, "null", 4) == 0) || (value->size == 2 && value->text[0] == '"');
}

/* Return the line of what is given, and of pairs that were written. `text` is the size of the body as MESSAGE, if it is. */
static PyObject *join_line(
    const Part *given, long long received, const Pairs *pairs, const uint8_t *begin, const size_t *text)
{
    Part body = given[BODY], message = {NULL, 0}, mark = {NULL, 0}, closing = {NULL, 0}, runs[3] = {{NULL, 0}};
    if (pairs->message != NULL) {
        message = *pairs->message;
        mark = (Part){(const uint8_t *)",\"MESSAGE\":", 11};
    } else if (text != NULL) {
        message.size = *text; /* without bytes of its own: the body, escaped */
        mark = (Part){(const uint8_t *)",\"MESSAGE\":\"", 12};
        closing = (Part){(const uint8_t *)"\"", 1};
    }
    for (size_t place = 0; place < pairs->cut_count; place++) {
        runs[place] = (Part){begin, (size_t)(pairs->cuts[place].text - begin)};
        begin = pairs->cuts[place].text + pairs->cuts[place].size;
    }
    runs[2] = (Part){begin, (size_t)(pairs->scan.output - begin)};
    uint8_t fraction[MAX_DECIMAL], size[MAX_DECIMAL];
    write_decimal((uint64_t)received / 1000 % 1000000, 6, fraction);
    size_t digits = write_decimal(body.size, 1, size);
    bool has_host = pairs->host != NULL && !is_empty_value(pairs->host);
    const Part parts[] = {
        given[BEFORE], {fraction, 6}, given[AFTER], has_host ? *pairs->host : given[HOST], mark, message, closing,
        given[SOURCE], runs[0], runs[1], runs[2], given[SEEN], {size, digits}, given[TAGS], given[IDENTIFIER],
        {(const uint8_t *)"\"}\n", 3},
    };
    size_t total = 0;
    for (size_t place = 0; place < sizeof parts / sizeof *parts; place++)
        total += parts[place].size;
    PyObject *line = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (line == NULL)
        return NULL;
    PyThreadState *state = unlock(body.size);
    uint8_t *output = (uint8_t *)PyBytes_AS_STRING(line);
    for (size_t place = 0; place < sizeof parts / sizeof *parts; place++) {
        Part part = parts[place];
        if (part.text != NULL)
            memcpy(output, part.text, part.size);
        else if (part.size)
            write_json_escaped(body.text, body.text + body.size, output);
        output += part.size;
    }
    lock(state);
    return line;
}

PyObject *speedups_line(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Part given[RECEIVED];
    if (count != COUNT)
        return PyErr_Format(PyExc_TypeError, "line() takes %d arguments", COUNT);
    for (int place = BODY; place <= SPECIAL; place++)
        if ((given[place].text = read_bytes(arguments[place], &given[place].size)) == NULL)
            return NULL;
    long long received = PyLong_AsLongLong(arguments[RECEIVED]);
    if (PyErr_Occurred())
        return NULL;
    size_t table = given[SPECIAL].size, size = given[BODY].size;
    if (received < 0 || size > MAX_BODY || (table && table != TABLE_SLOTS * sizeof(uint32_t)) || !is_inside_string(given[IDENTIFIER]))
        Py_RETURN_NONE;
    uint8_t small[SMALL_PAIRS], *output = small;
    size_t room = SMALL_PAIRS;
    if (size > SMALL_BODY && table) {
        room = size + MAX_REPEATED;
        if ((output = PyMem_RawMalloc(room)) == NULL)
            return PyErr_NoMemory();
    }
    Pairs pairs;
    pairs.special = (const uint32_t *)(const void *)given[SPECIAL].text; /* aligned, as all that bytes objects hold */
    pairs.pairs_left = MAX_PAIRS;
    pairs.repeated_left = room - size; /* whatever else is written was read before */
    pairs.cut_count = 0;
    pairs.host = pairs.message = NULL;
    PyThreadState *state = unlock(size);
    bool is_taken = write_pairs(&pairs, given, output), keeps_text = arguments[KEEPS_TEXT] == Py_True;
    size_t text_size = is_taken && keeps_text ? json_escaped_size(given[BODY].text, given[BODY].text + size) : 0;
    lock(state);
    PyObject *line =
        is_taken ? join_line(given, received, &pairs, output, keeps_text ? &text_size : NULL) : Py_NewRef(Py_None);
    end_scan(&pairs.scan);
    if (output != small)
        PyMem_RawFree(output);
    return line;
}
