#include <stdio.h>
#include "list.h"

int main(int argc, char *argv[])
{
    List *list = list_new(NULL, NULL);
    list_push(list, argv[0]);
    printf("%d\n", list_is_empty(list));
    return argc - 1;
}
