"""The keys that Gnomon shares with eRPC, and those of eRPC that have no effect here: projects, limits, listener.

Long on purpose: it is one list, in the order of the file, and nothing else.
"""

from gnomon.config.declare import (
    MAX_CHAIN_ID,
    TEXTS,
    TOLERANCES,
    adaptive,
    guard,
    ignored,
    is_disabled,
    is_empty,
    is_on,
    is_word,
    later,
    retired,
    section,
)
from gnomon.config.schema import Anything, Code, Flag, Integer, Key, ListOf, MapOf, Money, Number, Period, Section, Text
from gnomon.config.source import Node, Scalar, Table

_ROOT = Section(
    "root",
    "Top level",
    (
        Key("projects", ListOf(section("project")), "Named sets of networks, upstreams and clients."),
        Key(
            "rateLimiters", section("rateLimiters"), "Budgets that projects, networks, upstreams and clients may name."
        ),
        Key("server", section("server"), "eRPC's listener; `gnomon.proxy` wins where both are given."),
        Key(
            "logLevel",
            Text(("trace", "debug", "info", "warn", "error", "fatal", "disabled")),
            "Least level logged.",
            "info",
        ),
        Key("gnomon", section("gnomon"), "Everything that eRPC does not have."),
        ignored("clusterKey", "state is not shared between instances"),
        Key("healthCheck", section("healthCheck"), "eRPC's health check; `/healthcheck` has one form here."),
        ignored("indexer", "subscriptions of clients are not served"),
        ignored("admin", "there is no admin endpoint on the proxy, so there is nothing to guard"),
        ignored("database", "answers are not cached and state is not shared"),
        ignored("metrics", "`/metrics` is served at the proxy's own address"),
        ignored("tracing", "spans are not exported"),
        guard("proxyPools", "calls to upstreams would not go through these proxies", is_empty),
    ),
)

_HEALTH_CHECK = Section(
    "healthCheck",
    "healthCheck",
    (
        ignored("mode", "`/healthcheck` is 200 as soon as the proxy listens, with each network's state in its body"),
        ignored("defaultEval", "`/healthcheck` is 200 as soon as the proxy listens"),
        guard("auth", "`/healthcheck` answers everybody who reaches the port", is_empty),
    ),
)

_SERVER = Section(
    "server",
    "server",
    (
        Key("httpHostV4", Text(), "Address to listen on.", "127.0.0.1"),
        Key("httpPortV4", Integer(0, 65535), "Port to listen on.", "4000", "a free port is picked"),
        Key("httpPort", Integer(0, 65535), "Older name of `httpPortV4`."),
        Key("maxTimeout", Period(False), "Deadline of a whole request.", "60s"),
        Key("tls", section("serverTls"), "TLS of the listener."),
        Key(
            "trustedIPForwarders",
            TEXTS,
            "Proxies whose `X-Forwarded-For` names the client, for `auth` of type network.",
        ),
        guard("trustedIPHeaders", "only `X-Forwarded-For` names a client's address", is_empty),
        later("webSocket", "WebSockets for clients come later: leave this out", is_disabled),
        retired("httpHost", "httpHostV4"),
        ignored("listenV4", "the proxy listens on one address"),
        ignored("listenV6", "the proxy listens on one address"),
        ignored("httpHostV6", "the proxy listens on one address; an IPv6 address may stand in `gnomon.proxy.host`"),
        ignored("httpPortV6", "the proxy listens on one address"),
        ignored("grpcEnabled", "gRPC is not served"),
        ignored("grpcHostV4", "gRPC is not served"),
        ignored("grpcPortV4", "gRPC is not served"),
        ignored("grpcHostV6", "gRPC is not served"),
        ignored("grpcPortV6", "gRPC is not served"),
        ignored("grpcMaxRecvMsgSize", "gRPC is not served"),
        ignored("grpcMaxSendMsgSize", "gRPC is not served"),
        ignored("readTimeout", "`gnomon.proxy.limits` bounds slow clients"),
        ignored("writeTimeout", "`gnomon.proxy.limits` bounds slow clients"),
        ignored("enableGzip", "answers are compressed when the client accepts it"),
        ignored("aliasing", "networks are named by path, not by host"),
        ignored("waitBeforeShutdown", "the proxy drains what is in flight and ends"),
        ignored("waitAfterShutdown", "the proxy drains what is in flight and ends"),
        ignored("includeErrorDetails", "an upstream's error is passed on as it is"),
        ignored("responseHeaders", "response headers are `X-Gnomon-*`"),
        ignored("executionHeaders", "response headers are `X-Gnomon-*`"),
        ignored("costHeaders", "costs are in SQL"),
    ),
)

