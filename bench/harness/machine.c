// What the figures were seen on.

#include "machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "results.h"

// The rest of the first line that begins with `label`, up to `until`.
static void line_after(const char *path, const char *label, char until, char *out,
                       size_t out_bytes_max)
{
    out[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file) return;
    char line[512];
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, label, strlen(label)) != 0) continue;
        const char *begin = line + strlen(label);
        begin += strspn(begin, "\t :=\"");
        snprintf(out, out_bytes_max, "%.*s", (int)strcspn(begin, (char[]){until, '\n', '\0'}),
                 begin);
        break;
    }
    fclose(file);
}

static void output_of(const char *command, char *out, size_t out_bytes_max)
{
    out[0] = '\0';
    FILE *pipe = popen(command, "r");
    if (!pipe) return;
    if (!fgets(out, (int)out_bytes_max, pipe)) out[0] = '\0';
    pclose(pipe);
    out[strcspn(out, "\n")] = '\0';
}

static void text(FILE *file, const char *indent, const char *name, const char *value)
{
    fprintf(file, "%s\"%s\": ", indent, name);
    json_string(file, value);
    fputs(",\n", file);
}

void machine_write(FILE *file)
{
    char value[256];
    struct utsname kernel;
    struct sysinfo memory;
    fputs("  \"machine\": {\n", file);
    line_after("/proc/cpuinfo", "model name", '\n', value, sizeof(value));
    text(file, "    ", "processor", value);
    line_after("/etc/os-release", "PRETTY_NAME", '"', value, sizeof(value));
    text(file, "    ", "system", value);
    if (uname(&kernel) == 0) text(file, "    ", "kernel", kernel.release);
    output_of("findmnt --noheadings --output FSTYPE --target .", value, sizeof(value));
    text(file, "    ", "file_system", value);
    if (sysinfo(&memory) == 0) {
        fprintf(file, "    \"memory_mib\": %lu,\n",
                (unsigned long)(memory.totalram / 1024 * memory.mem_unit / 1024));
        fprintf(file, "    \"load\": %.2f,\n", (double)memory.loads[0] / 65536);
    }
    fprintf(file, "    \"processors\": %ld\n  },\n", sysconf(_SC_NPROCESSORS_ONLN));
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(value, sizeof(value), "%Y-%m-%dT%H:%M:%SZ", &utc);
    text(file, "  ", "date", value);
    output_of("git describe --always --dirty 2>/dev/null", value, sizeof(value));
    text(file, "  ", "commit", value);
    text(file, "  ", "tine", TINE_VERSION);
}
