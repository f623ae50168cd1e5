#ifndef LIST_H
#define LIST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIST_API __attribute__((visibility("default")))
#define LIST_LIMIT 4096
#define LIST_EACH(list, node) for ((node) = (list)->head; (node); (node) = (node)->next)
#define LIST_LOG(format, ...) fprintf(stderr, format, __VA_ARGS__)

typedef struct list_node list_node;
typedef struct list List;
typedef int (*list_compare)(const void *left, const void *right);
typedef unsigned long long list_size;

struct list_node {
    list_node *next;
    void *value;
    unsigned is_free : 1;
};

struct list {
    list_node *head, *tail;
    list_size length;
    void (*release)(void *value);
    union {
        int small;
        long large;
    } mark;
};

typedef struct {
    double x, y;
    char label[16];
} point;

typedef enum list_state { LIST_EMPTY, LIST_FULL = 2 } list_state_t;
enum { LIST_VERSION = 3 };

extern const char *list_names[];

LIST_API List *list_new(list_compare compare, void (*release)(void *));
LIST_API int list_push(List *list, void *value);
LIST_API int (list_length)(const List *list);
void list_printf(const char *format, ...);

static inline int list_is_empty(const List *list) { return list->length == 0; }

#ifdef __cplusplus
}
#endif
#endif
