"""The fuzzer: random programs under stacks of transforms, and probes of laws, against independent oracles.

    python -m tools.fuzz --cases 100000 --minutes 30 --progress

`running.py` is the command. `docs/fuzzing.md` describes the whole.
"""
