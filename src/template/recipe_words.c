/* recipe_words.c - which texts a recipe may have in which place. */
#include "template/recipe_words.h"

#include <ctype.h>
#include <string.h>

bool recipe_is_package(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    return length >= 2 && length < 128 && text[length] == '\0' && isalnum((unsigned char) *text);
}

bool recipe_is_cran(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.");
    return length >= 2 && length < 64 && text[length] == '\0' && isalpha((unsigned char) *text);
}

/* What follows the name is read by pip's own code (fetch_wheels.py): addresses are refused here. */
bool recipe_is_requirement(const char *text)
{
    return isalnum((unsigned char) *text) && strlen(text) < 200 && !strpbrk(text, "@/\\:|\n");
}

bool recipe_is_inner_path(const char *text)
{
    return *text && *text != '/' && strlen(text) < 250 && !strstr(text, "..");
}

bool recipe_is_argument(const char *text)
{
    return strlen(text) < 8192;
}

bool recipe_is_file_name(const char *text)
{
    return *text && *text != '.' && !strchr(text, '/') && strlen(text) < 64;
}

bool recipe_is_language(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+#-");
    return length > 0 && length < 32 && text[length] == '\0';
}

bool recipe_is_variable(const char *text)
{
    if (isdigit((unsigned char) *text) || strncmp(text, "LD_", 3) == 0 ||
        strcmp(text, "GLIBC_TUNABLES") == 0)
        return false;
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return length > 0 && length < 64 && text[length] == '\0';
}

bool recipe_is_module(const char *text)
{
    size_t length =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
    return length > 0 && length < 128 && text[length] == '\0' && *text != '.';
}
