"""``./dev release --dry-run``: all files of a release, built and checked on this machine, without publishing them."""
