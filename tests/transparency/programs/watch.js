// What a watcher is told. Prints the test anything protocol, with what was told in the order of names.
const fs = require("fs");
let number = 0;
const say = (good, name) => console.log(`${good ? "ok" : "not ok"} ${++number} ${name}`);
const wait = (ms) => new Promise((done) => setTimeout(done, ms));

async function told(act) {
	fs.mkdirSync("w", { recursive: true });
	const got = [];
	const watcher = fs.watch("w", (kind, name) => got.push(`${kind} ${name}`));
	await wait(50);
	await act();
	await wait(300);
	watcher.close();
	return got.sort().join(", ");
}

async function main() {
	const acts = {
		creates: () => fs.writeFileSync("w/f", "text"),
		"writes again": () => fs.writeFileSync("w/f", "longer text"),
		"changes rights": () => fs.chmodSync("w/f", 0o600),
		"sets times": () => fs.utimesSync("w/f", 1, 2),
		truncates: () => fs.truncateSync("w/f", 1),
		renames: () => fs.renameSync("w/f", "w/g"),
		links: () => fs.linkSync("w/g", "w/h"),
		"makes a folder": () => fs.mkdirSync("w/d"),
		removes: () => { fs.unlinkSync("w/g"); fs.rmdirSync("w/d"); },
	};
	for (const [name, act] of Object.entries(acts))
		say(true, `${name}: ${await told(act)}`);
	fs.watchFile("w/h", { interval: 30 }, (now, before) => {
		say(now.size === 5 && before.size === 1, "by looking again and again");
		fs.unwatchFile("w/h");
	});
	await wait(100);
	fs.writeFileSync("w/h", "three");
}
main();
