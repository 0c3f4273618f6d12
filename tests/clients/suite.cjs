// What viem and ethers say of a chain: node suite.cjs FOLDER LIBRARY URL CONTRACT, with the library in FOLDER/node_modules.
// One JSON object on stdout: question -> answer, or the message of its error.
const { createRequire } = require("node:module");
const [folder, library, url, contract] = process.argv.slice(2);
const load = createRequire(`${folder}/`);
const answers = {};
const GET = "0x9507d39a", FAIL = "0xa9cc4718", KEY = "0".repeat(63) + "1";
const text = (value) =>
  JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v === undefined ? null : v));

async function ask(name, question) {
  try {
    answers[name] = text(await question());
  } catch (error) {
    // The library's own text may name the address it asked, which is another one behind a proxy.
    answers[name] = `error: ${String(error.shortMessage ?? error.message).split("\n")[0]}`;
  }
}

async function viem() {
  const { createPublicClient, http } = load("viem");
  const client = createPublicClient({ transport: http(url, { batch: process.env.BATCH === "1", retryCount: 0 }) });
  const height = await client.getBlockNumber({ cacheTime: 0 });
  const block = await client.getBlock({ blockNumber: height, includeTransactions: true });
  const hash = block.transactions[0].hash;
  const from = block.transactions[0].from;
  await Promise.all([
    ask("chainId", () => client.getChainId()),
    ask("block", () => client.getBlock({ blockNumber: height })),
    ask("block by hash", () => client.getBlock({ blockHash: block.hash })),
    ask("finalized", () => client.getBlock({ blockTag: "finalized" }).then((b) => typeof b.number)),
    ask("no block", () => client.getBlock({ blockNumber: height + 1000n })),
    ask("transaction", () => client.getTransaction({ hash })),
    ask("receipt", () => client.getTransactionReceipt({ hash })),
    ask("no receipt", () => client.getTransactionReceipt({ hash: "0x" + "1".repeat(64) })),
    ask("balance", () => client.getBalance({ address: from, blockNumber: height })),
    ask("nonce", () => client.getTransactionCount({ address: from, blockNumber: height })),
    ask("code", () => client.getCode({ address: contract })),
    ask("no code", () => client.getCode({ address: "0x" + "12".repeat(20) })),
    ask("storage", () => client.getStorageAt({ address: contract, slot: "0x1", blockNumber: height })),
    ask("call", () => client.call({ to: contract, data: GET + KEY, blockNumber: height })),
    ask("revert", () => client.call({ to: contract, data: FAIL, blockNumber: height })),
    ask("gas", () => client.estimateGas({ account: from, to: from, value: 1n })),
    ask("logs", () => client.getLogs({ address: contract, fromBlock: 0n, toBlock: height })),
    ask("no logs", () => client.getLogs({ address: from, fromBlock: 0n, toBlock: height })),
    ask("fee history", () => client.getFeeHistory({ blockCount: 2, rewardPercentiles: [50], blockNumber: height })),
    ask("unknown method", () => client.request({ method: "eth_noSuchMethod", params: [] })),
  ]);
}

async function ethers() {
  const { JsonRpcProvider } = load("ethers");
  const provider = new JsonRpcProvider(url, undefined, { batchMaxCount: process.env.BATCH === "1" ? 50 : 1 });
  const height = await provider.getBlockNumber();
  const block = await provider.getBlock(height, true);
  const hash = block.transactions[0];
  const from = (await provider.getTransaction(hash)).from;
  await Promise.all([
    ask("network", async () => (await provider.getNetwork()).toJSON()),
    ask("block", async () => (await provider.getBlock(height)).toJSON()),
    ask("block by hash", async () => (await provider.getBlock(block.hash)).toJSON()),
    ask("no block", () => provider.getBlock(height + 1000)),
    ask("transaction", async () => (await provider.getTransaction(hash)).toJSON()),
    ask("receipt", async () => (await provider.getTransactionReceipt(hash)).toJSON()),
    ask("no receipt", () => provider.getTransactionReceipt("0x" + "1".repeat(64))),
    ask("balance", () => provider.getBalance(from, height)),
    ask("nonce", () => provider.getTransactionCount(from, height)),
    ask("code", () => provider.getCode(contract)),
    ask("no code", () => provider.getCode("0x" + "12".repeat(20))),
    ask("storage", () => provider.getStorage(contract, 1, height)),
    ask("call", () => provider.call({ to: contract, data: GET + KEY, blockTag: height })),
    ask("revert", () => provider.call({ to: contract, data: FAIL, blockTag: height })),
    ask("gas", () => provider.estimateGas({ from, to: from, value: 1n })),
    ask("logs", async () => (await provider.getLogs({ address: contract, fromBlock: 0, toBlock: height })).map((l) => l.toJSON())),
    ask("no logs", () => provider.getLogs({ address: from, fromBlock: 0, toBlock: height })),
    ask("unknown method", () => provider.send("eth_noSuchMethod", [])),
  ]);
  provider.destroy();
}

({ viem, ethers })[library]().then(
  () => console.log(JSON.stringify(answers)),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