_SERVER_TLS = Section(
    "serverTls",
    "server.tls",
    (
        Key("enabled", Flag(), "Whether to serve TLS.", "false"),
        Key("certFile", Text(), "Certificate chain, PEM."),
        Key("keyFile", Text(), "Private key, PEM."),
        guard("caFile", "client certificates are not checked"),
        Key("insecureSkipVerify", Flag(), "Without meaning for a listener.", "false"),
    ),
)

_PROJECT = Section(
    "project",
    "projects[]",
    (
        Key("id", Text(), "Name, the first part of the path: `POST /{project}/evm/{chainId}`. Needed."),
        Key("networks", ListOf(section("network")), "Chains; without any, one for each chain that the upstreams name."),
        Key("upstreams", ListOf(section("upstream")), "Endpoints."),
        Key("networkDefaults", section("networkDefaults"), "What a network has where it does not say otherwise."),
        Key("upstreamDefaults", section("upstream"), "What an upstream has where it does not say otherwise."),
        Key("providers", ListOf(section("provider")), "Vendors, expanded to one upstream for each chain."),
        Key("auth", section("auth"), "Who may call; without it the project is open."),
        Key("cors", section("cors"), "Which web pages may call."),
        Key("rateLimitBudget", Text(), "Budget of all calls to this project."),
        Key("allowMethods", TEXTS, "Methods let through even if ignored; alone, all others are ignored."),
        Key("ignoreMethods", TEXTS, "Methods refused; `*` stands for any text."),
        guard("allowClientDirectives", "clients may send every directive, `use-upstream` included"),
        ignored("integrity", "use `validators` of the upstream"),
        ignored("userAgentMode", "the agent is stored as it was sent"),
        ignored("forwardHeaders", "no header of a client is passed on; `jsonRpc.headers` of the upstream are sent"),
        ignored("scoreMetricsWindowSize", "scores come from own measurements"),
        ignored("scoreMetricsMode", "scores come from own measurements"),
        ignored("scoreRefreshInterval", "scores come from own measurements"),
        *(
            ignored(name, "scores come from own measurements")
            for name in (
                "scoreGranularity",
                "scorePenaltyDecayRate",
                "scoreSwitchHysteresis",
                "scoreMinSwitchInterval",
            )
        ),
        ignored("routingStrategy", "`selectionPolicy.mode` of the network chooses"),
        ignored("healthCheck", "`/healthcheck` has one form"),
    ),
)

_SHARED_NETWORK: tuple[Key, ...] = (
    Key(
        "failsafe",
        ListOf(section("failsafe"), is_single_allowed=True),
        "Timeout, retry and hedge; the first entry that fits is used.",
    ),
    Key("evm", section("networkEvm"), "What is particular to EVM chains."),
    Key("selectionPolicy", section("selectionPolicy"), "Which upstreams are tried, in which order."),
    Key("rateLimitBudget", Text(), "Budget of all calls to this network."),
    Key("directiveDefaults", section("directives"), "Directives of requests that do not bring their own."),
    Key("failover", section("failover"), "What happens once every primary failed."),
    ignored("cacheFill", "answers are not cached"),
    ignored("cacheKeySuffix", "answers are not cached"),
    ignored("integrity", "use `validators` of the upstream"),
    later("svm", "Solana is not served: leave this network out"),
    ignored("multiplexing", "identical concurrent reads are sent one by one"),
)

