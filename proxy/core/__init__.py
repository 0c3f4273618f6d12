"""Decisions without I/O, clock, randomness or environment: `what-if` replays them over recorded traffic."""
