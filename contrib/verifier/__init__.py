"""The second verifier, by parts: contrib/verify.py is the program."""
