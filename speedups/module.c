/* The module webhookrx._speedups. */
#include "speedups.h"

#define FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

/* The names of parameters, as in webhookrx.speedups.Compiled, by which a module of other sources is known. */
#define TAKES(function, parameters) function "($module, " parameters ", /)\n--\n\n"

static PyMethodDef methods[] = {
    {"parse_head", FAST(speedups_parse_head),
     TAKES("parse_head", "data, target_limit, block_limit, count_limit, peer, kept, closed, usual_method, names, "
                         "nothing, lines_type, head_type")},
    {"compact_object", speedups_compact_object, METH_O, TAKES("compact_object", "body")},
    {"escape_text", FAST(speedups_escape_text), TAKES("escape_text", "text, before, after, for_json, for_people")},
    {"name_table", speedups_name_table, METH_O, TAKES("name_table", "names")},
    {"line", FAST(speedups_line),
     TAKES("line", "body, prefix, before, after, host, source, seen, tags, identifier, groups, special, received, "
                   "keeps_text")},
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
    PyModuleDef_HEAD_INIT, .m_name = "webhookrx._speedups", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__speedups(void) { return PyModuleDef_Init(&definition); }
