"""Tests of the segment log."""
