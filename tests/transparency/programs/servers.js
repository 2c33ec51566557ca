// Servers and clients in one process. Prints the test anything protocol.
const http = require("http");
const net = require("net");
const dgram = require("dgram");
let number = 0;
const say = (good, name) => console.log(`${good ? "ok" : "not ok"} ${++number} ${name}`);
const listening = (server, ...where) => new Promise((done) => server.listen(...where, () => done(server.address())));
const fetched = (options, body) => new Promise((done) => {
	const request = http.request(options, (response) => {
		let text = "";
		response.on("data", (part) => (text += part));
		response.on("end", () => done({ status: response.statusCode, text }));
	});
	request.on("error", (error) => done({ error: error.code }));
	request.end(body);
});

async function main() {
	const server = http.createServer((request, response) => {
		let size = 0;
		request.on("data", (part) => (size += part.length));
		request.on("end", () => response.end(`${request.method} ${request.url} ${size}`));
	});
	const { port } = await listening(server, 0, "127.0.0.1");
	let got = await fetched({ port, path: "/x", agent: false });
	say(got.text === "GET /x 0", "a request");
	got = await fetched({ port, path: "/y", method: "POST", agent: false }, "z".repeat(500000));
	say(got.text === "POST /y 500000", "a large one");
	const many = await Promise.all(Array.from({ length: 50 }, (_, n) => fetched({ port, path: `/${n}`, agent: false })));
	say(many.every((one, n) => one.text === `GET /${n} 0`), "many at once");
	server.close();
	got = await fetched({ port, path: "/", agent: false });
	say(got.error === "ECONNREFUSED", "nobody listens any more");
	const local = http.createServer((_, response) => response.end("local"));
	await listening(local, "socket");
	got = await fetched({ socketPath: "socket", path: "/", agent: false });
	say(got.text === "local", "a socket in the file system");
	local.close();
	const taken = net.createServer();
	const where = await listening(taken, 0, "127.0.0.1");
	const second = net.createServer();
	say(await new Promise((done) => second.on("error", (error) => done(error.code)).listen(where.port, "127.0.0.1")) ===
		"EADDRINUSE", "an address that is taken");
	taken.close();
	const one = dgram.createSocket("udp4");
	const two = dgram.createSocket("udp4");
	await new Promise((done) => one.bind(0, "127.0.0.1", done));
	two.send("datagram", one.address().port, "127.0.0.1");
	say(String(await new Promise((done) => one.on("message", done))) === "datagram", "a datagram");
	one.close();
	two.close();
	const slow = net.connect({ port: 9, host: "240.0.0.1" });
	const outcome = await new Promise((done) => {
		slow.on("error", (error) => done(error.code));
		slow.setTimeout(300, () => done("waits"));
	});
	slow.destroy();
	say(true, `where nothing leads to: ${outcome}`);
}
main();
