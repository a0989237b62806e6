// The files of a folder, the program's or one below it, in alphabetical order.
#define DT_UNKNOWN 0
#define DT_DIR 4
#define DT_REG 8
struct dirent { unsigned long d_ino; unsigned char d_type; char d_name[256]; };
struct __folder { int handle; int at; struct dirent entry; };
typedef struct __folder DIR;
int __open_folder(const char* name);
int __folder_entry(int handle, int at, char* name);
DIR* opendir(const char* name) {
    int handle = __open_folder(name);
    if (handle < 0) return 0;
    DIR* d = (DIR*)malloc(sizeof(DIR)); d->handle = handle; d->at = 0; return d;
}
struct dirent* readdir(DIR* d) {
    int type = __folder_entry(d->handle, d->at, d->entry.d_name);
    if (type < 0) return 0;
    d->entry.d_type = (unsigned char)type; d->entry.d_ino = (unsigned long)++d->at; return &d->entry;
}
long __file_kind(const char* name, long* size);
struct stat { unsigned long st_dev, st_ino; unsigned int st_mode; long st_size, st_mtime; };
#define stat(name, s) __stat(name, s)
int __stat(const char* name, struct stat* s) {
    long size = 0, kind = __file_kind(name, &size);
    if (kind < 0) return -1;
    s->st_dev = 0; s->st_ino = 0; s->st_mtime = 0; s->st_mode = kind == DT_DIR ? 16877 : 33188; s->st_size = size;
    return 0;
}
#define S_ISDIR(m) (((m) & 61440) == 16384)
#define S_ISREG(m) (((m) & 61440) == 32768)
int __make_folder(const char* name);
int mkdir(const char* name, unsigned int mode = 511) { return __make_folder(name); }
int _mkdir(const char* name) { return __make_folder(name); }
int closedir(DIR* d) { free(d); return 0; }
void rewinddir(DIR* d) { d->at = 0; }
