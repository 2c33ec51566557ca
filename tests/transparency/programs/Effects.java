import java.io.IOException;
import java.net.*;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.*;

/** Files, children, threads, sockets and mapped memory: says of each whether it did what it should. */
public class Effects {
	interface Part {
		boolean run() throws Exception;
	}

	static void say(String name, Part part) {
		String verdict;
		try {
			verdict = part.run() ? "yes" : "no";
		} catch (Exception e) {
			verdict = e.toString();
		}
		System.out.println(name + ": " + verdict);
	}

	static boolean files() throws IOException {
		Path folder = Files.createTempDirectory(Path.of(""), "java");
		Path file = folder.resolve("f");
		Files.writeString(file, "text", StandardOpenOption.CREATE_NEW);
		Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r-----"));
		Files.move(file, folder.resolve("g"), StandardCopyOption.ATOMIC_MOVE);
		Files.createSymbolicLink(file, Path.of("g"));
		boolean good = Files.readString(file).equals("text") && PosixFilePermissions
			.toString(Files.getPosixFilePermissions(file)).equals("rw-r-----");
		Files.delete(file);
		Files.delete(folder.resolve("g"));
		Files.delete(folder);
		return good;
	}

	static boolean mapped() throws IOException {
		try (FileChannel channel = FileChannel.open(Path.of("mapped"), StandardOpenOption.CREATE,
				StandardOpenOption.READ, StandardOpenOption.WRITE); FileLock lock = channel.lock()) {
			MappedByteBuffer memory = channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096);
			memory.putInt(8, 42);
			memory.force();
			ByteBuffer buffer = ByteBuffer.allocate(4);
			channel.read(buffer, 8);
			return buffer.getInt(0) == 42 && lock.isValid();
		}
	}

	static boolean children() throws Exception {
		Process process = new ProcessBuilder("sh", "-c", "cat; exit 5").redirectErrorStream(true).start();
		try (var out = process.getOutputStream()) {
			out.write("through".getBytes(StandardCharsets.UTF_8));
		}
		String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
		Process sleeper = new ProcessBuilder("sleep", "20").start();
		sleeper.destroyForcibly();
		return process.waitFor() == 5 && text.equals("through") && sleeper.waitFor() == 137;
	}

	static boolean missing() {
		try {
			new ProcessBuilder("/no/such/program").start();
			return false;
		} catch (IOException e) {
			return e.getMessage().contains("error=2");
		}
	}

	static boolean threads() throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(8);
		var tasks = new java.util.ArrayList<Future<Integer>>();
		for (int i = 0; i < 100; i++) {
			Path path = Path.of("thread-" + i);
			tasks.add(pool.submit(() -> {
				Files.writeString(path, "x");
				return Files.readString(path).length();
			}));
		}
		int sum = 0;
		for (var task : tasks)
			sum += task.get();
		pool.shutdown();
		return sum == 100;
	}

	static boolean sockets() throws Exception {
		try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress())) {
			Thread thread = new Thread(() -> {
				try (Socket peer = server.accept()) {
					peer.getInputStream().transferTo(peer.getOutputStream());
				} catch (IOException e) {
					throw new java.io.UncheckedIOException(e);
				}
			});
			thread.start();
			try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
				socket.getOutputStream().write(new byte[1000]);
				socket.shutdownOutput();
				return socket.getInputStream().readAllBytes().length == 1000;
			}
		}
	}

	static boolean local() throws Exception {
		var address = UnixDomainSocketAddress.of("java-socket");
		try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
			server.bind(address);
			try (SocketChannel client = SocketChannel.open(address); SocketChannel peer = server.accept()) {
				return client.isConnected() && peer.isConnected();
			}
		} finally {
			Files.deleteIfExists(address.getPath());
		}
	}

	static boolean watched() throws Exception {
		Path folder = Files.createDirectory(Path.of("watched"));
		try (WatchService service = FileSystems.getDefault().newWatchService()) {
			folder.register(service, StandardWatchEventKinds.ENTRY_CREATE);
			Files.writeString(folder.resolve("new"), "x");
			WatchKey key = service.poll(10, TimeUnit.SECONDS);
			return key != null && key.pollEvents().get(0).context().toString().equals("new");
		}
	}

	public static void main(String[] arguments) {
		say("files", Effects::files);
		say("mapped", Effects::mapped);
		say("children", Effects::children);
		say("missing", Effects::missing);
		say("threads", Effects::threads);
		say("sockets", Effects::sockets);
		say("local", Effects::local);
		say("watched", Effects::watched);
	}
}
