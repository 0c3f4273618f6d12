"""
Alerts: rules as data, firing as a pure function, delivery that loses nothing.

Pure:

    rules.py      a rule, its YAML form, the shipped ones (analytics/alerts/*.yaml) and the user's over them
    evaluate.py   rule, rows now, what was held before, time → what is held now, changes
    silences.py   who is not to be told of what
    messages.py   a change in the words of a webhook, Slack, PagerDuty, Alertmanager
    queue.py      what one receiver still has to get: order, tries, waits
    lease.py      which of several services tells
    export.py     the same rules for Prometheus

Shell:

    history.py    ClickHouse: changes, deliveries, silences; the state is what was written there last
    opening.py    the history opened with the writer's rights
    gauges.py     what is in no event: logs and shippers, clocks
    scraping.py   the proxies' /metrics, where their logs are not on this machine
    post.py       one HTTP POST
    delivery.py   one thread for each receiver
    leading.py    takes part in the lease
    service.py    goes round: asks each rule when it is due, writes changes down, hands them on
    errors.py     AlertRuleError
"""
