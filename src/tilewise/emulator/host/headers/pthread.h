// POSIX threads that run sequentially, when they are created: one of the possible orders.
typedef unsigned long pthread_t;
typedef struct { int kind; } pthread_attr_t;
typedef struct { int locked; } pthread_mutex_t;
typedef struct { int kind; } pthread_mutexattr_t;
typedef struct { int waiting; } pthread_cond_t;
typedef struct { int kind; } pthread_condattr_t;
typedef struct { int count; } pthread_barrier_t;
#define PTHREAD_MUTEX_INITIALIZER {0}
#define PTHREAD_COND_INITIALIZER {0}
#define PTHREAD_CREATE_JOINABLE 0
#define PTHREAD_CREATE_DETACHED 1
void* __thread_results[4096];
int __threads_made = 0;
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*f)(void*), void* x) {
    int n = __threads_made++ % 4096;
    *t = n + 1;
    __thread_results[n] = f(x);
    return 0;
}
int pthread_join(pthread_t t, void** result) { if (result) *result = __thread_results[t - 1]; return 0; }
int pthread_detach(pthread_t t) { return 0; }
pthread_t pthread_self() { return __threads_made; }
int pthread_attr_init(pthread_attr_t* a) { a->kind = 0; return 0; }
int pthread_attr_destroy(pthread_attr_t* a) { return 0; }
int pthread_attr_setdetachstate(pthread_attr_t* a, int s) { a->kind = s; return 0; }
int pthread_mutex_init(pthread_mutex_t* m, const pthread_mutexattr_t* a) { m->locked = 0; return 0; }
int pthread_mutex_lock(pthread_mutex_t* m) { m->locked = 1; return 0; }
int pthread_mutex_trylock(pthread_mutex_t* m) { m->locked = 1; return 0; }
int pthread_mutex_unlock(pthread_mutex_t* m) { m->locked = 0; return 0; }
int pthread_mutex_destroy(pthread_mutex_t* m) { return 0; }
