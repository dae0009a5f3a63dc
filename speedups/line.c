/* Lines of the log: what the receiver saw, and the body as text and as pairs. */
#include "speedups.h"

/*
 * text_line(body, before, after): return before, the body as the inside of a JSON string, and after; None unless the body
 * is UTF-8 without misleading characters and at most as long as work under the interpreter's lock may be.
 */
PyObject *speedups_text_line(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !PyBytes_Check(arguments[0]) || !PyBytes_Check(arguments[1]) || !PyBytes_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "text_line(body: bytes, before: bytes, after: bytes)");
        return NULL;
    }
    const uint8_t *body = (const uint8_t *)PyBytes_AS_STRING(arguments[0]);
    size_t size = (size_t)PyBytes_GET_SIZE(arguments[0]);
    size_t before = (size_t)PyBytes_GET_SIZE(arguments[1]), after = (size_t)PyBytes_GET_SIZE(arguments[2]);
    if (size > UNLOCKED_SIZE || !is_plain_utf_8(body, body + size))
        Py_RETURN_NONE;
    uint8_t *buffer = PyMem_Malloc(before + 6 * size + after);
    if (buffer == NULL)
        return PyErr_NoMemory();
    memcpy(buffer, PyBytes_AS_STRING(arguments[1]), before);
    uint8_t *end = write_json_escaped(body, body + size, buffer + before);
    memcpy(end, PyBytes_AS_STRING(arguments[2]), after);
    PyObject *line = PyBytes_FromStringAndSize((const char *)buffer, end + after - buffer);
    PyMem_Free(buffer);
    return line;
}