_NETWORK = Section(
    "network",
    "networks[]",
    (
        Key("architecture", Text(("evm", "jsonrpc")), "`evm`, or `jsonrpc` for any other JSON-RPC service.", "evm"),
        Key("id", Text(), "Name of a generic network; upstreams say `network: NAME`."),
        Key("alias", Text(), "Another name in the path: `POST /{project}/{alias}`."),
        *_SHARED_NETWORK,
        ignored("methods", "the method table is built in"),
        ignored("staticResponses", "answers come from upstreams only"),
    ),
)

_FAILOVER = Section(
    "failover",
    "networks[].failover",
    (
        guard(
            "onDefaultsExhausted",
            "a request that every primary failed or missed goes to the fallbacks, which cost money",
            is_on,
        ),
    ),
)

_NETWORK_DEFAULTS = Section("networkDefaults", "networkDefaults", _SHARED_NETWORK)

_NETWORK_EVM = Section(
    "networkEvm",
    "networks[].evm",
    (
        Key("chainId", Integer(1, MAX_CHAIN_ID), "Chain id. Needed for an EVM network."),
        Key(
            "acceptEmptyBeyondHead",
            Flag(),
            "An empty answer for a block above the network's highest head is the answer: no sweep, no paid call.",
            "true",
        ),
        Key(
            "shortCircuitFutureBlocks",
            Flag(),
            "Answer `null` without any call for a block number above every upstream's head. A block produced after the"
            " last observation can get `null`.",
            "false",
        ),
        Key("servedTip", section("servedTip"), "Serve a head that most primaries have."),
        Key("emptyResultAccept", TEXTS, "Methods whose empty result is an answer.", "by method"),
        Key(
            "emptyResultConfidence",
            Text(("blockHead", "finalizedBlock")),
            "Which head decides whether an empty answer is the answer.",
            "blockHead",
        ),
        Key(
            "fallbackFinalityDepth",
            Integer(0),
            "Blocks behind the head taken as final where no upstream tells.",
            "1024",
            "the head is final",
        ),
        ignored("maxFutureBlockRetryDistance", "a miss at or below the head is tried elsewhere"),
        ignored("headCache", "answers are not cached"),
        ignored("blockStore", "answers are not cached"),
        ignored("headPolling", "each instance polls heads itself"),
        ignored("safeBlockSource", "`safe` is passed on as any tag"),
        ignored("stripSubscribeFromBlockZero", "subscriptions of clients are not served"),
        ignored("fallbackStatePollerDebounce", "heads are polled at `statePollerInterval`"),
        ignored("integrity", "use `validators` of the upstream"),
        ignored("getLogsMaxAllowedRange", "log queries are not limited by range"),
        ignored("getLogsMaxAllowedAddresses", "log queries are not limited by addresses"),
        ignored("getLogsMaxAllowedTopics", "log queries are not limited by topics"),
        ignored("getLogsSplitOnError", "log queries are not split"),
        ignored("getLogsSplitConcurrency", "log queries are not split"),
        ignored("getLogsCacheChunkSize", "log queries are not split"),
        ignored("traceFilterSplitOnError", "trace queries are not split"),
        ignored("traceFilterSplitConcurrency", "trace queries are not split"),
        ignored("enforceBlockAvailability", "declared bounds always hold"),
        ignored("maxRetryableBlockDistance", "a miss at or below the head is tried elsewhere"),
        ignored("markEmptyAsErrorMethods", "the method table says whose empty answer is a miss"),
        ignored("dynamicBlockTimeDebounceMultiplier", "heads are polled at `statePollerInterval`"),
        ignored("blockUnavailableDelayMultiplier", "a retry waits `retry.delay`"),
        ignored("idempotentTransactionBroadcast", '"already known" always counts as accepted'),
    ),
)

_SERVED_TIP = Section(
    "servedTip",
    "networks[].evm.servedTip",
    (
        Key(
            "enabledFor",
            ListOf(Text(("latest", "finalized", "safe"))),
            "Tags that mean the freshest block of a strict majority of primaries; only `latest` has an effect.",
        ),
        ignored("clusterDelta", "the tip is what a strict majority has"),
        ignored("guaranteedFor", "the tip is one for all methods"),
        ignored("guaranteedMethods", "the tip is one for all methods"),
        ignored("maxRegression", "the tip never goes back by itself"),
        ignored("quorum", "a strict majority of eligible primaries"),
    ),
)

