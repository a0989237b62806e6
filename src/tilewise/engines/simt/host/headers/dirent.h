// The files of a folder, which is the program's own or one below it; in the order of their names.
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
int closedir(DIR* d) { free(d); return 0; }
void rewinddir(DIR* d) { d->at = 0; }
