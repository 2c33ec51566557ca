// Threads that work on files. Prints the test anything protocol.
const { Worker } = require("worker_threads");
const fs = require("fs");
let number = 0;
const say = (good, name) => console.log(`${good ? "ok" : "not ok"} ${++number} ${name}`);

const code = `
const { parentPort, workerData } = require("worker_threads");
const fs = require("fs");
const { spawnSync } = require("child_process");
for (let i = 0; i < 50; i++) {
	fs.writeFileSync("w" + workerData + "-" + i, "x".repeat(i));
	if (i % 2)
		fs.unlinkSync("w" + workerData + "-" + i);
}
parentPort.postMessage(spawnSync("sh", ["-c", "exit " + workerData]).status);
`;

async function main() {
	const answers = await Promise.all([0, 1, 2, 3].map((workerData) => new Promise((done) => {
		const worker = new Worker(code, { eval: true, workerData });
		worker.on("message", done);
	})));
	say(answers.join() === "0,1,2,3", "each has its child's status");
	say(fs.readdirSync(".").filter((name) => name.startsWith("w")).length === 100, "half of the files stay");
	const array = new Int32Array(new SharedArrayBuffer(4));
	const adder = `const { workerData } = require("worker_threads");
		for (let i = 0; i < 10000; i++) Atomics.add(workerData, 0, 1);`;
	await Promise.all([1, 2, 3].map(() => new Promise((done) =>
		new Worker(adder, { eval: true, workerData: array }).on("exit", done))));
	say(array[0] === 30000, "shared memory");
	const endless = new Worker("for (;;) require('fs').existsSync('/');", { eval: true });
	setTimeout(() => endless.terminate(), 200);
	say(await new Promise((done) => endless.on("exit", done)) === 1, "a thread that is ended");
}
main();