_SELECTION = Section(
    "selectionPolicy",
    "networks[].selectionPolicy",
    (
        Key(
            "mode",
            Text(("tiered", "ordered")),
            "`tiered`: fallbacks only when every primary failed or missed; `ordered`: all in the order of the file.",
            "tiered",
        ),
        *(
            Key(name, Code(), "A policy in JavaScript; it is not run, `mode` chooses.")
            for name in ("evalFunc", "evalFunction", "eval")
        ),
        *(
            ignored(name, "policies in JavaScript are not run; `mode` chooses")
            for name in (
                "evalInterval",
                "evalTimeout",
                "evalPerMethod",
                "evalPerFinality",
                "evalPerBoundary",
                "evalScope",
                "decisionHistory",
                "resampleExcluded",
                "resampleInterval",
                "resampleCount",
                "rules",
            )
        ),
    ),
)

_DIRECTIVES = Section(
    "directives",
    "networks[].directiveDefaults",
    (
        Key("retryEmpty", Flag(), "Ask others after an unexpected empty answer; said, also in more rounds.", "true"),
        Key("skipInterpolation", Flag(), "Leave block tags in requests as they are.", "false"),
        Key("skipCacheRead", Anything(), "Accepted and void: nothing is cached."),
        guard("useUpstream", "requests go to every upstream that serves them"),
        *(
            ignored(name, "not a directive here")
            for name in (
                "retryPending",
                "skipConsensus",
                "enforceHighestBlock",
                "enforceGetLogsBlockRange",
                "enforceNonNullTaggedBlocks",
                "validateTransactionsRoot",
                "validateHeaderFieldLengths",
                "validateTransactionFields",
                "validateTransactionBlockInfo",
                "enforceLogIndexStrictIncrements",
                "validateTxHashUniqueness",
                "validateTransactionIndex",
                "validateLogFields",
                "validateLogsBloomEmptiness",
                "validateLogsBloomMatch",
                "validateReceiptTransactionMatch",
                "validateContractCreation",
                "receiptsCountExact",
                "receiptsCountAtLeast",
                "validationExpectedBlockHash",
                "validationExpectedBlockNumber",
            )
        ),
    ),
)

_UPSTREAM = Section(
    "upstream",
    "upstreams[]",
    (
        Key("id", Text(), "Name in events, metrics and SQL.", "the endpoint's host"),
        Key(
            "endpoint",
            Text(is_secret=True),
            "`http(s)://…`, `ws(s)://…` (heads by subscription only, an upstream of its own beside the http one), or a"
            " vendor's `alchemy://KEY`. Needed.",
        ),
        Key("network", Text(), "Network it serves, where that is not an EVM chain."),
        Key("vendor", Text(), "Company behind it; its shipped price book applies.", "by scheme or host"),
        Key("vendorName", Text(), "Other name of `vendor`."),
        Key("account", Text(), "Account that is billed."),
        Key("tags", TEXTS, "`tier:fallback` makes it a paid fallback."),
        Key("group", Text(), "Older form of the tag `tier:GROUP`."),
        Key("evm", section("upstreamEvm"), "What is particular to EVM chains."),
        Key("jsonRpc", section("jsonRpc"), "How it is spoken to."),
        Key("allowMethods", TEXTS, "Methods it serves even if ignored; alone, all others are ignored."),
        Key("ignoreMethods", TEXTS, "Methods it does not serve; `*` stands for any text."),
        Key(
            "failsafe",
            ListOf(section("failsafe"), is_single_allowed=True),
            "Timeout, retry, hedge and breaker of each attempt.",
        ),
        Key("breaker", section("breaker"), "Breaker by consecutive misses."),
        Key("shadow", section("shadow"), "Mirror calls to it, never serve from it."),
        Key("relayError", section("relayError"), "How a relay marks an error of the node behind it."),
        Key("validators", MapOf(TEXTS), "Method → paths that an answer must have; without them it is a miss."),
        Key("routing", section("routing"), "Probes."),
        Key("rateLimitBudget", Text(), "Budget of calls to it."),
        Key(
            "creditUnits",
            MapOf(Money()),
            "Units of a call by method, over those of the price book.",
            "",
            "the method is free",
        ),
        guard("rateLimitCountMode", "budgets count calls, not credits", is_word("request")),
        ignored("rateLimitAutoTune", "the budget stays as it is written"),
        ignored("autoIgnoreUnsupportedMethods", "a method that is not supported is tried elsewhere"),
        ignored("cohort", "policies in JavaScript are not run"),
        ignored("grpc", "upstreams are spoken to over HTTP"),
        later("svm", "Solana is not served: leave this upstream out"),
        Key("type", Text(), "`evm`; accepted and void."),
    ),
)

