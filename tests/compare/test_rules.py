# ruff: noqa: E501
"""
Rules of the specification (cases/divergence/README.md), each in several variations: other methods, other shapes.

A row: name, method, params, primary, shadow, then outcome, class, finality and paths (None: for information only).
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gnomon.compare.cases import judge_case, read_case

Json = Any
H, H2, A = "0x" + "ab" * 32, "0x" + "cd" * 32, "0x" + "1f" * 20
BLOCK, TRACE = "eth_getBlockByNumber", "debug_traceTransaction"
LOGS = [{"fromBlock": "0x50", "toBlock": "0x51"}]
CALL = [{"to": A}, "0x50"]
BATCH = [{"id": 1, "method": "eth_chainId", "params": []}, {"id": 2, "method": "eth_getBalance", "params": [A, "0x50"]}]
HEAD = {"latest": 100, "finalized": 90}
M, SAME, X, E = "mismatch", "identical", "incomparable", "error"
FI, UN, RT, UK = "finalized", "unfinalized", "realtime", "unknown"
R = "$.result"
_SAME = {"identical_masked": "identical", "tolerated": "identical"}
_ROWS: list[Any] = []


def tx(**changes: Json) -> dict[str, Json]:
    """Return a transaction of block 0x50, which is final."""
    return {
        "blockHash": H,
        "blockNumber": "0x50",
        "from": A,
        "gas": "0x5208",
        "hash": H2,
        "input": "0x",
        "nonce": "0x5",
        "transactionIndex": "0x0",
        "type": "0x2",
    } | changes


def blk(**changes: Json) -> dict[str, Json]:
    """Return block 0x50."""
    return {
        "number": "0x50",
        "hash": H,
        "parentHash": H2,
        "gasUsed": "0x0",
        "timestamp": "0x1",
        "transactions": [],
        "uncles": [],
    } | changes


def lg(i: int, **changes: Json) -> dict[str, Json]:
    """Return a log of block 0x50."""
    return {
        "address": A,
        "topics": [H],
        "data": f"0x{i:064x}",
        "blockNumber": "0x50",
        "transactionHash": f"0x{i // 2:064x}",
        "transactionIndex": hex(i // 2),
        "blockHash": H,
        "logIndex": hex(i),
        "removed": False,
    } | changes


def rc(i: int, **changes: Json) -> dict[str, Json]:
    """Return a receipt of block 0x50."""
    return {
        "blockHash": H,
        "blockNumber": "0x50",
        "gasUsed": "0x5208",
        "logs": [lg(i)],
        "status": "0x1",
        "transactionHash": f"0x{i:064x}",
        "transactionIndex": hex(i),
    } | changes


def tr(i: int, **changes: Json) -> dict[str, Json]:
    """Return a trace of block 0x50, whose number traces give as a number."""
    return {
        "action": {"from": A, "gas": hex(i)},
        "blockHash": H,
        "blockNumber": 80,
        "transactionHash": H2,
        "transactionPosition": 0,
        "traceAddress": [i],
        "type": "call",
        "subtraces": 0,
    } | changes


def rr(rpc_id: Json, value: Json) -> dict[str, Json]:
    """Return a response with a result."""
    return {"jsonrpc": "2.0", "id": rpc_id, "result": value}


def ee(rpc_id: Json, code: int, message: str, *data: Json) -> dict[str, Json]:
    """Return a response with an error."""
    error = {"code": code, "message": message} | ({"data": data[0]} if data else {})
    return {"jsonrpc": "2.0", "id": rpc_id, "error": error}


def r(value: Json) -> dict[str, Json]:
    """Return a result."""
    return rr(1, value)


def e(code: int, message: str, *data: Json) -> dict[str, Json]:
    """Return an error."""
    return ee(1, code, message, *data)


def case(
    name: str,
    method: str,
    params: Json,
    primary: Json,
    shadow: Json,
    outcome: str,
    class_: str,
    finality: str,
    paths: list[str] | None,
    head: Json = HEAD,
    masks: Sequence[str] = (),
    praw: str | None = None,
    sraw: str | None = None,
) -> None:
    """Add a row."""
    line = {
        "id": name,
        "network": "evm:1",
        "method": method,
        "params": params,
        "primary": primary,
        "shadow": shadow,
        "head": head,
        "ignore_fields": list(masks),
        "primary_raw": praw,
        "shadow_raw": sraw,
    }
    _ROWS.append(pytest.param(line, (outcome, class_, finality), paths, id=name.replace(" ", "-")))


# fmt: off
# --- blocks ---
case("blk size", BLOCK,["0x50",False],r(blk(size="0x1")),r(blk(size="0x2")),M,"value",FI,["$.result.size"])
case("blk difficulty 0x vs 0x0", BLOCK,["0x50",False],r(blk(difficulty="0x0")),r(blk(difficulty="0x")),M,"hex_padding",FI,["$.result.difficulty"])
case("blk nonce pad", BLOCK,["0x50",False],r(blk(nonce="0x0000000000000000")),r(blk(nonce="0x0")),M,"hex_padding",FI,["$.result.nonce"])
case("blk td null", BLOCK,["0x50",False],r(blk(totalDifficulty="0x0")),r(blk(totalDifficulty=None)),M,"empty_vs_data",FI,["$.result.totalDifficulty"])
case("blk miner case", BLOCK,["0x50",False],r(blk(miner="0x"+"Ab"*20)),r(blk(miner="0x"+"ab"*20)),M,"hex_case",FI,["$.result.miner"])
case("blk td decimal", BLOCK,["0x50",False],r(blk(totalDifficulty="0x4d2")),r(blk(totalDifficulty="1234")),M,"encoding",FI,["$.result.totalDifficulty"])
case("blk number int", BLOCK,["0x50",False],r(blk()),r(blk(number=80)),M,"type",FI,["$.result.number"])
case("blk withdrawals null vs []", BLOCK,["0x50",False],r(blk(withdrawals=[])),r(blk(withdrawals=None)),M,"type",FI,["$.result.withdrawals"])
case("blk withdrawals extra null", BLOCK,["0x50",False],r(blk()),r(blk(withdrawals=None)),M,"null_vs_absent",FI,["$.result.withdrawals"])
case("blk withdrawals []absent", BLOCK,["0x50",False],r(blk(withdrawals=[])),r(blk()),M,"missing_field",FI,["$.result.withdrawals"])
case("blk full vs hash", BLOCK,["0x50",True],r(blk(transactions=[tx()])),r(blk(transactions=[H2])),M,"type",FI,["$.result.transactions[0]"])
case("blk0", BLOCK,["0x0",False],r(blk(number="0x0")),r(blk(number="0x0",size="0x1")),M,"extra_field",FI,["$.result.size"])
case("blk0 head fin 0", BLOCK,["0x0",False],r(blk(number="0x0")),r(blk(number="0x0",size="0x1")),M,"extra_field",FI,["$.result.size"],head={"latest":5,"finalized":0})
case("earliest", BLOCK,["earliest",False],r(blk(number="0x0")),r(blk(number="0x0",size="0x1")),M,"extra_field",RT,["$.result.size"])
case("latest same n", BLOCK,["latest",False],r(blk()),r(blk(size="0x1")),M,"extra_field",RT,["$.result.size"])
case("latest other n", BLOCK,["latest",False],r(blk()),r(blk(number="0x51",hash=H2)),X,"stale_head",RT,None)
case("safe other n", BLOCK,["safe",False],r(blk()),r(blk(number="0x51",hash=H2)),X,"stale_head",RT,None)
case("finalized other n", BLOCK,["finalized",False],r(blk()),r(blk(number="0x51",hash=H2)),X,"stale_head",RT,None)
case("latest same n two hashes", BLOCK,["latest",False],r(blk()),r(blk(hash=H2)),M,"reorg_block_hash",RT,["$.result.hash"])
case("finalized null", BLOCK,["finalized",False],r(blk()),r(None),M,"empty_vs_data",RT,[R])
case("finalized error", BLOCK,["finalized",False],r(blk()),e(-32000,"finalized block not found"),E,"error_vs_result",RT,None)
case("finalized -39001", BLOCK,["finalized",False],r(blk()),e(-39001,"Unknown block"),E,"error_vs_result",RT,None)
case("pending vs null", BLOCK,["pending",False],r(blk()),r(None),M,"empty_vs_data",RT,[R])
case("hash lookup",   "eth_getBlockByHash",[H,False],r(blk()),r(blk(size="0x1")),M,"extra_field",FI,["$.result.size"])
case("hash lookup null", "eth_getBlockByHash",[H,False],r(blk()),r(None),M,"empty_vs_data",FI,[R])
case("hash lookup null unf", "eth_getBlockByHash",[H,False],r(None),r(blk(number="0x60")),M,"stale_head",UN,[R])
case("null final height", BLOCK,["0x50",False],r(blk()),r(None),M,"empty_vs_data",FI,[R])
case("null unf height", BLOCK,["0x60",False],r(None),r(blk(number="0x60")),M,"stale_head",UN,[R])
case("both null beyond", BLOCK,["0x100",False],r(None),r(None),SAME,"none",UN,[])
case("null vs {}", BLOCK,["0x100",False],r(None),r({}),SAME,"none",UN,[])
case("null vs {} tx lookups obj", "eth_getTransactionByHash",[H2],r(tx()),r({}),M,"empty_vs_data",FI,[R])
case("blk by number decimal param", BLOCK,[80,False],r(blk()),r(blk(size="0x1")),M,"extra_field",FI,["$.result.size"])
case("no head", BLOCK,["0x50",False],r(blk()),r(blk(size="0x1")),M,"extra_field",UK,["$.result.size"],head=None)
case("no head tag", BLOCK,["latest",False],r(blk()),r(blk(size="0x1")),M,"extra_field",RT,["$.result.size"],head=None)
case("uncle count", "eth_getUncleCountByBlockNumber",["0x50"],r("0x0"),r("0x1"),M,"value",FI,[R])
case("uncle count null", "eth_getUncleCountByBlockNumber",["0x50"],r("0x0"),r(None),M,"empty_vs_data",FI,[R])
case("uncle", "eth_getUncleByBlockNumberAndIndex",["0x50","0x0"],r(blk()),r(None),M,"empty_vs_data",FI,[R])
case("txcount hash", "eth_getBlockTransactionCountByHash",[H],r("0x1"),r("0x2"),M,"value",UK,[R])
case("txcount pad", "eth_getBlockTransactionCountByNumber",["0x50"],r("0x1"),r("0x01"),M,"hex_padding",FI,[R])
case("txs order", BLOCK,["0x50",False],r(blk(transactions=[H,H2])),r(blk(transactions=[H2,H])),M,"array_order",FI,["$.result.transactions"])
case("uncles null vs []", BLOCK,["0x50",False],r(blk()),r(blk(uncles=None)),M,"type",FI,["$.result.uncles"])
case("withdrawals keyed", BLOCK,["0x50",False],r(blk(withdrawals=[{"index":"0x1","amount":"0x1"},{"index":"0x2","amount":"0x2"}])),r(blk(withdrawals=[{"index":"0x2","amount":"0x3"}])),M,"value",FI,["$.result.withdrawals","$.result.withdrawals[1].amount"])
case("txs keyed", BLOCK,["0x50",True],r(blk(transactions=[tx(hash=H),tx(hash=H2)])),r(blk(transactions=[tx(hash=H2,gas="0x1")])),M,"value",FI,["$.result.transactions","$.result.transactions[1].gas"])
# --- tx ---
case("tx null final", "eth_getTransactionByHash",[H2],r(tx()),r(None),M,"empty_vs_data",FI,[R])
case("tx null unf", "eth_getTransactionByHash",[H2],r(tx(blockNumber="0x60")),r(None),M,"stale_head",UN,[R])
case("tx pending vs null", "eth_getTransactionByHash",[H2],r(tx(blockNumber=None,blockHash=None,transactionIndex=None)),r(None),M,"empty_vs_data",UK,[R])
case("tx pending vs mined", "eth_getTransactionByHash",[H2],r(tx(blockNumber=None,blockHash=None,transactionIndex=None)),r(tx()),M,"empty_vs_data",FI,["$.result.blockNumber","$.result.blockHash","$.result.transactionIndex"])
case("tx reorg", "eth_getTransactionByHash",[H2],r(tx(blockNumber="0x60")),r(tx(blockNumber="0x60",blockHash=H2)),M,"reorg_block_hash",UN,["$.result.blockHash"])
case("tx other height", "eth_getTransactionByHash",[H2],r(tx(blockNumber="0x60")),r(tx(blockNumber="0x61",blockHash=H2)),M,"value",UN,["$.result.blockHash","$.result.blockNumber"])
case("tx v pad", "eth_getTransactionByHash",[H2],r(tx(v="0x0",r="0x0123")),r(tx(v="0x00",r="0x123")),M,"hex_padding",FI,["$.result.v","$.result.r"])
case("tx to checksum", "eth_getTransactionByHash",[H2],r(tx(to="0x"+"aB"*20)),r(tx(to="0x"+"ab"*20)),M,"hex_case",FI,["$.result.to"])
case("tx input data", "eth_getTransactionByHash",[H2],r(tx(input="0xabcd")),r(tx(input="0x")),M,"empty_vs_data",FI,["$.result.input"])
case("tx to null absent", "eth_getTransactionByHash",[H2],r(tx(to=None)),r(tx()),M,"null_vs_absent",FI,["$.result.to"])
case("tx chainId int", "eth_getTransactionByHash",[H2],r(tx(chainId="0x1")),r(tx(chainId=1)),M,"type",FI,["$.result.chainId"])
case("tx by idx", "eth_getTransactionByBlockNumberAndIndex",["0x50","0x0"],r(tx()),r(tx(gas="0x1")),M,"value",FI,["$.result.gas"])
case("tx by hash idx", "eth_getTransactionByBlockHashAndIndex",[H,"0x0"],r(tx()),r(tx(gas="0x1")),M,"value",FI,["$.result.gas"])
case("tx raw", "eth_getRawTransactionByHash",[H2],r("0x02f8"),r("0x"),M,"empty_vs_data",UK,[R])
case("tx raw case", "eth_getRawTransactionByHash",[H2],r("0x02f8"),r("0x02F8"),M,"hex_case",UK,[R])
case("tx raw no prefix", "eth_getRawTransactionByHash",[H2],r("0x02f8"),r("02f8"),M,"encoding",UK,[R])
# --- receipts ---
case("rc status", "eth_getTransactionReceipt",[H2],r(rc(1)),r(rc(1,status="0x0")),M,"value",FI,["$.result.status"])
case("rc status bool", "eth_getTransactionReceipt",[H2],r(rc(1)),r(rc(1,status=True)),M,"type",FI,["$.result.status"])
case("rc null", "eth_getTransactionReceipt",[H2],r(None),r(rc(1)),M,"empty_vs_data",FI,[R])
case("rc indexing", "eth_getTransactionReceipt",[H2],r(rc(1)),e(-32000,"transaction indexing is in progress"),E,"error_vs_result",FI,None)
case("rc bloom", "eth_getTransactionReceipt",[H2],r(rc(1,logsBloom="0x00")),r(rc(1,logsBloom="0x")),M,"hex_padding",FI,["$.result.logsBloom"])
case("rc logs [] ", "eth_getTransactionReceipt",[H2],r(rc(1)),r(rc(1,logs=[])),M,"empty_vs_data",FI,["$.result.logs"])
case("rcs blocks", "eth_getBlockReceipts",["0x50"],r([rc(0),rc(1)]),r([rc(0),rc(1,logs=[lg(1,data="0x1")])]),M,"hex_padding",FI,["$.result[1].logs[0].data"])
case("rcs shorter", "eth_getBlockReceipts",["0x50"],r([rc(0),rc(1)]),r([rc(1)]),M,"array_length",FI,[R])
case("rcs null", "eth_getBlockReceipts",["0x50"],r([rc(0),rc(1)]),r(None),M,"empty_vs_data",FI,[R])
case("rcs [] vs null", "eth_getBlockReceipts",["0x50"],r([]),r(None),SAME,"none",FI,[])
case("rcs hash", "eth_getBlockReceipts",[H],r([rc(0)]),r([rc(0,status="0x0")]),M,"value",FI,["$.result[0].status"])
case("rcs obj", "eth_getBlockReceipts",[{"blockHash":H}],r([rc(0)]),r([rc(0,status="0x0")]),M,"value",FI,["$.result[0].status"])
case("rcs latest other", "eth_getBlockReceipts",["latest"],r([rc(0)]),r([rc(0,blockNumber="0x51")]),X,"stale_head",RT,None)
case("rcs order", "eth_getBlockReceipts",["0x50"],r([rc(0),rc(1)]),r([rc(1),rc(0)]),M,"array_order",FI,[R])
case("mask all", "eth_getBlockReceipts",["0x50"],r([rc(0,l1Fee="0x1")]),r([rc(0)]),SAME,"none",FI,[],masks=["*.l1Fee"])
case("mask prefix no", "eth_getBlockReceipts",["0x50"],r([rc(0,l1FeeScalar="1")]),r([rc(0)]),M,"missing_field",FI,["$.result[0].l1FeeScalar"],masks=["*.l1Fee"])
case("mask no root", "eth_getBlockReceipts",["0x50"],r([rc(0,l1Fee="0x1")]),r([rc(0)]),M,"missing_field",FI,["$.result[0].l1Fee"],masks=["l1Fee"])
case("mask nested", "eth_getBlockReceipts",["0x50"],r([rc(0,logs=[lg(0,blockTimestamp="0x1")])]),r([rc(0)]),SAME,"none",FI,[],masks=["*.logs.*.blockTimestamp"])
case("mask **", "eth_getBlockReceipts",["0x50"],r([rc(0,logs=[lg(0,blockTimestamp="0x1")])]),r([rc(0)]),SAME,"none",FI,[],masks=["**.blockTimestamp"])
case("mask one level only", "eth_getBlockReceipts",["0x50"],r([rc(0,logs=[lg(0,blockTimestamp="0x1")])]),r([rc(0)]),M,"missing_field",FI,["$.result[0].logs[0].blockTimestamp"],masks=["*.*.blockTimestamp"])
case("mask quote", "txpool_inspect",[],r({"a.b":1}),r({"a.b":2}),SAME,"none",UK,[],masks=["'a.b'"])
case("mask other order", "eth_getTransactionReceipt",[H2],r(rc(1,a="1",b="2")),r(rc(1,a="2",b="3")),SAME,"none",FI,[],masks=["b","a"])
case("mask then left", "eth_getTransactionReceipt",[H2],r(rc(1,a="1",b="2")),r(rc(1,a="2",b="3")),M,"value",FI,["$.result.a"],masks=["b"])
case("mask whole elements", "eth_feeHistory",["0x2","0x50",[]],r({"gasUsedRatio":[0.1,0.2]}),r({"gasUsedRatio":[0.3,0.4,0.5]}),SAME,"none",FI,[],masks=["gasUsedRatio.*"])
case("mask index elem kept", "eth_feeHistory",["0x2","0x50",[]],r({"baseFeePerGas":["0x1","0x2","0x3"]}),r({"baseFeePerGas":["0x9","0x8","0x3"]}),M,"value",FI,["$.result.baseFeePerGas[1]"],masks=["baseFeePerGas.0"])
case("mask no error",   "eth_call",[{},"0x50"],e(3,"execution reverted: a"),e(3,"execution reverted: b"),M,"error_message",FI,["$.error.message"],masks=["**.message","message"])
# --- logs ---
case("logs order", "eth_getLogs",LOGS,r([lg(0),lg(1)]),r([lg(1),lg(0)]),M,"array_order",FI,[R])
case("logs dup", "eth_getLogs",LOGS,r([lg(0),lg(1)]),r([lg(0),lg(0),lg(1)]),M,"array_length",FI,[R])
case("logs half final", "eth_getLogs",[{"fromBlock":"0x50","toBlock":"0x60"}],r([lg(0)]),r([lg(0),lg(1)]),M,"array_length",UN,[R])
case("logs latest", "eth_getLogs",[{"fromBlock":"0x50","toBlock":"latest"}],r([lg(0)]),r([lg(0),lg(1)]),M,"array_length",RT,[R])
case("logs latest empty", "eth_getLogs",[{"fromBlock":"0x50","toBlock":"latest"}],r([lg(0)]),r([]),M,"empty_vs_data",RT,[R])
case("logs earliest", "eth_getLogs",[{"fromBlock":"earliest","toBlock":"0x50"}],r([lg(0)]),r([]),M,"empty_vs_data",RT,[R])
case("logs blockHash", "eth_getLogs",[{"blockHash":H}],r([lg(0)]),r([]),M,"empty_vs_data",UK,[R])
case("logs blockHash err", "eth_getLogs",[{"blockHash":H}],r([lg(0)]),e(-32000,"unknown block"),E,"error_vs_result",UK,None)
case("logs null vs []", "eth_getLogs",LOGS,r(None),r([]),SAME,"none",FI,[])
case("logs null vs some", "eth_getLogs",LOGS,r([lg(0)]),r(None),M,"empty_vs_data",FI,[R])
case("logs unf []", "eth_getLogs",[{"fromBlock":"0x60","toBlock":"0x61"}],r([lg(0)]),r([]),M,"stale_head",UN,[R])
case("logs reorg", "eth_getLogs",[{"fromBlock":"0x60","toBlock":"0x61"}],r([lg(0)]),r([lg(0,blockHash=H2)]),M,"reorg_block_hash",UN,["$.result[0].blockHash"])
case("logs inner", "eth_getLogs",LOGS,r([lg(0),lg(1),lg(2)]),r([lg(0),lg(2,data="0x5")]),M,"value",FI,[R,"$.result[2].data"])
case("logs data 0x", "eth_getLogs",LOGS,r([lg(0,data="0x")]),r([lg(0,data="0x0")]),M,"hex_padding",FI,["$.result[0].data"])
case("logs topics", "eth_getLogs",LOGS,r([lg(0,topics=[H,H2])]),r([lg(0,topics=[H])]),M,"array_length",FI,["$.result[0].topics"])
case("logs topics []", "eth_getLogs",LOGS,r([lg(0,topics=[])]),r([lg(0,topics=None)]),M,"type",FI,["$.result[0].topics"])
case("logs idx int", "eth_getLogs",LOGS,r([lg(0)]),r([lg(0,logIndex=0)]),M,"type",FI,["$.result[0].logIndex"])
case("logs removed", "eth_getLogs",LOGS,r([lg(0)]),r([lg(0,removed=True)]),M,"value",FI,["$.result[0].removed"])
case("logs limit both", "eth_getLogs",LOGS,e(-32005,"query returned more than 10000 results"),e(-32602,"query exceeds max results 20000"),X,"error_code",FI,None)
case("logs range invalid", "eth_getLogs",[{"fromBlock":"0x51","toBlock":"0x50"}],r([]),e(-32602,"invalid block range params"),M,"error_vs_result",FI,["$.error","$.result"])
case("logs beyond head", "eth_getLogs",[{"fromBlock":"0x50","toBlock":"0x200"}],r([]),e(-32602,"block range extends beyond current head block"),E,"error_vs_result",UN,None)
case("logs equal refusal", "eth_getLogs",LOGS,e(-32005,"limit exceeded"),e(-32005,"limit exceeded"),X,"none",FI,[])
case("logs limit ord", "eth_getLogs",LOGS,r([]),e(-32005,"query returned more than 10000 results"),E,"error_vs_result",FI,None)
# --- calls, errors ---
case("call empty", "eth_call",CALL,r("0x"),r("0x"+"0"*64),M,"hex_padding",FI,[R])
case("call 0x vs data", "eth_call",CALL,r("0x"),r("0x"+"0"*63+"5"),M,"empty_vs_data",FI,[R])
case("call 0x vs data unf", "eth_call",[{"to":A},"0x60"],r("0x"),r("0x"+"0"*63+"5"),M,"empty_vs_data",UN,[R])
case("call 0x vs ''", "eth_call",CALL,r("0x"),r(""),SAME,"none",FI,[])
case("call revert vs result", "eth_call",CALL,r("0x"),e(3,"execution reverted"),M,"error_vs_result",FI,["$.error","$.result"])
case("call reverts text", "eth_call",CALL,e(3,"execution reverted: x"),e(3,"execution reverted"),M,"error_message",FI,["$.error.message"])
case("call reverts data", "eth_call",CALL,e(3,"execution reverted","0x08c379a0"),e(3,"execution reverted"),M,"missing_field",FI,["$.error.data"])
case("call reverts data 0x", "eth_call",CALL,e(3,"execution reverted","0x"),e(3,"execution reverted"),M,"missing_field",FI,["$.error.data"])
case("call reverts code", "eth_call",CALL,e(3,"execution reverted"),e(-32000,"execution reverted"),M,"error_code",FI,["$.error.code"])
case("call parity", "eth_call",CALL,e(3,"execution reverted","0x08c379a0"),e(-32015,"VM execution error.","Reverted 0x08c379a0"),M,"error_code",FI,["$.error.code","$.error.message","$.error.data"])
case("call same revert", "eth_call",CALL,e(3,"execution reverted","0x08c379a0"),e(3,"execution reverted","0x08c379a0"),SAME,"none",FI,[])
case("call halt", "eth_call",CALL,e(-32000,"out of gas"),e(-32003,"out of gas"),M,"error_code",FI,["$.error.code"])
case("call halt revert", "eth_call",CALL,e(-32000,"invalid opcode: INVALID"),e(3,"execution reverted"),M,"error_code",FI,["$.error.code","$.error.message"])
case("call timeout", "eth_call",CALL,r("0x01"),e(-32000,"execution aborted (timeout = 5s)"),E,"error_vs_result",FI,None)
case("call revert vs rate", "eth_call",CALL,e(3,"execution reverted"),e(-32005,"Too Many Requests"),E,"error_code",FI,None)
case("call pruned", "eth_call",CALL,r("0x01"),e(-32000,"missing trie node 00"),E,"error_vs_result",FI,None)
case("call both result and error", "eth_call",CALL,r("0x01"),{"jsonrpc":"2.0","id":1,"result":"0x01","error":{"code":3,"message":"execution reverted"}},M,"error_vs_result",FI,["$.error","$.result"])
case("call both result null err", "eth_call",CALL,r("0x01"),{"jsonrpc":"2.0","id":1,"result":"0x01","error":None},SAME,"none",FI,[])
case("call result null + error", "eth_call",CALL,e(3,"execution reverted"),{"jsonrpc":"2.0","id":1,"result":None,"error":{"code":3,"message":"execution reverted"}},SAME,"none",FI,[])
case("call id type", "eth_call",CALL,r("0x01"),{"jsonrpc":"2.0","id":"1","result":"0x01"},SAME,"none",FI,[])
case("call no jsonrpc", "eth_call",CALL,r("0x01"),{"id":None,"result":"0x01"},SAME,"none",FI,[])
case("call odd len", "eth_call",CALL,r("0x1"),r("0x01"),M,"hex_padding",FI,[R])
case("call upper 0X", "eth_call",CALL,r("0x1a"),r("0X1A"),M,"hex_case",FI,[R])
case("call hash", "eth_call",[{},{"blockHash":H}],r("0x01"),r("0x02"),M,"value",UK,[R])
case("call number obj", "eth_call",[{},{"blockNumber":"0x50"}],r("0x01"),r("0x02"),M,"value",FI,[R])
case("call state override", "eth_call",[{}, "0x50", {A:{"balance":"0x1"}}],r("0x01"),r("0x02"),M,"value",FI,[R])
case("call no blk", "eth_call",[{}],r("0x01"),r("0x02"),M,"value",UK,[R])
case("estimate", "eth_estimateGas",[{}],r("0x5208"),r("0x5209"),M,"value",UK,[R])
case("estimate latest", "eth_estimateGas",[{},"latest"],r("0x5208"),e(-32000,"gas required exceeds allowance (0)"),M,"error_vs_result",RT,["$.error","$.result"])
case("estimate both invalid", "eth_estimateGas",[{},"latest"],e(-32602,"invalid argument 0"),e(-32602,"Invalid params"),M,"error_message",RT,["$.error.message"])
case("unknown both", "foo_bar",[],e(-32601,"Method not found"),e(-32601,"the method foo_bar does not exist/is not available"),X,"error_message",UK,None)
case("unknown one", "foo_bar",[],r(1),e(-32601,"Method not found"),E,"error_vs_result",UK,None)
case("unknown differs", "foo_bar",["0x50"],r({"a":1}),r({"a":2}),M,"value",UK,["$.result.a"])
case("hive", "condenser_api.get_block",[5],r({"block_id":"a","timestamp":"x"}),r({"block_id":"b","timestamp":"x"}),M,"value",UK,["$.result.block_id"],head=None)
case("hive2", "database_api.get_dynamic_global_properties",{},r({"head_block_number":5}),r({"head_block_number":6}),M,"value",UK,["$.result.head_block_number"],head=None)
case("send nonce", "eth_sendRawTransaction",["0x02"],e(-32000,"nonce too low"),e(-32010,"OldNonce"),M,"error_code",UK,["$.error.code","$.error.message"])
case("send vs known", "eth_sendRawTransaction",["0x02"],r(H),e(-32000,"already known"),M,"error_vs_result",UK,["$.error","$.result"])
case("err string", "eth_call",CALL,e(3,"execution reverted"),{"id":1,"error":"boom"},E,"error_message",FI,None)
case("err code str", "eth_call",CALL,e(3,"execution reverted"),{"id":1,"error":{"code":"3","message":"execution reverted"}},M,"error_code",FI,["$.error.code"])
case("err extra member", "eth_call",CALL,e(3,"execution reverted"),{"id":1,"error":{"code":3,"message":"execution reverted","stack":"x"}},M,"extra_field",FI,["$.error.stack"])
case("err data obj", "eth_call",CALL,e(3,"execution reverted",{"a":1}),e(3,"execution reverted",{"a":2}),M,"value",FI,["$.error.data.a"])
case("err data hex case", "eth_call",CALL,e(3,"execution reverted","0x08c379a0ab"),e(3,"execution reverted","0x08c379a0AB"),M,"hex_case",FI,["$.error.data"])
# --- state ---
case("bal", "eth_getBalance",[A,"0x50"],r("0x0"),r("0x1"),M,"value",FI,[R])
case("bal 0x vs 0x0", "eth_getBalance",[A,"0x60"],r("0x0"),r("0x"),M,"hex_padding",UN,[R])
case("bal null", "eth_getBalance",[A,"0x50"],r("0x0"),r(None),M,"empty_vs_data",FI,[R])
case("bal dec", "eth_getBalance",[A,"0x50"],r("0xde0b6b3a7640000"),r("1000000000000000000"),M,"encoding",FI,[R])
case("bal int", "eth_getBalance",[A,"0x50"],r("0x1"),r(1),M,"type",FI,[R])
case("bal finalized", "eth_getBalance",[A,"finalized"],r("0x1"),r("0x2"),M,"value",RT,[R])
case("nonce latest", "eth_getTransactionCount",[A,"latest"],r("0x1"),r("0x2"),M,"value",RT,[R])
case("nonce pending", "eth_getTransactionCount",[A,"pending"],r("0x1"),r("0x2"),X,"value",RT,None)
case("code", "eth_getCode",[A,"0x50"],r("0x6001"),r("0x"),M,"empty_vs_data",FI,[R])
case("code both", "eth_getCode",[A,"0x50"],r("0x"),r(None),SAME,"none",FI,[])
case("storage", "eth_getStorageAt",[A,"0x0","0x50"],r("0x"+"0"*64),r("0x"),M,"hex_padding",FI,[R])
case("storage slot finality", "eth_getStorageAt",[A,"0x0","latest"],r("0x"+"0"*64),r("0x1"),M,"value",RT,[R])
case("proof val", "eth_getProof",[A,["0x0"],"0x50"],r({"storageProof":[{"key":"0x0","value":"0x0","proof":[]}]}),r({"storageProof":[{"key":"0x0","value":"0x0","proof":None}]}),M,"type",FI,["$.result.storageProof[0].proof"])
case("proof len", "eth_getProof",[A,["0x0"],"0x50"],r({"accountProof":["0x01","0x02"]}),r({"accountProof":["0x01"]}),M,"array_length",FI,["$.result.accountProof"])
case("proof window", "eth_getProof",[A,["0x0"],"0x50"],r({"accountProof":["0x01","0x02"]}),e(-32000,"distance to target block exceeds maximum proof window"),E,"error_vs_result",FI,None)
case("fee hist reward null", "eth_feeHistory",["0x1","0x50",[]],r({"oldestBlock":"0x50","reward":[["0x1"]]}),r({"oldestBlock":"0x50","reward":None}),M,"empty_vs_data",FI,["$.result.reward"])
case("fee hist ratio num", "eth_feeHistory",["0x1","0x50",[]],r({"gasUsedRatio":[0]}),r({"gasUsedRatio":[0.0]}),M,"encoding",FI,["$.result.gasUsedRatio[0]"],praw='{"id":1,"result":{"gasUsedRatio":[0]}}',sraw='{"id":1,"result":{"gasUsedRatio":[0.0]}}')
case("fee hist exp", "eth_feeHistory",["0x1","0x50",[]],r(0),r(0),M,"encoding",FI,["$.result.gasUsedRatio[0]"],praw='{"id":1,"result":{"gasUsedRatio":[0.00001]}}',sraw='{"id":1,"result":{"gasUsedRatio":[1e-5]}}')
case("fee hist latest", "eth_feeHistory",["0x1","latest",[]],r({"oldestBlock":"0x50"}),r({"oldestBlock":"0x51"}),M,"value",RT,["$.result.oldestBlock"])
case("big int", "foo",[],r(0),r(0),M,"value",UK,[R],praw='{"id":1,"result":9007199254740993}',sraw='{"id":1,"result":9007199254740992}')
case("big int exp", "foo",[],r(0),r(0),M,"encoding",UK,[R],praw='{"id":1,"result":100000000000000000000}',sraw='{"id":1,"result":1e20}')
case("gasPrice", "eth_gasPrice",[],r("0x1"),r("0x2"),X,"value",RT,None)
case("prio", "eth_maxPriorityFeePerGas",[],r("0x1"),r("0x2"),X,"value",RT,None)
case("gasPrice err", "eth_gasPrice",[],r("0x1"),e(-32601,"x"),E,"error_vs_result",RT,None)
case("blob fee", "eth_blobBaseFee",[],r("0x1"),r("0x2"),M,"value",RT,[R])
case("chainId", "eth_chainId",[],r("0x1"),r("0x01"),M,"hex_padding",FI,[R])
case("chainId other", "eth_chainId",[],r("0x1"),r("0x2"),M,"value",FI,[R],head=None)
case("peerCount", "net_peerCount",[],r("0x1"),r(25),X,"type",RT,None)
case("listening", "net_listening",[],r(True),r(False),X,"value",UK,None)
case("accounts", "eth_accounts",[],r([]),r([A]),X,"empty_vs_data",UK,None)
case("pool", "txpool_status",[],r({"pending":"0x1"}),r({"pending":"0x2"}),X,"value",UK,None)
case("sha3", "web3_sha3",["0x"],r("0x1"),r("0x2"),M,"value",UK,[R])
case("blockNumber equal", "eth_blockNumber",[],r("0x1"),r("0x1"),SAME,"none",RT,[])
case("blockNumber spelled", "eth_blockNumber",[],r("0x64"),r("0x064"),X,"hex_padding",RT,None)
case("blockNumber null", "eth_blockNumber",[],r("0x64"),r(None),X,"stale_head",RT,None)
case("blockNumber err", "eth_blockNumber",[],r("0x1"),e(-32005,"rate"),E,"error_vs_result",RT,None)
case("syncing both", "eth_syncing",[],r(False),r(False),SAME,"none",RT,[])
case("clientVersion equal", "web3_clientVersion",[],r("a"),r("a"),SAME,"none",UK,[])
case("filter changes", "eth_getFilterChanges",["0x1"],r([]),e(-32000,"filter not found"),E,"error_vs_result",UK,None)
# --- traces ---
case("trace calls", TRACE,[H2,{"tracer":"callTracer"}],r({"calls":[{"a":1},{"a":2}]}),r({"calls":[{"a":1}]}),M,"array_length",UK,["$.result.calls"])
case("trace prestate slots", TRACE,[H2,{"tracer":"prestateTracer"}],r({A:{"storage":{"0x"+"0"*63+"1":"0x1"}}}),r({A:{"storage":{"0x1":"0x1"}}}),M,"hex_padding",UK,[f"$.result['{A}'].storage['0x{'0'*63}1']",f"$.result['{A}'].storage['0x1']"])
case("trace prestate missing", TRACE,[H2,{"tracer":"prestateTracer"}],r({A:{"balance":"0x1","nonce":1}}),r({A:{"balance":"0x1"}}),M,"missing_field",UK,[f"$.result['{A}'].nonce"])
case("trace struct case", TRACE,[H2],r({"returnValue":"0xAB"}),r({"returnValue":"ab"}),M,"encoding",UK,["$.result.returnValue"])
case("trace struct gas int vs hex", TRACE,[H2],r({"gas":21000}),r({"gas":"0x5208"}),M,"type",UK,["$.result.gas"])
case("trace mem pad", TRACE,[H2],r({"structLogs":[{"memory":["0"*64]}]}),r({"structLogs":[{"memory":["0x"+"0"*64]}]}),M,"encoding",UK,["$.result.structLogs[0].memory[0]"])
case("trace block num", "debug_traceBlockByNumber",["0x50",{}],r([{"txHash":H,"result":{"g":1}}]),r([{"txHash":H,"result":{"g":2}}]),M,"value",FI,["$.result[0].result.g"])
case("trace block len", "debug_traceBlockByNumber",["0x50",{}],r([{"txHash":H,"result":{"g":1}},{"txHash":H2,"result":{"g":1}}]),r([{"txHash":H2,"result":{"g":2}}]),M,"value",FI,[R,"$.result[1].result.g"])
case("trace block hash", "debug_traceBlockByHash",[H,{}],r([{"result":{"g":1}}]),r([{"result":{"g":2}}]),M,"value",UK,["$.result[0].result.g"])
case("trace_block", "trace_block",["0x50"],r([tr(0),tr(1)]),r([tr(0),tr(1,subtraces=1)]),M,"value",FI,["$.result[1].subtraces"])
case("trace_block len", "trace_block",["0x50"],r([tr(0),tr(1)]),r([tr(1,subtraces=1)]),M,"value",FI,[R,"$.result[1].subtraces"])
case("trace_block reorg", "trace_block",["0x60"],r([tr(0)]),r([tr(0,blockHash=H2)]),M,"reorg_block_hash",UN,["$.result[0].blockHash"])
case("trace_tx", "trace_transaction",[H2],r([tr(0)]),r(None),M,"empty_vs_data",UK,[R])
case("trace_tx null []", "trace_transaction",[H2],r([]),r(None),SAME,"none",UK,[])
case("trace_filter", "trace_filter",[{"fromBlock":"0x1","toBlock":"0x50"}],r([tr(0),tr(1)]),r([tr(1),tr(0)]),M,"array_order",FI,[R])
case("trace_call std", "trace_call",[{},["trace"],"0x50"],r({"output":"0x"}),r({"output":""}),M,"encoding",FI,["$.result.output"])
case("trace_call alt", "trace_call",[{},"0x50",["trace"]],r({"output":"0x"}),r({"output":"0x0"}),M,"hex_padding",FI,["$.result.output"])
case("trace_replay", "trace_replayBlockTransactions",["0x50",["trace"]],r([{"transactionHash":H,"vmTrace":None}]),r([{"transactionHash":H}]),M,"null_vs_absent",FI,["$.result[0].vmTrace"])
case("traceCall", "debug_traceCall",[{},"latest",{}],r({"gas":1}),r({"gas":2}),M,"value",RT,["$.result.gas"])
case("trace err", TRACE,[H2],r({"gas":1}),e(-32000,"transaction not found"),E,"error_vs_result",UK,None)
case("trace unavailable", TRACE,[H2],r({"gas":1}),e(-32601,"the method debug_traceTransaction does not exist/is not available"),E,"error_vs_result",UK,None)
case("4byte empty", TRACE,[H2,{"tracer":"4byteTracer"}],r({}),r({"0xa9059cbb-64":1}),M,"extra_field",UK,["$.result['0xa9059cbb-64']"])
case("access list", "eth_createAccessList",[{},"0x50"],r({"accessList":[],"gasUsed":"0x1"}),r({"accessList":None,"gasUsed":"0x1"}),M,"type",FI,["$.result.accessList"])
case("simulate", "eth_simulateV1",[{},"0x50"],r([{"number":"0x51","hash":H,"calls":[]}]),r([{"number":"0x51","hash":H2,"calls":[]}]),M,"reorg_block_hash",FI,["$.result[0].hash"])
# --- raw ---
case("unicode name", "txpool_inspect",[],r(0),r(0),SAME,"none",UK,[],praw='{"result":{"a\\u0062":1}}',sraw='{"result":{"ab":1}}')
case("slash", "foo",[],r(0),r(0),SAME,"none",UK,[],praw='{"result":"a\\/b"}',sraw='{"result":"a/b"}')
case("surrogate pair", "foo",[],r(0),r(0),SAME,"none",UK,[],praw='{"result":"\\ud83d\\ude00"}',sraw='{"result":"😀"}')
case("dup result last", "foo",[],r(0),r(0),M,"value",UK,[R],praw='{"result":1}',sraw='{"result":1,"result":2}')
case("dup member differs", "foo",[],r(0),r(0),M,"value",UK,["$.result.a"],praw='{"result":{"a":1}}',sraw='{"result":{"a":1,"a":2}}')
case("dup member last same", "foo",[],r(0),r(0),SAME,"none",UK,[],praw='{"result":{"a":2}}',sraw='{"result":{"a":1,"a":2}}')
case("ws", "foo",[],r(0),r(0),SAME,"none",UK,[],praw='\n{ "result" : { "a" : [ 1 , 2 ] } }\r\n',sraw='{"result":{"a":[1,2]}}')
case("order", "foo",[],r(0),r(0),SAME,"none",UK,[],praw='{"result":{"a":1,"b":{"c":1,"d":2}},"id":5}',sraw='{"id":1,"result":{"b":{"d":2,"c":1},"a":1}}')
case("1 vs 1.0", "foo",[],r(0),r(0),M,"encoding",UK,[R],praw='{"result":1}',sraw='{"result":1.0}')
case("true vs 1", "foo",[],r(True),r(1),M,"type",UK,[R])
case("false vs 0", "foo",[],r({"a":[False]}),r({"a":[0]}),M,"type",UK,["$.result.a[0]"])
case("null vs false", "foo",[],r(None),r(False),M,"empty_vs_data",UK,[R])
case("null vs 0", "foo",[],r(None),r(0),M,"empty_vs_data",UK,[R])
case("0x0 vs null", "foo",[],r("0x0"),r(None),M,"empty_vs_data",UK,[R])
case("[] vs 0x", "foo",[],r([]),r("0x"),SAME,"none",UK,[])
case("NFC", "foo",[],r("é"),r("e\u0301"),M,"value",UK,[R])
case("trail zero dec str", "foo",[],r({"a":"1.0"}),r({"a":"1"}),M,"encoding",UK,["$.result.a"])
# --- batch ---
case("batch order", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],[rr(2,"0x5"),rr(1,"0x1")],SAME,"none",FI,[])
case("batch one err", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],[rr(1,"0x1"),ee(2,-32005,"Too many requests")],E,"error_vs_result",FI,None)
case("batch mism", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],[rr(1,"0x1"),rr(2,"0x6")],M,"value",FI,["$[1].result"])
case("batch mism rev order", "(batch)",BATCH,[rr(2,"0x5"),rr(1,"0x1")],[rr(1,"0x1"),rr(2,"0x6")],M,"value",FI,["$[0].result"])
case("batch ids str", "(batch)",BATCH,[rr("a","0x1"),rr(2,"0x5")],[rr("a","0x1"),rr(2,"0x5")],SAME,"none",UK,[])
case("batch missing", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],[rr(1,"0x1")],E,"error_vs_result",FI,None)
case("batch extra", "(batch)",BATCH,[rr(1,"0x1")],[rr(1,"0x1"),rr(2,"0x5")],E,"error_vs_result",FI,None)
case("batch refused", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],{"id":None,"error":{"code":-32600,"message":"batch too large"}},E,"error_vs_result",UK,None)
case("batch err verdicts", "(batch)",BATCH,[rr(1,"0x1"),ee(2,3,"execution reverted")],[rr(1,"0x1"),ee(2,-32000,"execution reverted")],M,"error_code",FI,["$[1].error.code"])
case("batch mask", "(batch)",[{"id":1,"method":"eth_getTransactionReceipt","params":[H2]}],[rr(1,rc(1,l1Fee="0x1"))],[rr(1,rc(1))],SAME,"none",FI,[],masks=["l1Fee"])
case("batch mixed", "(batch)",BATCH,[rr(1,"0x1"),rr(2,"0x5")],[ee(1,-32005,"limit"),rr(2,"0x6")],M,"value",FI,None)
case("batch refusals", "(batch)",BATCH,[rr(1,"0x1"),ee(2,-32005,"limit")],[rr(1,"0x1"),ee(2,-32005,"limit")],X,"none",FI,[])

# --- more of each kind ---
case("count at unf", "eth_getBlockTransactionCountByNumber",["0x60"],r("0x1"),r(None),M,"stale_head",UN,[R])
case("trace_block unf", "trace_block",["0x60"],r([{"a":1}]),r([]),M,"stale_head",UN,[R])
case("trace_block unf null", "trace_block",["0x60"],r([{"a":1}]),r(None),M,"stale_head",UN,[R])
case("replay", "trace_replayTransaction",[H2,["trace"]],r({"output":"0x","stateDiff":None}),r({"output":"0x","stateDiff":{}}),M,"type",UK,["$.result.stateDiff"])
case("statediff", "trace_replayTransaction",[H2,["stateDiff"]],r({"stateDiff":{A:{"balance":"="}}}),r({"stateDiff":{A:{"balance":{"*":{"from":"0x0","to":"0x1"}}}}}),M,"type",UK,[f"$.result.stateDiff['{A}'].balance"])
case("key case storage", TRACE,[H2,{"tracer":"prestateTracer"}],r({"0xAb"+"1f"*19:{"nonce":1}}),r({"0xab"+"1f"*19:{"nonce":1}}),M,"hex_case",UK,["$.result['0xAb"+"1f"*19+"']","$.result['0xab"+"1f"*19+"']"])
case("key case + value", TRACE,[H2,{"tracer":"prestateTracer"}],r({"0xAb"+"1f"*19:{"nonce":1}}),r({"0xab"+"1f"*19:{"nonce":2}}),M,"value",UK,None)
case("storage values", "eth_getStorageValues",[{A:["0x0"]},"0x50"],r({A:["0x1","0x2"]}),r({A:["0x2","0x1"]}),M,"array_order",FI,[f"$.result['{A}']"])
case("range obj", "debug_storageRangeAt",[H,0,A,"0x0",10],r({"storage":{},"nextKey":None}),r({"storage":{"0x1":{"key":None,"value":"0x1"}},"nextKey":None}),M,"extra_field",UK,["$.result.storage['0x1']"])
case("nested null vs 0x", "eth_getTransactionByHash",[H2],r(tx(to=None)),r(tx(to="0x")),M,"type",FI,["$.result.to"])
case("creates", "eth_getTransactionByHash",[H2],r(tx(creates=None)),r(tx()),M,"null_vs_absent",FI,["$.result.creates"])
case("contractAddress", "eth_getTransactionReceipt",[H2],r(rc(1,contractAddress=None)),r(rc(1,contractAddress="0x"+"0"*40)),M,"empty_vs_data",FI,["$.result.contractAddress"])
case("root", "eth_getTransactionReceipt",[H2],r(rc(1,root="0x")),r(rc(1)),M,"missing_field",FI,["$.result.root"])
case("gasUsed int hex", "eth_getTransactionReceipt",[H2],r(rc(1,gasUsed="21000")),r(rc(1)),M,"encoding",FI,["$.result.gasUsed"])
case("two kinds", "eth_getTransactionReceipt",[H2],r(rc(1,a="0x1",b=None)),r(rc(1,a="0x01")),M,"hex_padding",FI,["$.result.a","$.result.b"])
case("code case", "eth_getCode",[A,"0x50"],r("0x60AB"),r("0x60ab"),M,"hex_case",FI,[R])
case("code trunc", "eth_getCode",[A,"0x50"],r("0x60ab"),r("0x60"),M,"value",FI,[R])
case("call str", "eth_call",CALL,r("0x00"),r("0x0"),M,"hex_padding",FI,[R])
case("call verdict vs unknownblk", "eth_call",[{"to":A},"0x200"],e(-32000,"header not found"),e(-32001,"block not found: 0x200"),X,"error_code",UN,None)
case("call limit 3", "eth_call",[{"to":A},"0x50"],e(3,"execution reverted: too many requests"),r("0x"),M,"error_vs_result",FI,["$.error","$.result"])
case("revert data only", "eth_call",[{"to":A},"0x50"],e(-32000,"something odd","0x08c379a0"+"0"*64),e(3,"execution reverted","0x08c379a0"+"0"*64),M,"error_code",FI,["$.error.code","$.error.message"])
case("estimate 0x5208 vs revert", "eth_estimateGas",[{},"0x50"],r("0x5208"),e(-32000,"execution reverted"),M,"error_vs_result",FI,["$.error","$.result"])
case("nonce latest tagobj", "eth_getTransactionCount",[A,{"blockNumber":"latest"}],r("0x1"),r("0x2"),M,"value",RT,[R])
case("balance hash", "eth_getBalance",[A,H],r("0x1"),r("0x2"),M,"value",UK,[R])
case("balance dec str", "eth_getBalance",[A,"80"],r("0x1"),r("0x2"),M,"value",FI,[R])
case("balance head eq", "eth_getBalance",[A,"0x5a"],r("0x1"),r("0x2"),M,"value",FI,[R])
case("balance head +1", "eth_getBalance",[A,"0x5b"],r("0x1"),r("0x2"),M,"value",UN,[R])
case("balance huge", "eth_getBalance",[A,"0x50"],r("0x1"),r("0x2"),M,"value",FI,[R],head={"latest":2**70,"finalized":2**69})
case("safe", "eth_getBalance",[A,"safe"],r("0x1"),r("0x2"),M,"value",RT,[R])
case("feehist realtime pending", "eth_feeHistory",["0x1","pending",[]],r({"reward":[]}),r({}),M,"missing_field",RT,["$.result.reward"])
case("feehist int count", "eth_feeHistory",[1,"0x50",[]],r({"baseFeePerBlobGas":["0x0"]}),r({}),M,"missing_field",FI,["$.result.baseFeePerBlobGas"])
case("feehist empty obj", "eth_feeHistory",[1,"0x50",[]],r({"baseFeePerBlobGas":["0x0"]}),r(None),M,"empty_vs_data",FI,[R])
case("proof order", "eth_getProof",[A,["0x0","0x1"],"0x50"],r({"storageProof":[{"key":"0x0"},{"key":"0x1"}]}),r({"storageProof":[{"key":"0x1"},{"key":"0x0"}]}),M,"array_order",FI,["$.result.storageProof"])
case("name with dot & quote", "foo",[],r({"a'b":1,"c.d":1}),r({"a'b":2,"c.d":2}),M,"value",UK,["$.result['a\\'b']","$.result['c.d']"])
case("deep wildcards", BLOCK,["0x50",True],r(blk(transactions=[tx(v="0x1",yParity="0x1")])),r(blk(transactions=[tx(v="0x1")])),SAME,"none",FI,[],masks=["transactions.*.yParity"])
case("mask elsewhere still seen", BLOCK,["0x50",True],r(blk(size="0x1",transactions=[tx(yParity="0x1")])),r(blk(size="0x2",transactions=[tx()])),M,"value",FI,["$.result.size"],masks=["transactions.*.yParity"])
case("mask case sensitive", BLOCK,["0x50",True],r(blk(size="0x1")),r(blk(size="0x2")),M,"value",FI,["$.result.size"],masks=["Size"])
case("mask subtree", BLOCK,["0x50",True],r(blk(transactions=[tx()])),r(blk()),SAME,"none",FI,[],masks=["transactions"])
case("mask len after", "eth_getLogs",[{"fromBlock":"0x50","toBlock":"0x51"}],r([lg(0,x=1),lg(1)]),r([lg(0)]),M,"array_length",FI,[R],masks=["*.x"])
case("mask error vs result", "eth_call",[{},"0x50"],r({"a":1}),e(3,"execution reverted"),M,"error_vs_result",FI,["$.error","$.result"],masks=["a","*"])
case("hive amounts", "condenser_api.get_accounts",[["a"]],r([{"balance":"1.000 HIVE"}]),r([{"balance":"1.001 HIVE"}]),M,"value",UK,["$.result[0].balance"],head=None)
case("hive err", "condenser_api.get_block",[1],r({"a":1}),{"id":1,"error":{"code":-32603,"message":"Internal Error"}},E,"error_vs_result",UK,None,head=None)
case("hive nai", "database_api.find_accounts",{"accounts":["a"]},r({"accounts":[{"balance":{"amount":"1000","nai":"@@1"}}]}),r({"accounts":[{"balance":"1.000"}]}),M,"type",UK,["$.result.accounts[0].balance"],head=None)
case("l2 fields", "eth_getTransactionByHash",[H2],r(tx(sourceHash=H)),r(tx()),M,"missing_field",FI,["$.result.sourceHash"],masks=["l1Fee"])
case("arb", BLOCK,["0x50",False],r(blk(l1BlockNumber="0x1",sendRoot=H)),r(blk(l1BlockNumber="0x2",sendRoot=H)),M,"value",FI,["$.result.l1BlockNumber"])
case("err data hex vs nested", "eth_call",[{},"0x50"],e(3,"execution reverted","0x08c379a0"),e(3,"execution reverted",{"data":"0x08c379a0"}),M,"type",FI,["$.error.data"])
case("bool str", "eth_syncing",[],r(False),r("false"),X,"type",RT,None)
case("no result member", "eth_call",[{},"0x50"],r("0x01"),{"jsonrpc":"2.0","id":1},"missing","none",FI,[])
# fmt: on


@pytest.mark.parametrize(("line", "expected", "paths"), _ROWS)
def test_each_variation_of_a_rule_gets_its_verdict(
    line: dict[str, Json], expected: tuple[str, str, str], paths: list[str] | None
) -> None:
    """By the pass rule of the specification: outcome, class, finality, and the set of paths."""
    verdict = judge_case(read_case(json.dumps(line).encode()))

    assert (_SAME.get(verdict.outcome, verdict.outcome), verdict.class_, verdict.finality) == expected
    if paths is not None:
        assert sorted(verdict.paths) == sorted(paths)
