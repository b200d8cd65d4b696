#include <stdio.h>
#include <stdlib.h>

#define LENGTH(items) (sizeof(items) / sizeof((items)[0]))

/* A queue of numbers, as a ring. */
struct queue {
    int *items;
    size_t first, count, capacity;
};

static int push(struct queue *queue, int item) {
    if (queue->count == queue->capacity) {
        fprintf(stderr, "full: \"%zu\" items\n", queue->count);
        return -1;
    }
    queue->items[(queue->first + queue->count++) % queue->capacity] = item;
    return 0;
}

int main(void) {
    int numbers[] = {3, 1, 4, '1', '\''};  // the last is a quote
    struct queue queue = {.items = calloc(4, sizeof(int)), .capacity = 4};
#ifdef DEBUG
    puts("debugging");
#endif
    for (size_t at = 0; at < LENGTH(numbers); at++) {
        if (push(&queue, numbers[at])) {
            break;
        }
    }
    return 0;
}