_UPSTREAM_EVM = Section(
    "upstreamEvm",
    "upstreams[].evm",
    (
        Key("chainId", Integer(1, MAX_CHAIN_ID), "Chain it serves.", "by the vendor's host name, or the only network"),
        Key(
            "statePollerInterval",
            Period(),
            "Time between two head polls.",
            "2s; 60s for fallbacks (each poll is a paid call)",
            "the default",
        ),
        Key("blockAvailability", section("blockAvailability"), "Blocks it has."),
        Key("skipWhenSyncing", Flag(), "Leave it out of routing while it syncs.", "false"),
        Key(
            "maxAvailableRecentBlocks",
            Integer(0),
            "Older form of `blockAvailability.lower.latestBlockMinus`.",
            "",
            "no bound",
        ),
        Key(
            "nodeType",
            Text(("full", "archive", "unknown")),
            "Older form of a bound: `full` is `blockAvailability.lower.latestBlockMinus: 128`. `archive` costs more at "
            "vendors that charge by the endpoint (GetBlock).",
        ),
        ignored("skipSyncingCheck", "an upstream is asked whether it syncs only with `skipWhenSyncing`"),
        ignored("statePollerDebounce", "heads are polled at `statePollerInterval`"),
        ignored("integrity", "use `validators` of the upstream"),
        ignored("queryShim", "queries are passed on as they are"),
        *(
            ignored(name, "queries are not split")
            for name in (
                "getLogsAutoSplittingRangeThreshold",
                "traceFilterAutoSplittingRangeThreshold",
                "getLogsMaxAllowedRange",
                "getLogsMaxAllowedAddresses",
                "getLogsMaxAllowedTopics",
                "getLogsSplitOnError",
                "getLogsMaxBlockRange",
            )
        ),
    ),
)

_AVAILABILITY = Section(
    "blockAvailability",
    "upstreams[].evm.blockAvailability",
    (
        Key("lower", section("bound"), "Lowest block."),
        Key("upper", section("bound"), "Highest block."),
    ),
)

_BOUND = Section(
    "bound",
    "upstreams[].evm.blockAvailability.lower, .upper (exactly one of the three)",
    (
        Key("exactBlock", Integer(0), "A fixed block."),
        Key("latestBlockMinus", Integer(0), "So many blocks behind the head."),
        Key("earliestBlockPlus", Integer(0), "So many blocks above the earliest."),
        ignored("probe", "bounds are taken as declared"),
        ignored("updateRate", "bounds are taken as declared"),
    ),
)

_JSON_RPC = Section(
    "jsonRpc",
    "upstreams[].jsonRpc",
    (
        Key("headers", MapOf(Text(is_secret=True)), "Headers sent with each call; they may hold secrets."),
        Key("enableGzip", Flag(), "Compress requests.", "false"),
        ignored("supportsBatch", "calls are sent one by one"),
        ignored("batchMaxSize", "calls are sent one by one"),
        ignored("batchMaxWait", "calls are sent one by one"),
        guard("proxyPool", "calls would not go through this proxy"),
    ),
)

