#include "command.h"
static int run(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return EXIT_FAILED;
}
const struct command command_doctor = {
    .name = "doctor", .usage = "doctor [--json]", .help = "Say what this host gives.\n", .run = run};
