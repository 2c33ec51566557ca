/* 20000 arguments, eight more of 100 kB, and 500 variables; the program that gets them looks at each. */
#include "ev.h"

enum { SHORT = 20000, LONG = 8, SIZE = 100000, VARIABLES = 500, TOTAL = SHORT + LONG + 2 };

static int check(int argc, char **argv, char **environment)
{
	char number[16];
	int variables = 0;

	MUST(argc == TOTAL);
	for (int i = 0; i < SHORT; i++) {
		snprintf(number, sizeof(number), "%d", i);
		MUST(strcmp(argv[i + 2], number) == 0);
	}
	for (int i = 0; i < LONG; i++)
		MUST(strlen(argv[SHORT + 2 + i]) == SIZE && argv[SHORT + 2 + i][SIZE - 1] == 'a' + i);
	while (environment[variables])
		variables++;
	MUST(variables == VARIABLES);
	did("exec arguments=%d variables=%d", argc, variables);
	return 0;
}

int main(int argc, char **argv, char **environment)
{
	static char *list[TOTAL + 1], *variables[VARIABLES + 1], texts[SHORT][8], names[VARIABLES][16];
	char self[PATH_MAX];

	if (argc > 1)
		return check(argc, argv, environment);
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	MUST(size > 0);
	self[size] = 0;
	list[0] = self;
	list[1] = (char[]){"child"};
	for (int i = 0; i < SHORT; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%d", i);
		list[i + 2] = texts[i];
	}
	for (int i = 0; i < LONG; i++) {
		char *text = malloc(SIZE + 1);
		MUST(text);
		memset(text, 'a' + i, SIZE);
		text[SIZE] = 0;
		list[SHORT + 2 + i] = text;
	}
	for (int i = 0; i < VARIABLES; i++) {
		snprintf(names[i], sizeof(names[i]), "V%d=%d", i, i);
		variables[i] = names[i];
	}
	execve(self, list, variables);
	die("execve");
}