_ROUTING = Section(
    "routing",
    "upstreams[].routing",
    (
        Key(
            "probe", Flag(), "Probe it with mirrored reads while it is excluded.", "on for primaries, off for fallbacks"
        ),
        Key("probePerSecond", Number(0.0), "Most probes a second.", "1", "nothing is probed"),
        Key("probeConcurrency", Integer(1), "Most probes at once.", "1"),
        guard(
            "priority",
            "tiers by number are not known, so it would be called as any primary: give it the tag tier:fallback",
            is_word("0"),
        ),
        ignored("scoreMultipliers", "scores come from own measurements"),
        ignored("scoreLatencyQuantile", "scores come from own measurements"),
    ),
)

_SHADOW = Section(
    "shadow",
    "upstreams[].shadow",
    (
        Key("enabled", Flag(), "Whether it is a shadow.", "false"),
        Key("sampleRate", Number(0.0, 1.0), "Share of requests mirrored.", "1", "nothing is mirrored"),
        Key("ignoreFields", MapOf(TEXTS), "Method → masks: paths left out of the comparison."),
        Key(
            "tolerate",
            TOLERANCES,
            "Differences that count as tolerated: `CLASS` or `CLASS@PATH`, for all methods or by method.",
        ),
        Key("control", Flag(), "Asks whoever served, once more: its own noise. It needs no endpoint.", "false"),
        Key("maxPerSecond", Number(0.0), "Most mirrored calls a second.", "no bound", "nothing is mirrored"),
        Key("monthlyBudgetUsd", Money(), "Most spent on mirrored calls a month.", "no bound", "nothing is mirrored"),
    ),
)

_FAILSAFE = Section(
    "failsafe",
    "failsafe[]",
    (
        Key("matchMethod", Text(), "Methods it is for; `*` stands for any text, `|` separates.", "*"),
        Key(
            "matchFinality",
            ListOf(Text(("finalized", "unfinalized", "realtime", "unknown"))),
            "Finalities it is for.",
            "all",
        ),
        Key("timeout", section("timeout"), "Longest time of an attempt (upstream) or of the tries together (network)."),
        Key("retry", section("retry"), "Tries after a failure."),
        Key("hedge", section("hedge"), "A parallel try after a delay."),
        Key("circuitBreaker", section("circuitBreaker"), "Breaker by failures in a window; upstreams only."),
        ignored("consensus", "answers are compared by shadows, not before they are served"),
        ignored("matchKind", "the entry is for every kind of request"),
    ),
)

_ADAPTIVE = Section(
    "adaptive",
    "A duration learnt from a method's own latencies",
    (
        Key("base", Period(), "Added to the quantile; used alone while there are no samples.", "0"),
        Key(
            "quantile",
            Number(0.0, 1.0),
            "Quantile of the method's own durations, below 1.",
            "",
            "no quantile: `base` alone",
        ),
        Key("min", Period(), "Least it may be.", "timeout: half of base, or 500ms; hedge: 100ms"),
        Key("max", Period(), "Most it may be.", "timeout: 30s; hedge: 999s"),
    ),
)

_TIMEOUT = Section(
    "timeout",
    "failsafe[].timeout",
    (
        Key("duration", adaptive(is_zero_allowed=False), "A duration, or `{base, quantile, min, max}`. Needed."),
        Key("quantile", Number(0.0, 1.0), "Older form of `duration.quantile`."),
        Key("minDuration", Period(), "Older form of `duration.min`."),
        Key("maxDuration", Period(), "Older form of `duration.max`."),
    ),
)

_RETRY = Section(
    "retry",
    "failsafe[].retry",
    (
        Key("maxAttempts", Integer(1, 100), "All tries together.", "3"),
        retired("maxCount", "maxAttempts"),
        Key("delay", Period(), "Wait before the second try.", "0"),
        Key("backoffFactor", Number(0.0, 100.0), "The wait grows by this with each try.", "1.2"),
        Key("backoffMaxDelay", Period(), "Longest wait.", "3s"),
        Key("jitter", Period(), "Random part added to a wait.", "0"),
        Key("emptyResultAccept", TEXTS, "Methods whose empty result is an answer.", "by method"),
        Key("emptyResultIgnore", TEXTS, "Older name of `emptyResultAccept`."),
        Key(
            "emptyResultMaxAttempts",
            Integer(1, 100),
            "Rounds where the reason is an empty answer, for requests that say `retryEmpty: true`.",
            "2",
        ),
        Key(
            "emptyResultConfidence",
            Text(("blockHead", "finalizedBlock")),
            "Older place of `evm.emptyResultConfidence`.",
        ),
        ignored("emptyResultDelay", "a retry waits `delay`"),
        ignored("blockUnavailableDelay", "a retry waits `delay`"),
    ),
)

