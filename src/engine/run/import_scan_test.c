/* import_scan_test.c - which zygote a program gets. */
#include "base/test.h"
#include "engine/run/import_scan.h"

#include "base/table.h"

#include <string.h>

static const struct template python = {
    .name = "python",
    .set_count = 2,
    .sets = { { .name = "light" },
              { .name = "data", .module_count = 2, .modules = { "numpy", "matplotlib.pyplot" } } },
};

TEST(a_program_gets_the_interpreter_that_has_its_imports)
{
    static const struct {
        const char *code;
        int set;
    } facts[] = {
        { "", 0 },
        { "print('hello')", 0 },
        { "import json, os\n", 0 },
        { "import numpy", 1 },
        { "import numpy as np\n", 1 },
        { "import json, numpy.linalg as la\n", 1 },
        { "from numpy.random import default_rng", 1 },
        { "from  matplotlib import pyplot", 1 },
        { "def f():\n    import numpy\n", 1 },
        { "import os; import numpy", 1 },
        { "import seaborn as sns", 1 },
        { "import numpyish", 0 },
        { "text = 'import numpy'", 0 },
        { "# import numpy", 0 },
        { "importnumpy", 0 },
        { "import", 0 },
        { "from", 0 },
    };
    for_each(fact, facts) {
        int set = imports_choose(&python, fact->code, strlen(fact->code));
        expect(set == fact->set, "'%s' gave %d", fact->code, set);
    }
}

TEST(a_template_without_zygotes_has_no_interpreter_to_choose)
{
    static const struct template bare = { .name = "bare" };
    expect(imports_choose(&bare, "import numpy", 12) == -1, "a set was chosen");
}

TESTS(CASE(a_program_gets_the_interpreter_that_has_its_imports),
      CASE(a_template_without_zygotes_has_no_interpreter_to_choose))
