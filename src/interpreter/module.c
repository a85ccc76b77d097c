/* module.c - the zygote as Python sees it: one call that returns only in a forked interpreter.
 *
 * Stable ABI: one build serves every CPython from 3.9 on (PEP 384). */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/packet.h"
#include "contract/agent.h"
#include "interpreter/channel.h"
#include "interpreter/image/image.h"
#include "interpreter/memory.h"
#include "interpreter/zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

/* Python's signatures: every function gets its module, and NULL if it has no arguments. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static PyObject *raise_error(const error *err)
{
    PyErr_SetString(PyExc_OSError, err->text);
    return NULL;
}

static PyObject *raise_with_number(const error *err)
{
    PyObject *values = Py_BuildValue("(is)", err->os ? err->os : ENOTSUP, err->text);
    if (values)
        PyErr_SetObject(PyExc_OSError, values);
    Py_XDECREF(values);
    return NULL;
}

static PyObject *give_none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* ready(threads, warm_us, failure) tells the spawner that the imports are done, or what failed. */
static PyObject *ready(PyObject *self, PyObject *arguments)
{
    unsigned threads;
    unsigned long long warm_us;
    const char *failure;
    if (!PyArg_ParseTuple(arguments, "IKz", &threads, &warm_us, &failure))
        return NULL;
    struct zygote_ready message = { .version = ZYGOTE_VERSION,
                                    .threads = threads,
                                    .warm_us = warm_us,
                                    .memory_bytes = memory_resident() };
    /* No other process can read this memory from now on; its children become readable again behind
     * their walls. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        (void) fail_os(&message.err, "become unreadable");
    if (failure)
        (void) fail(&message.err, ERR_UNAVAILABLE, "%s", failure);
    error err;
    if (packet_send(ZYGOTE_SOCKET, ZYGOTE_READY, &message, sizeof message, NULL, 0, &err) < 0)
        return raise_error(&err);
    return give_none();
}

static PyObject *fill_holes(PyObject *self, PyObject *nothing)
{
    memory_fill_holes();
    return give_none();
}

static PyObject *settle(PyObject *self, PyObject *nothing)
{
    memory_settle();
    return give_none();
}

static PyObject *private_scratch(PyObject *self, PyObject *nothing)
{
    error err;
    return memory_mount_scratch(&err) < 0 ? raise_error(&err) : give_none();
}

/* serve(is_bare) returns (control, prime, slot, generation) in each forked interpreter, None when
 * the spawner has ended. is_bare: fork handlers of C libraries (pthread_atfork) do not run. */
static PyObject *serve(PyObject *self, PyObject *is_bare)
{
    const struct zygote_hooks hooks = { PyOS_BeforeFork, PyOS_AfterFork_Parent,
                                        PyOS_AfterFork_Child, is_bare == Py_True ? _Fork : fork };
    struct zygote_child child;
    error err;
    int outcome = zygote_serve(ZYGOTE_SOCKET, &hooks, &child, &err);
    if (outcome < 0)
        return raise_error(&err);
    if (outcome == ZYGOTE_ENDED)
        return give_none();
    return Py_BuildValue("(iIII)", child.control, child.prime, child.slot, child.generation);
}

/* image(fd, control): False when a fork has begun to write the image of this interpreter into fd;
 * True in every process restored from it, with control as the socket to init and without fd. */
static PyObject *image(PyObject *self, PyObject *arguments)
{
    static const struct zygote_hooks hooks = { PyOS_BeforeFork, PyOS_AfterFork_Parent,
                                               PyOS_AfterFork_Child, fork };
    int fd, control, verdict = -1;
    error err;
    if (!PyArg_ParseTuple(arguments, "ii", &fd, &control))
        return NULL;
    int outcome = image_take(fd, control, &hooks, &verdict, &err);
    if (outcome == IMAGE_TAKEN) {
        PyThreadState *thread = PyEval_SaveThread();
        int began = image_wait(verdict, &err);
        PyEval_RestoreThread(thread);
        outcome = began < 0 ? IMAGE_FAILED : outcome;
    }
    return outcome == IMAGE_FAILED ? raise_with_number(&err)
                                   : PyBool_FromLong(outcome == IMAGE_RESTORED);
}

/* lost(): how many threads and descriptors of the original a restored interpreter lacks. */
static PyObject *lost(PyObject *self, PyObject *nothing)
{
    unsigned threads, descriptors;
    image_lost(&threads, &descriptors);
    return Py_BuildValue("(II)", threads, descriptors);
}

/* print_error(type, value, traceback) is what the interpreter itself does with an exception that
 * was not caught: sets sys.last_*, calls sys.excepthook, and survives a hook that fails. */
static PyObject *print_error(PyObject *self, PyObject *arguments)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    if (!PyArg_ParseTuple(arguments, "OOO", &type, &value, &traceback))
        return NULL;
    Py_INCREF(type);
    Py_INCREF(value);
    if (traceback == Py_None)
        traceback = NULL;
    Py_XINCREF(traceback);
    PyErr_Restore(type, value, traceback);
    PyErr_PrintEx(1);
    return give_none();
}

