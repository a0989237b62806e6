// getopt: POSIX options (-a, -b value) and GNU long options.
int isatty(int) { return 0; }
char* optarg = 0;
int optind = 1;
int opterr = 1;
int optopt = 0;
int __option_at = 0;
#define no_argument 0
#define required_argument 1
#define optional_argument 2
struct option { const char* name; int has_arg; int* flag; int val; };
int getopt(int argc, char* const argv[], const char* letters) {
    optarg = 0;
    if (__option_at == 0) {
        if (optind >= argc || argv[optind][0] != '-' || argv[optind][1] == 0) return -1;
        if (strcmp(argv[optind], "--") == 0) { ++optind; return -1; }
        __option_at = 1;
    }
    int c = argv[optind][__option_at++];
    const char* known = c == ':' ? (const char*)0 : strchr(letters, c);
    bool last = argv[optind][__option_at] == 0;
    if (!known) {
        optopt = c;
        if (last) { ++optind; __option_at = 0; }
        if (opterr && letters[0] != ':') fprintf(stderr, "%s: invalid option -- '%c'\n", argv[0], c);
        return '?';
    }
    if (known[1] != ':') { if (last) { ++optind; __option_at = 0; } return c; }
    if (!last) optarg = argv[optind++] + __option_at;
    else if (known[2] == ':') ++optind;
    else if (optind + 1 < argc) { optarg = argv[optind + 1]; optind += 2; }
    else {
        ++optind; optopt = c; __option_at = 0;
        if (letters[0] == ':') return ':';
        if (opterr) fprintf(stderr, "%s: option requires an argument -- '%c'\n", argv[0], c);
        return '?';
    }
    __option_at = 0;
    return c;
}
int getopt_long(int argc, char* const argv[], const char* letters, const struct option* options, int* index) {
    if (__option_at != 0 || optind >= argc || strncmp(argv[optind], "--", 2) != 0 || argv[optind][2] == 0) return getopt(argc, argv, letters);
    const char* word = argv[optind++] + 2;
    size_t n = 0;
    while (word[n] && word[n] != '=') ++n;
    optarg = 0;
    for (int i = 0; options[i].name; ++i) {
        if (strlen(options[i].name) != n || strncmp(options[i].name, word, n) != 0) continue;
        if (index) *index = i;
        if (word[n] == '=') optarg = (char*)word + n + 1;
        else if (options[i].has_arg == required_argument) {
            if (optind >= argc) { fprintf(stderr, "%s: option '--%s' requires an argument\n", argv[0], options[i].name); return '?'; }
            optarg = argv[optind++];
        }
        if (options[i].flag) { *options[i].flag = options[i].val; return 0; }
        return options[i].val;
    }
    fprintf(stderr, "%s: unrecognized option '--%s'\n", argv[0], word);
    return '?';
}
