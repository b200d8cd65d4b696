"""Parts that tests and benchmarks share: oracles, fuzzers, played editors, stand-ins."""