static PyObject *open_channel(PyObject *self, PyObject *descriptor)
{
    long fd = PyLong_AsLong(descriptor);
    if (fd == -1 && PyErr_Occurred())
        return NULL;
    channel_open((int) fd);
    image_remember_streams();
    return give_none();
}

/* receive() waits for (kind, id, payload, descriptor), the last -1 unless one came; None when init
 * has ended. Other threads run meanwhile. */
static PyObject *receive(PyObject *self, PyObject *nothing)
{
    static struct {
        struct agent_frame head;
        char payload[AGENT_PAYLOAD_MAX];
    } frame;
    ssize_t size;
    int descriptor = -1;
    do {
        PyThreadState *thread = PyEval_SaveThread();
        size = channel_receive(&frame, sizeof frame, &descriptor);
        int why = errno;
        PyEval_RestoreThread(thread);
        errno = why;
    } while (size < 0 && errno == EINTR);
    if (size < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    if ((size_t) size < sizeof frame.head)
        return give_none();
    return Py_BuildValue("(iIy#i)", (int) frame.head.kind, (unsigned) frame.head.id, frame.payload,
                         (Py_ssize_t) ((size_t) size - sizeof frame.head), descriptor);
}

/* unpack(payload of an EXECUTE) gives (mode, flags, count of names, texts, code): names are str,
 * and the variables behind them bytes. */
static PyObject *unpack(PyObject *self, PyObject *payload)
{
    struct agent_execute head = { 0 };
    char *at;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(payload, &at, &size) < 0 || !at)
        return NULL;
    if ((size_t) size >= sizeof head)
        memcpy(&head, at, sizeof head);
    if ((size_t) size < sizeof head || head.code_size > (size_t) size - sizeof head)
        return PyErr_Format(PyExc_ValueError, "the request is cut short");
    const char *end = at + size - head.code_size;
    const Py_ssize_t names = 2 + head.arguments;
    const Py_ssize_t count = names + head.variables;
    PyObject *texts = PyList_New(count);
    at += sizeof head;
    for (Py_ssize_t i = 0; texts && i < count; i++) {
        char *stop = memchr(at, '\0', (size_t) (end - at));
        PyObject *text = NULL;
        if (stop)
            text = i < names ? PyUnicode_DecodeUTF8(at, stop - at, "surrogateescape")
                             : PyBytes_FromStringAndSize(at, stop - at);
        if (!stop || !text || PyList_SetItem(texts, i, text) < 0) {
            Py_DECREF(texts);
            return stop ? NULL : PyErr_Format(PyExc_ValueError, "a text is cut short");
        }
        at = stop + 1;
    }
    return texts ? Py_BuildValue("(IInNy#)", head.mode, head.flags, names, texts, end,
                                 (Py_ssize_t) head.code_size)
                 : NULL;
}

/* result(id, what, json): no other thread and no signal handler runs before it has sent all. */
static PyObject *result(PyObject *self, PyObject *arguments)
{
    unsigned id, what;
    const char *json;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "IIy#", &id, &what, &json, &size))
        return NULL;
    channel_send_result(id, (uint16_t) what, json, (size_t) size);
    return give_none();
}

/* hold_value(id, json) */
static PyObject *hold_value(PyObject *self, PyObject *arguments)
{
    unsigned id;
    const char *json;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(arguments, "Iy#", &id, &json, &size))
        return NULL;
    channel_hold_value(id, json, (size_t) size);
    return give_none();
}

/* executed(id, exit_code, signal, ends, count) */
static PyObject *executed(PyObject *self, PyObject *arguments)
{
    unsigned id;
    int exit_code, signal, ends;
    unsigned count;
    if (!PyArg_ParseTuple(arguments, "IiipI", &id, &exit_code, &signal, &ends, &count))
        return NULL;
    channel_send_executed(
        id, &(struct agent_executed){
                .exit_code = exit_code, .signal = signal, .ends = ends ? 1U : 0U, .count = count });
    return give_none();
}

/* deafen() ignores SIGINT from now on, and discards those that have come. In C, since
 * KeyboardInterrupt may be raised between any two instructions of Python. */
static PyObject *deafen(PyObject *self, PyObject *nothing)
{
    enum { ROUNDS = 64 }; /* of handlers for other signals, which may raise as well */
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void) sigaction(SIGINT, &ignore, NULL);
    for (unsigned round = 0; round < ROUNDS && PyErr_CheckSignals() < 0; round++)
        PyErr_Clear();
    return give_none();
}

