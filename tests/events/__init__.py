"""Tests of the event contract, its codec, its topics and the log."""
