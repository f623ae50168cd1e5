#include "../include/list.h"
#include <stdlib.h>

static list_compare current_compare;
static int (*hook)(List *, int) = NULL;
static const int sizes[] = {1, 2, 3}, steps = 2;

static list_node *node_new(void *value);

LIST_API List *list_new(list_compare compare, void (*release)(void *))
{
    List *list = calloc(1, sizeof *list);
    current_compare = compare;
    list->release = release;
    return list;
}

static list_node *
node_new(void *value)
{
    list_node *node = malloc(sizeof *node);
    node->value = value;
    return node;
}

LIST_API int list_push(List *list, void *value)
{
    list_node *node = node_new(value);
#if defined(LIST_CHECKED)
    if (!node)
        return -1;
#else
    (void)sizes;
#endif
    list->tail = node;
    return hook ? hook(list, steps) : 0;
}

/* Before there were prototypes. */
int
list_find(list, value)
    List *list;
    void *value;
{
    return list != 0 && value != 0;
}

/* A function that returns a pointer to a function. */
void (*list_on_signal(int number, void (*handler)(int)))(int)
{
    (void)number;
    return handler;
}

char **list_lines(register const char text[], size_t count, int matrix[][3]) { return 0; }

#ifdef _WIN32
int list_open(const wchar_t *path) { return 0; }
#else
int list_open(const char *path) { return 0; }
#endif
