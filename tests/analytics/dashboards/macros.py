"""The macros of Grafana's ClickHouse plugin, as it replaces them."""

import re
from datetime import datetime

INTERVAL_SECONDS = 60


def replaced(sql: str, begin: datetime, end: datetime, network: str = "") -> str:
    """
    Return a statement as the plugin would send it.

    Args:
        begin, end: the range of the page.
        network: what is chosen; empty = all.
    """
    low, high = int(begin.timestamp()), int(end.timestamp())
    sql = re.sub(
        r"\$__conditionalAll\((.+?), \$network\)",
        lambda match: match[1].replace("${network:singlequote}", f"'{network}'") if network else "1=1",
        sql,
    )
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 >= toDateTime({low}) AND \1 <= toDateTime({high})", sql)
    sql = re.sub(
        r"\$__timeInterval\((\w+)\)", rf"toStartOfInterval(toDateTime(\1), INTERVAL {INTERVAL_SECONDS} second)", sql
    )
    sql = sql.replace("$__interval_s", str(INTERVAL_SECONDS))
    assert "$" not in sql, sql
    return sql
