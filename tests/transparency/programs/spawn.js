// Children in every way that node starts them. Prints the test anything protocol.
const { spawn, spawnSync, exec, execFile, fork } = require("child_process");
const fs = require("fs");
let number = 0;
const say = (good, name) => console.log(`${good ? "ok" : "not ok"} ${++number} ${name}`);
const ended = (child) => new Promise((done) => {
	let text = "";
	if (child.stdout)
		child.stdout.on("data", (part) => (text += part));
	child.on("error", (error) => done({ error: error.code }));
	child.on("close", (code, signal) => done({ code, signal, text }));
});

async function main() {
	let got = await ended(spawn("sh", ["-c", "echo out; exit 3"]));
	say(got.code === 3 && got.text === "out\n", "status and output");
	got = await ended(spawn("sh", ["-c", "kill -TERM $$; sleep 1"]));
	say(got.signal === "SIGTERM", "a child that dies of a signal");
	got = await ended(spawn("/no/such/program"));
	say(got.error === "ENOENT", "a program that is missing");
	fs.writeFileSync("script", "#!/bin/sh\necho $0\n");
	got = await ended(spawn("./script"));
	say(got.error === "EACCES", "a program that is not to be executed");
	fs.chmodSync("script", 0o755);
	got = await ended(spawn("./script"));
	say(got.text === "./script\n", "a script");
	const cat = spawn("cat");
	cat.stdin.end("x".repeat(300000));
	got = await ended(cat);
	say(got.text.length === 300000, "much through pipes");
	const sleeper = spawn("sleep", ["20"]);
	setTimeout(() => sleeper.kill("SIGKILL"), 50);
	got = await ended(sleeper);
	say(got.signal === "SIGKILL", "a child that is killed");
	got = spawnSync("sleep", ["20"], { timeout: 100 });
	say(got.error.code === "ETIMEDOUT", "a child that takes too long");
	const group = spawn("sh", ["-c", "sleep 20 & wait"], { detached: true });
	setTimeout(() => process.kill(-group.pid, "SIGTERM"), 100);
	got = await ended(group);
	say(got.signal === "SIGTERM", "a group that is ended");
	await new Promise((done) => exec("cd / && pwd", { env: {} }, (error, out) => {
		say(!error && out === "/\n", "a shell");
		done();
	}));
	await new Promise((done) => execFile("pwd", { cwd: "/usr" }, (error, out) => {
		say(!error && out === "/usr\n", "another folder");
		done();
	}));
	fs.writeFileSync("child.js", "process.on('message', (m) => { process.send(m + 1); process.disconnect(); })");
	const child = fork("./child.js");
	child.send(41);
	say(await new Promise((done) => child.on("message", done)) === 42, "messages with a child");
	const all = await Promise.all(Array.from({ length: 20 }, (_, n) => ended(spawn("sh", ["-c", `exit ${n}`]))));
	say(all.every((one, n) => one.code === n), "many at once");
}
main();
