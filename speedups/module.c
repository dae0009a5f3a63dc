/* The module webhookrx._speedups. */
#include "speedups.h"

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef methods[] = {
    {"parse_head", FAST(speedups_parse_head), NULL},
    {"recorded_headers", FAST(speedups_recorded_headers), NULL},
    {"compact_object", speedups_compact_object, METH_O, NULL},
    {"decode_text", speedups_decode_text, METH_O, NULL},
    {"escape_text", FAST(speedups_escape_text), NULL},
    {"name_table", speedups_name_table, METH_O, NULL},
    {"line", FAST(speedups_line), NULL},
    {NULL, NULL, 0, NULL},
};

/* There is no state that changes, so each interpreter and each thread may have the module as it is. */
static PyModuleDef_Slot slots[] = {
#if defined(Py_mod_multiple_interpreters) /* Python 3.12 */
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if defined(Py_mod_gil) /* Python 3.13 */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "webhookrx._speedups",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__speedups(void) { return PyModuleDef_Init(&definition); }
