/* template_bounds.h - the most of each kind that gloveboxd serves: recipes are held to it before
 * anything is built. */
#pragma once

enum {
    TEMPLATE_LANGUAGES_MAX = 16,
    TEMPLATE_WORDS_MAX = 32, /* of a command; modules of a zygote */
    TEMPLATE_VARIABLES_MAX = 64,
    TEMPLATE_NPM_VARIABLES = 2,  /* of them, that packages of npm need */
    TEMPLATE_PREPARE_MAX = 60,   /* words of a command of `prepare` */
    TEMPLATE_SETS_MAX = 4,       /* zygotes */
    TEMPLATE_MODULES_MAX = 4096, /* bytes of all their modules, a byte behind each */
};