_HEDGE = Section(
    "hedge",
    "failsafe[].hedge",
    (
        Key(
            "delay",
            adaptive(is_zero_allowed=True),
            "A duration, or `{base, quantile, min, max}`. Needed.",
            "",
            "at once",
        ),
        Key("maxCount", Integer(0, 10), "Parallel tries beside the first.", "1", "no hedge"),
        Key("quantile", Number(0.0, 1.0), "Older form of `delay.quantile`."),
        Key("minDelay", Period(), "Older form of `delay.min`."),
        Key("maxDelay", Period(), "Older form of `delay.max`."),
    ),
)

_CIRCUIT_BREAKER = Section(
    "circuitBreaker",
    "failsafe[].circuitBreaker",
    (
        Key("failureThresholdCount", Integer(1), "Failures in the window that open it.", "20"),
        Key("failureThresholdCapacity", Integer(1), "Outcomes in the window.", "80"),
        Key("halfOpenAfter", Period(False), "Time it stays open.", "5m"),
        Key("successThresholdCount", Integer(1), "Trials that must succeed to close it.", "8"),
        Key("successThresholdCapacity", Integer(1), "Trials made.", "10"),
    ),
)

_BREAKER = Section(
    "breaker",
    "upstreams[].breaker",
    (
        Key("threshold", Integer(1), "Consecutive misses that open it.", "3"),
        Key("openFor", Period(False), "Time it stays open.", "10s"),
    ),
)

_RELAY_ERROR = Section(
    "relayError",
    "upstreams[].relayError",
    (
        Key("status", Integer(100, 599), "HTTP status of a relayed node error.", "502"),
        Key("header", Text(), "Header that marks it.", "X-Ssr-Cache"),
        Key("value", Text(), "Its value, compared without case.", "RPCERROR"),
    ),
)

_PROVIDER = Section(
    "provider",
    "providers[]",
    (
        Key("id", Text(), "Name.", "the vendor"),
        Key("vendor", Text(), "Shipped vendor. Needed."),
        Key("settings", MapOf(Anything()), "`apiKey`, and `creditUnits` for the upstreams made from it."),
        Key("onlyNetworks", TEXTS, "Networks to make upstreams for, as `evm:1`.", "the project's networks"),
        Key("ignoreNetworks", TEXTS, "Networks to leave out."),
        Key("upstreamIdTemplate", Text(), "Names of the upstreams.", "<PROVIDER>-<NETWORK>"),
        Key("overrides", MapOf(section("upstream")), "Network (or `*`, `evm:*`) → settings of its upstream."),
    ),
)

_AUTH = Section("auth", "projects[].auth", (Key("strategies", ListOf(section("strategy")), "One must fit."),))

_STRATEGY = Section(
    "strategy",
    "projects[].auth.strategies[]",
    (
        Key(
            "type",
            Text(),
            "`secret` or `network`; the other types of eRPC are errors.",
            "by the one block beside it",
        ),
        Key(
            "secret",
            section("secret"),
            "A client's secret, sent as `Authorization: Bearer`, `X-Gnomon-Secret` or `?secret=`.",
        ),
        Key("network", section("access"), "Addresses let in."),
        Key("rateLimitBudget", Text(), "Budget of each user let in by it."),
        guard("allowMethods", "methods are not limited by client", is_empty),
        guard("ignoreMethods", "methods are not limited by client", is_empty),
        Key("jwt", Anything(), "Only with `type: jwt`."),
        Key("siwe", Anything(), "Only with `type: siwe`."),
        Key("database", Anything(), "Only with `type: database`."),
    ),
)

