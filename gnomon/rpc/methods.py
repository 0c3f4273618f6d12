"""
The method table: what each JSON-RPC method is, in one place.

`lookup(name)` is a dictionary access for every listed name. An unlisted name gets a safe entry: not known, no block, an
empty answer is an answer, and a write when its name sounds like one (a write is never hedged and never mirrored).

Sources: execution-apis (github.com/ethereum/execution-apis), the tables of eRPC (github.com/erpc/erpc,
common/defaults.go), and the method lists of geth, Erigon, Nethermind, Nitro and Parity-style tracing.
"""

import re
from dataclasses import dataclass
from typing import Literal

BlockPath = tuple[int | str, ...]
"""A position in params or in a result: indexes and member names, from the root."""

StaticFinality = Literal["finalized", "realtime"]


@dataclass(frozen=True, slots=True)
class Method:
    """What is true of one method, whatever its parameters."""

    name: str
    is_known: bool = False
    """It is in the table."""
    is_write: bool = False
    """It may change the state of the chain, of the node, or of an account: never hedged, never mirrored."""
    is_node_local: bool = False
    """There is no single right answer: it is about the node asked, or advice."""
    is_stateful: bool = False
    """It speaks of something that one node keeps (a filter, a subscription): only that node can go on with it."""
    miss_when_empty: bool = False
    """A null or empty result means "not found", so another upstream may have it."""
    list_is_value: bool = False
    """With `miss_when_empty`: an empty list is an answer all the same (a block without transactions)."""
    finality: StaticFinality | None = None
    """The same for every call, where it is."""
    block_paths: tuple[BlockPath, ...] = ()
    """Where params name a block: `(1,)`, `(0, "fromBlock")`. Values of another kind at a position are passed over."""
    response_block_path: BlockPath | None = None
    """Where a result names its block number; `()` = the result itself is the number."""
    is_range: bool = False
    """It covers a range of blocks: a left-out upper end means the newest block."""
    is_head_default: bool = False
    """A left-out block parameter means the newest block."""


_METHODS: dict[str, Method] = {}


def _add(
    names: str,
    *paths: BlockPath,
    response: BlockPath | None = None,
    finality: StaticFinality | None = None,
    is_write: bool = False,
    is_node_local: bool = False,
    is_stateful: bool = False,
    miss_when_empty: bool = False,
    list_is_value: bool = False,
    is_range: bool = False,
    is_head_default: bool = False,
) -> None:
    for name in names.split():
        if name in _METHODS:
            raise ValueError(f"{name} is listed twice")
        _METHODS[name] = Method(
            name=name,
            is_known=True,
            is_write=is_write,
            is_node_local=is_node_local,
            is_stateful=is_stateful,
            miss_when_empty=miss_when_empty,
            list_is_value=list_is_value,
            finality=finality,
            block_paths=paths,
            response_block_path=response,
            is_range=is_range,
            is_head_default=is_head_default,
        )


# --- the same for ever, or of the newest block ----------------------------------------------------------------------
_add("eth_chainId net_version", finality="finalized")
_add(
    "eth_hashrate eth_mining eth_syncing net_peerCount eth_gasPrice eth_maxPriorityFeePerGas",
    finality="realtime",
    is_node_local=True,
)
_add("eth_blobBaseFee eth_baseFee", finality="realtime")
_add("eth_blockNumber erigon_blockNumber", finality="realtime", response=(), is_node_local=True, miss_when_empty=True)

# --- blocks, transactions, receipts: a null is "not found" ----------------------------------------------------------
_add(
    "eth_getBlockByNumber eth_getBlockByHash eth_getHeaderByNumber eth_getHeaderByHash"
    " erigon_getHeaderByNumber erigon_getHeaderByHash"
    " eth_getUncleByBlockNumberAndIndex eth_getUncleByBlockHashAndIndex",
    (0,),
    response=("number",),
    miss_when_empty=True,
)
_add(
    "eth_getTransactionByBlockNumberAndIndex eth_getTransactionByBlockHashAndIndex",
    (0,),
    response=("blockNumber",),
    miss_when_empty=True,
)
_add("eth_getTransactionByHash eth_getTransactionReceipt", response=("blockNumber",), miss_when_empty=True)
_add("eth_getBlockReceipts", (0,), response=(0, "blockNumber"), miss_when_empty=True, list_is_value=True)
_add("eth_getTransactionReceiptsByBlock", (0,), response=(0, "blockNumber"), miss_when_empty=True, list_is_value=True)
_add(
    "eth_getBlockTransactionCountByNumber eth_getBlockTransactionCountByHash"
    " eth_getUncleCountByBlockNumber eth_getUncleCountByBlockHash"
    " eth_getRawTransactionByBlockNumberAndIndex eth_getRawTransactionByBlockHashAndIndex",
    (0,),
    miss_when_empty=True,
)
_add("eth_getRawTransactionByHash debug_getRawTransaction", miss_when_empty=True)
_add("debug_getRawBlock debug_getRawHeader", (0,), miss_when_empty=True)
_add("debug_getRawReceipts", (0,), miss_when_empty=True, list_is_value=True)
_add("erigon_getBlockByTimestamp", (1,), response=("number",), miss_when_empty=True)
_add("erigon_getBlockReceiptsByBlockHash eth_getBlockAccessListByBlockHash eth_getBlockAccessListByBlockNumber", (0,))

