// The file system by promises, by callbacks and without waiting. Prints the test anything protocol.
const fs = require("fs");
const path = require("path");
let number = 0;
const say = (good, name) => console.log(`${good ? "ok" : "not ok"} ${++number} ${name}`);
const refusal = (call) => {
	try {
		call();
	} catch (error) {
		return `${error.code} ${error.syscall}`;
	}
	return "none";
};

async function main() {
	fs.mkdirSync("a/b/c", { recursive: true, mode: 0o750 });
	say((fs.statSync("a/b").mode & 0o777) === 0o750, "folders in folders");
	await Promise.all(Array.from({ length: 100 }, (_, n) => fs.promises.writeFile(`a/${n}`, String(n))));
	const texts = await Promise.all(Array.from({ length: 100 }, (_, n) => fs.promises.readFile(`a/${n}`, "utf8")));
	say(texts.every((text, n) => text === String(n)), "a hundred files at once");
	const handle = await fs.promises.open("a/large", "wx+", 0o600);
	await handle.writeFile(Buffer.alloc(3 << 20, 7));
	await handle.truncate(5);
	await handle.sync();
	await handle.chmod(0o640);
	const stat = await handle.stat();
	say(stat.size === 5 && (stat.mode & 0o777) === 0o640, "by a handle");
	await handle.close();
	fs.renameSync("a/1", "a/one");
	fs.linkSync("a/one", "a/uno");
	fs.symlinkSync("one", "a/eins");
	say(fs.statSync("a/eins").nlink === 2 && fs.readlinkSync("a/eins") === "one", "names");
	fs.copyFileSync("a/one", "a/copy", fs.constants.COPYFILE_EXCL);
	say(fs.readFileSync("a/copy", "utf8") === "1", "a copy");
	say(refusal(() => fs.copyFileSync("a/one", "a/copy", fs.constants.COPYFILE_EXCL)) === "EEXIST copyfile", "copied twice");
	say(refusal(() => fs.mkdirSync("a")) === "EEXIST mkdir", "made twice");
	say(refusal(() => fs.rmdirSync("a")) === "ENOTEMPTY rmdir", "not empty");
	say(refusal(() => fs.openSync("none/f", "w")) === "ENOENT open", "no folder");
	say(refusal(() => fs.writeFileSync("a", "")) === "EISDIR open", "a folder");
	fs.utimesSync("a/one", 1000, 2000);
	say(fs.statSync("a/one").mtimeMs === 2000000, "times");
	fs.appendFileSync("a/one", "more");
	say(fs.readFileSync("a/one", "utf8") === "1more", "more of it");
	await new Promise((done) => fs.createReadStream("a/one").pipe(fs.createWriteStream("a/two")).on("finish", done));
	say(fs.readFileSync("a/two", "utf8") === "1more", "streams");
	fs.cpSync("a", "z", { recursive: true });
	say(fs.readdirSync("z").length === fs.readdirSync("a").length, "a tree copied");
	const made = fs.mkdtempSync(path.join(process.cwd(), "t-"));
	say(fs.readdirSync(made).length === 0, "a folder for a time");
	process.umask(0o077);
	fs.writeFileSync("masked", "");
	say((fs.statSync("masked").mode & 0o777) === 0o600, "umask");
	fs.rmSync("z", { recursive: true });
	say(!fs.existsSync("z"), "a tree removed");
}
main();
