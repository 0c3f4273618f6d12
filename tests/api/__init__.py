"""Tests of `api/`, file for file."""