# --- state: zero, 0x and no code are values -------------------------------------------------------------------------
_add(
    "eth_getBalance eth_getTransactionCount eth_getCode eth_call eth_estimateGas eth_createAccessList eth_getAccount"
    " eth_getAccountInfo eth_simulateV1 debug_traceCall debug_traceCallMany eth_callMany eth_getStorageValues"
    " eth_getTransactionBySenderAndNonce zks_getProof linea_estimateGas",
    (1,),
    is_head_default=True,
)
_add("eth_getStorageAt eth_getProof", (2,), is_head_default=True)
_add("eth_feeHistory", (1,))
_add("debug_storageRangeAt debug_accountRange debug_dumpBlock debug_getModifiedAccountsByNumber", (0,))
_add("eth_getRootHash", (1,))
_add("eth_config eth_capabilities")

# --- logs: most ranges are empty ------------------------------------------------------------------------------------
_add("eth_getLogs", (0, "fromBlock"), (0, "toBlock"), (0, "blockHash"), is_range=True)
_add("erigon_getLogs erigon_getLatestLogs", (0, "fromBlock"), (0, "toBlock"), (0, "blockHash"), is_range=True)
_add("trace_filter arbtrace_filter", (0, "fromBlock"), (0, "toBlock"), is_range=True)
_add("erigon_getLogsByHash", (0,))

# --- traces ---------------------------------------------------------------------------------------------------------
_add("trace_block arbtrace_block", (0,), miss_when_empty=True)
_add("trace_replayBlockTransactions arbtrace_replayBlockTransactions", (0,), miss_when_empty=True, list_is_value=True)
_add(
    "debug_traceBlockByNumber debug_traceBlockByHash debug_intermediateRoots", (0,),
    miss_when_empty=True, list_is_value=True,
)  # fmt: skip
_add("trace_call", (1,), (2,), is_head_default=True)
_add("arbtrace_call", (2,), is_head_default=True)
_add("trace_callMany arbtrace_callMany", (1,), is_head_default=True)
_add(
    "trace_transaction trace_get trace_replayTransaction debug_traceTransaction"
    " arbtrace_transaction arbtrace_get arbtrace_replayTransaction",
    miss_when_empty=True,
)
_add("trace_rawTransaction debug_traceBlock debug_traceChain debug_preimage debug_getModifiedAccountsByHash")
_add("ots_getApiLevel ots_getTransactionError ots_getInternalOperations ots_traceTransaction ots_getContractCreator")
_add("ots_hasCode", (1,), is_head_default=True)
_add("ots_getBlockDetails ots_getBlockTransactions", (0,), miss_when_empty=True)
_add("ots_getBlockDetailsByHash", (0,), miss_when_empty=True)
_add("ots_searchTransactionsBefore ots_searchTransactionsAfter", (1,))

# --- about the node that was asked ----------------------------------------------------------------------------------
_add(
    "web3_clientVersion net_listening eth_accounts eth_coinbase eth_protocolVersion eth_getWork eth_getCompilers"
    " rpc_modules txpool_status eth_pendingTransactions"
    " parity_pendingTransactions debug_getBadBlocks debug_metrics debug_memStats debug_gcStats debug_stacks"
    " debug_chaindbProperty debug_dbGet debug_printBlock admin_nodeInfo admin_peers admin_datadir"
    " erigon_nodeInfo optimism_syncStatus optimism_version net_enode eth_health",
    is_node_local=True,
)
_add(
    "eth_newFilter eth_newBlockFilter eth_newPendingTransactionFilter eth_getFilterChanges eth_getFilterLogs"
    " eth_uninstallFilter eth_subscribe eth_unsubscribe",
    is_node_local=True,
    is_stateful=True,
)
_add("web3_sha3 txpool_content txpool_contentFrom txpool_inspect")

