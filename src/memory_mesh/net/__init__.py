"""The one way out: every call to another machine goes through here, past the guard of addresses."""
