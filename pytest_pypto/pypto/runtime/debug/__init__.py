"""Running artifacts again: replay, and the script that every build gets."""