_SECRET = Section(
    "secret",
    "projects[].auth.strategies[].secret",
    (
        Key("id", Text(), "User in events and SQL.", "secret-N"),
        Key("value", Text(is_secret=True), "The secret itself; better by `${NAME}`, `valueFile` or `sha256`."),
        Key("valueFile", Text(), "File with the secret."),
        Key("sha256", Text(), "SHA-256 of the secret, hex."),
        Key("rateLimitBudget", Text(), "Budget of this user."),
    ),
)

_ACCESS = Section(
    "access",
    "projects[].auth.strategies[].network",
    (
        Key("allowedIPs", TEXTS, "Addresses."),
        Key("allowedCIDRs", TEXTS, "Ranges of addresses."),
        Key("allowLocalhost", Flag(), "Let this machine in.", "false"),
        Key("trustedProxies", TEXTS, "Proxies whose `X-Forwarded-For` names the client."),
        Key("rateLimitBudget", Text(), "Budget of each address."),
        Key("ipAsUser", Flag(), "Accepted and void: the strategy is the user.", "false"),
    ),
)

_CORS = Section(
    "cors",
    "projects[].cors, gnomon.api.cors",
    (
        Key(
            "allowedOrigins",
            TEXTS,
            "Origins, `https://*.example.com` for all below a name, `*` for every one.",
        ),
        Key("allowedMethods", TEXTS, "HTTP methods.", "GET, POST, OPTIONS"),
        Key("allowedHeaders", TEXTS, "Request headers.", "content-type, authorization, x-erpc-secret-token"),
        Key("exposedHeaders", TEXTS, "Response headers a page may read."),
        Key("allowCredentials", Flag(), "Whether cookies may be sent.", "false"),
        Key("maxAge", Integer(0), "Seconds a page may remember.", "3600"),
    ),
)

_RATE_LIMITERS = Section(
    "rateLimiters",
    "rateLimiters",
    (
        Key("budgets", ListOf(section("budget")), "Budgets by name."),
        guard("store", "counts are kept in this process only", lambda node: _driver(node) == "memory"),
    ),
)

_BUDGET = Section(
    "budget",
    "rateLimiters.budgets[]",
    (
        Key("id", Text(), "Name. Needed."),
        Key("rules", ListOf(section("rule")), "Every rule that fits must have room."),
    ),
)

_RULE = Section(
    "rule",
    "rateLimiters.budgets[].rules[]",
    (
        Key("method", Text(), "Methods it counts; `*` stands for any text.", "*"),
        Key("maxCount", Integer(0), "Most calls in a period. Needed.", "", "none"),
        Key("period", Text(), "`second`, `minute`, `hour`, `day`, `week`, `month`, `year`, or its length.", "second"),
        Key("waitTime", Period(), "Longest wait for room.", "0", "refuse at once"),
        Key("perIP", Flag(), "Count each address apart.", "false"),
        Key("perUser", Flag(), "Count each user apart.", "false"),
        Key("perNetwork", Flag(), "Count each network apart.", "false"),
    ),
)


def _driver(node: Node) -> str:
    driver = node.items.get("driver") if isinstance(node, Table) else None
    return driver.text if isinstance(driver, Scalar) else ""


ERPC_SECTIONS: tuple[Section, ...] = (
    _ROOT,
    _HEALTH_CHECK,
    _SERVER,
    _SERVER_TLS,
    _PROJECT,
    _NETWORK,
    _FAILOVER,
    _NETWORK_DEFAULTS,
    _NETWORK_EVM,
    _SERVED_TIP,
    _SELECTION,
    _DIRECTIVES,
    _UPSTREAM,
    _UPSTREAM_EVM,
    _AVAILABILITY,
    _BOUND,
    _JSON_RPC,
    _ROUTING,
    _SHADOW,
    _FAILSAFE,
    _ADAPTIVE,
    _TIMEOUT,
    _RETRY,
    _HEDGE,
    _CIRCUIT_BREAKER,
    _BREAKER,
    _RELAY_ERROR,
    _PROVIDER,
    _AUTH,
    _STRATEGY,
    _SECRET,
    _ACCESS,
    _CORS,
    _RATE_LIMITERS,
    _BUDGET,
    _RULE,
)
"""In the order of the documentation."""
