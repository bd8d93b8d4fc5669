// SPDX-License-Identifier: MIT
/*
 * In place of libFuzzer: gives a target each file of the directories or files
 * named, once. Prints TAP. A finding ends the program.
 */
#include <dirent.h>
#include <sys/stat.h>
#include "fuzz.h"

#define INPUT_MAX	65536

static int number;

static void give_file(const char *path)
{
	static uint8_t data[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	size_t size;

	must(file);
	size = fread(data, 1, sizeof(data), file);
	must(!ferror(file));
	fclose(file);
	printf("# %s\n", path);
	LLVMFuzzerTestOneInput(data, size);
	printf("ok %d %s\n", ++number, path);
}

static void give(const char *path)
{
	struct dirent **names;
	struct stat st;
	char file[4096];
	int nr, i;

	must(!stat(path, &st));
	if (!S_ISDIR(st.st_mode)) {
		give_file(path);
		return;
	}
	nr = scandir(path, &names, NULL, alphasort);
	must(nr >= 0);
	for (i = 0; i < nr; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path,
				 names[i]->d_name);
			give_file(file);
		}
		free(names[i]);
	}
	free(names);
}

int main(int argc, char **argv)
{
	int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 1; i < argc; i++)
		give(argv[i]);
	printf("1..%d\n", number);
	return !number;
}
