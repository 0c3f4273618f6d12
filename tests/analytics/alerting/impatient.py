"""
The command line with a lease that ends sooner: `python -m tests.analytics.alerting.impatient alerts …`.

The order of the spans is that of the product.
"""

import sys

from analytics.alerting import leading, lease
from gnomon.cli import main

if __name__ == "__main__":
    lease.RENEW_SECONDS, lease.VALID_SECONDS, lease.LEASE_SECONDS = 1.0, 6.0, 8.0  # type: ignore[misc]
    leading.POLL_SECONDS = 0.3  # type: ignore[misc]
    sys.exit(main())