/* What a numpy BitGenerator's capsule holds (numpy/random/bitgen.h); the first word matters. */
struct bit_generator {
    struct twister {
        uint32_t words[624];
        int position;
    } * state;
};

static struct twister *twister_of(PyObject *capsule)
{
    const struct bit_generator *bits = PyCapsule_GetPointer(capsule, "BitGenerator");
    if (!bits)
        PyErr_Clear();
    return bits ? bits->state : NULL;
}

/* has_bits(capsule, words, position): does the generator's memory hold this state? */
static PyObject *has_bits(PyObject *self, PyObject *arguments)
{
    PyObject *capsule;
    const char *words;
    Py_ssize_t size;
    int position;
    if (!PyArg_ParseTuple(arguments, "Oy#i", &capsule, &words, &size, &position))
        return NULL;
    const struct twister *state = twister_of(capsule);
    return PyBool_FromLong(state && size == sizeof state->words &&
                           memcmp(state->words, words, sizeof state->words) == 0 &&
                           state->position == position);
}

/* renew_bits(capsule) fills it with random bytes of the kernel; false if there are too few. */
static PyObject *renew_bits(PyObject *self, PyObject *capsule)
{
    struct twister *state = twister_of(capsule);
    bool is_new = state && getrandom(state->words, sizeof state->words, 0) == sizeof state->words;
    if (is_new)
        state->position = 624; /* all words are used: the next draw generates new ones */
    return PyBool_FromLong(is_new);
}

static PyMethodDef methods[] = {
    { "open_channel", open_channel, METH_O, "Talk to init by this descriptor from now on." },
    { "receive", receive, METH_NOARGS, "Wait for a message of init." },
    { "unpack", unpack, METH_O, "Parse the payload of an EXECUTE." },
    { "result", result, METH_VARARGS, "Send what a cell showed, or why it failed." },
    { "hold_value", hold_value, METH_VARARGS, "Send the value of a cell, with its end." },
    { "executed", executed, METH_VARARGS, "Report that the code has ended." },
    { "deafen", deafen, METH_NOARGS, "Ignore SIGINT, and forget those that have come." },
    { "ready", ready, METH_VARARGS, "Tell the spawner that this zygote can be used." },
    { "settle", settle, METH_NOARGS, "Put the heap into huge pages." },
    { "fill_holes", fill_holes, METH_NOARGS, "Leave no free block between used ones." },
    { "private_scratch", private_scratch, METH_NOARGS, "Mount folders that imports may write to." },
    { "has_bits", has_bits, METH_VARARGS, "Does a bit generator of numpy have this state?" },
    { "renew_bits", renew_bits, METH_O, "Fill a bit generator of numpy from the kernel." },
    { "serve", serve, METH_O, "Fork interpreters; returns in each of them." },
    { "image", image, METH_VARARGS,
      "Take an image of this interpreter; also returns in a restored one." },
    { "lost", lost, METH_NOARGS, "How many threads and descriptors the image lacks." },
    { "print_error", print_error, METH_VARARGS, "Do what Python does with an uncaught exception." },
    { NULL, NULL, 0, NULL },
};

/* The numbers of contract/ for _glovebox_kernel.py, so that they are written once. */
static const struct {
    const char *name;
    long value;
} numbers[] = {
    { "EXECUTE", AGENT_EXECUTE },          { "RESULT", AGENT_RESULT },
    { "EXECUTED", AGENT_EXECUTED },        { "IMAGE", AGENT_IMAGE },
    { "SCRIPT", AGENT_MODE_SCRIPT },       { "CELL", AGENT_MODE_CELL },
    { "PRIME", AGENT_MODE_PRIME },         { "WRITE", AGENT_EXECUTE_WRITE },
    { "LAST", AGENT_EXECUTE_LAST },        { "VALUE", AGENT_RESULT_VALUE },
    { "DISPLAY", AGENT_RESULT_DISPLAY },   { "ERROR", AGENT_RESULT_ERROR },
    { "PAYLOAD_MOST", AGENT_PAYLOAD_MAX }, { "PRIME_PRINT", ZYGOTE_PRIME_PRINT },
    { "PRIME_WORK", ZYGOTE_PRIME_WORK },
};

static int add_numbers(PyObject *module)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *) add_numbers },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_glovebox", .m_doc = "glovebox's zygote",
    .m_size = 0,           .m_methods = methods,  .m_slots = slots,
};

PyMODINIT_FUNC PyInit__glovebox(void);
PyMODINIT_FUNC PyInit__glovebox(void)
{
    return PyModuleDef_Init(&definition);
}
