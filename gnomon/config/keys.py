"""
Every key of the configuration file, once: the reader, `docs/configuration.md` and the tests read this list.

Use of a key
    used      it has an effect
    ignored   a part of eRPC that Gnomon does not have, harmless to leave out: a named warning
    guard     it protects money or access and Gnomon does not have it: an error, unless `--allow-insecure`
    later     planned, an error until it works
    retired   an older name: an error that says what replaced it
"""

from gnomon.config.declare import SECTIONS
from gnomon.config.keys_erpc import ERPC_SECTIONS
from gnomon.config.keys_own import OWN_SECTIONS

__all__ = ["SECTIONS"]

SECTIONS.update({section.name: section for section in (*ERPC_SECTIONS, *OWN_SECTIONS)})