# --- chain families -------------------------------------------------------------------------------------------------
_add("erigon_forks erigon_issuance optimism_rollupConfig zks_L1ChainId zks_getMainContract zks_getBridgeContracts")
_add("optimism_outputAtBlock zks_getBlockDetails zks_getRawBlockTransactions", (0,))
_add("bor_getAuthor bor_getSnapshot bor_getSigners bor_getSignersAtHash", (0,))
_add("bor_getRootHash bor_getCurrentValidators bor_getCurrentProposer")
_add("linea_getProof", (2,), is_head_default=True)
_add("zks_getTransactionDetails zks_getL1BatchDetails zks_L1BatchNumber zks_estimateFee zks_estimateGasL1ToL2")
_add("eth_getBlobSidecars eth_getBlobSidecarByTxHash", (0,))
_add("testing_buildBlockV1 eth_callBundle eth_fillTransaction eth_getTdByNumber")
_add("eth_getFinalizedHeader eth_getFinalizedBlock", finality="realtime", response=("number",))

# --- writes ---------------------------------------------------------------------------------------------------------
_add(
    "eth_sendRawTransaction eth_sendTransaction eth_sendRawTransactionSync eth_sendRawTransactionConditional"
    " eth_sendPrivateTransaction eth_sendPrivateRawTransaction eth_cancelPrivateTransaction eth_sendBundle"
    " eth_cancelBundle mev_sendBundle mev_sendMegaBundle mev_simBundle eth_sendMegabundle eth_sendUserOperation"
    " eth_sendEndOfBlockBundle eth_sendBlobs eth_resend eth_sign eth_signTransaction eth_signTypedData"
    " eth_signTypedData_v3 eth_signTypedData_v4 eth_submitWork eth_submitHashrate eth_submitTransaction"
    " bor_sendRawTransactionConditional zks_sendRawTransactionWithDetailedOutput linea_sendBundle"
    " debug_setHead debug_setGCPercent debug_chaindbCompact debug_freeOSMemory debug_verbosity debug_vmodule"
    " testing_commitBlockV1",
    is_write=True,
)

_WRITE_PREFIX = re.compile(
    r"(?:engine|miner|admin|personal|anvil|hardhat|evm|ganache|tenderly|clique|wallet|les|flashbots)_"
    r"|eth_(?:send|sign|submit|cancel|resend|setbundle)|debug_(?:set|start|stop|write|block(?!_)|mutex|cpu|go)"
)
"""Namespaces that change state unless a method of theirs is listed above as a question. Compared in lower case."""

_WRITE_VERB = re.compile(
    r"(?:send|sign|submit|broadcast|cancel|set|unlock|lock|import|start|stop|kill|add|remove|delete|drop"
    r"|create(?!accesslist)|update|mine|revert|publish|post|push|write|issue|transfer|withdraw|deposit|approve)"
)
"""How the name of a write begins after its namespace, where nobody listed it (`condenser_api.broadcast_…`)."""

# questions inside those namespaces
_add(
    "anvil_nodeInfo anvil_dumpState hardhat_metadata hardhat_getAutomine anvil_getAutomine anvil_getIntervalMining"
    " clique_getSnapshot clique_getSigners clique_status clique_proposals engine_getClientVersionV1"
    " engine_exchangeCapabilities flashbots_getUserStats wallet_getCapabilities",
    is_node_local=True,
)


def _unlisted(name: str) -> Method:
    """Return the safe entry for a name that is not in the table; compared without case, as some nodes do."""
    folded = name.lower()
    own = folded.rpartition(".")[2] if "." in folded else folded.partition("_")[2] or folded
    is_write = _WRITE_PREFIX.match(folded) is not None or _WRITE_VERB.match(own) is not None
    return Method(name=name, is_write=is_write)


class _Table(dict[str, Method]):
    """The table; unlisted names are judged once each and kept up to a bound, since clients choose them."""

    __slots__ = ("_n_unlisted",)
    MAX_UNLISTED = 4096
    MAX_NAME_CHARACTERS = 128

    def __init__(self, methods: dict[str, Method]) -> None:
        super().__init__(methods)
        self._n_unlisted = 0

    def __missing__(self, name: str) -> Method:
        method = _unlisted(name)
        if len(name) <= self.MAX_NAME_CHARACTERS and self._n_unlisted < self.MAX_UNLISTED:
            self._n_unlisted += 1
            self[name] = method
        return method


METHODS: dict[str, Method] = dict(_METHODS)
"""Every listed method by name."""

lookup = _Table(_METHODS).__getitem__
"""
`lookup(name: str) -> Method`: the entry of a method, never an error.

A dictionary access, for the proxy's hot path. Names are compared exactly, as nodes do.
"""
