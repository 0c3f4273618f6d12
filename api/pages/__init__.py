"""The dashboard: what its pages show, worded and drawn."""
