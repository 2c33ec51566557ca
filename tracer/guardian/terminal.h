/*
 * Private to this room.
 */
#pragma once

/* Stop as the command was stopped by job control; returns when the shell continues us. */
void terminal_stop_like(int signal);
