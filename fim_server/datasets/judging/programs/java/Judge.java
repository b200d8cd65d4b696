import com.sun.tools.javac.file.JavacFileManager;
import com.sun.tools.javac.main.Option;
import com.sun.tools.javac.parser.ParserFactory;
import com.sun.tools.javac.util.Context;
import com.sun.tools.javac.util.Log;
import com.sun.tools.javac.util.Options;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticListener;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;

/**
 * The judge of Java: javac's own parser, at the source level that the first argument names. It reads texts, each after its
 * length in four bytes, big-endian, and answers each with a line; what is wrong is told by javac's codes.
 */
public final class Judge {
    /** The oldest JDK whose parser this is written for; it has the older source levels as well. */
    private static final int OLDEST_JDK = 17;

    /** Folder in the user's home for javac as a library of Maven, `com.dukescript.nbjavac:nb-javac`. */
    private static final String LIBRARIES = ".m2/repository/com/dukescript/nbjavac/nb-javac";

    /** Property of a process that runs with such a library: its version of Java. */
    private static final String PARSER = "judge.parser";

    /** Texts after which the compiler's tables of names and of reported errors are begun anew. */
    private static final int TEXTS_A_CONTEXT = 2000;

    private static final long STACK_BYTES = 1L << 28;

    /** Seconds that one text may take: after them this ends, since who waits ends only the process that it started. */
    private static final long PATIENCE_S = 50;

    /** What a text is called: javac wants the name of a file to be an identifier. */
    private static final URI FILE = URI.create("string:///X.java");

    private final String version;
    private final Set<String> codes = new LinkedHashSet<>();
    private ParserFactory parsers;
    private Log log;
    private int texts;
    private volatile long begun = System.nanoTime();
    private volatile boolean busy;

    private Judge(String version) {
        this.version = version;
    }

    private void begin() {
        Context context = new Context();
        DiagnosticListener<JavaFileObject> listener = diagnostic -> {
            if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
                codes.add(diagnostic.getCode());
            }
        };
        context.put(DiagnosticListener.class, listener);
        JavacFileManager.preRegister(context);
        Options.instance(context).put(Option.SOURCE, version);
        log = Log.instance(context);
        parsers = ParserFactory.instance(context);
        texts = 0;
    }

    private String verdict(String text) {
        if (parsers == null || ++texts > TEXTS_A_CONTEXT) {
            begin();
        }
        codes.clear();
        // The log stops telling errors when there were many.
        log.nerrors = 0;
        JavaFileObject before = log.useSource(new Text(text));
        try {
            parsers.newParser(text, false, true, true).parseCompilationUnit();
        } catch (RuntimeException | Error failure) {
            parsers = null;
            if (codes.isEmpty()) {
                return "? " + failure.getClass().getName();
            }
        } finally {
            log.useSource(before);
        }
        return codes.isEmpty() ? "ok" : "no " + String.join(" ", codes);
    }

    private void answer(OutputStream out) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        BufferedOutputStream answers = new BufferedOutputStream(out, 1 << 16);
        while (true) {
            byte[] text;
            try {
                text = in.readNBytes(in.readInt());
            } catch (EOFException end) {
                answers.flush();
                return;
            }
            begun = System.nanoTime();
            busy = true;
            String said = verdict(new String(text, StandardCharsets.UTF_8));
            busy = false;
            answers.write((said + "\n").getBytes(StandardCharsets.UTF_8));
            // Answers are sent together while more texts wait.
            if (in.available() < Integer.BYTES) {
                answers.flush();
            }
        }
    }

    private void watch() {
        while (!busy || System.nanoTime() - begun < PATIENCE_S * 1_000_000_000L) {
            try {
                Thread.sleep(1000);
            } catch (InterruptedException never) {
                return;
            }
        }
        Runtime.getRuntime().halt(1);
    }

    /** A text, as javac wants its sources. */
    private static final class Text extends SimpleJavaFileObject {
        private final String text;

        Text(String text) {
            super(FILE, Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }
    }

    /** A Java that can run this, and the folder of a library with the parser; null for the JDK's own. */
    private record Home(Path java, Path library) {
    }

    /** Parsers by their version of Java: this JDK's, those of the JDKs beside it, and those that are libraries. */
    private static TreeMap<Integer, Home> homes() throws IOException {
        TreeMap<Integer, Home> found = new TreeMap<>();
        Path own = Path.of(System.getProperty("java.home"));
        List<Path> homes = new ArrayList<>();
        try (Stream<Path> beside = Files.list(own.getParent())) {
            beside.forEach(homes::add);
        }
        if (System.getenv("JAVA_HOME") != null) {
            homes.add(Path.of(System.getenv("JAVA_HOME")));
        }
        for (Path home : homes) {
            if (Files.isReadable(home.resolve("release")) && Files.isExecutable(home.resolve("bin/javac"))) {
                Properties release = new Properties();
                try (var lines = Files.newBufferedReader(home.resolve("release"))) {
                    release.load(lines);
                }
                String version = release.getProperty("JAVA_VERSION", "").replace("\"", "");
                if (version.matches("[1-9]\\d*(\\D.*)?")) {
                    found.put(Integer.valueOf(version.replaceFirst("\\D.*", "")), new Home(home, null));
                }
            }
        }
        found.put(Runtime.version().feature(), new Home(own, null));
        libraries(Path.of(System.getProperty("user.home")).resolve(LIBRARIES), found.lastEntry().getValue().java, found);
        return found;
    }

    /** Adds the libraries in a folder of folders such as `jdk-27+26`, each with two jars, for versions without a JDK. */
    private static void libraries(Path folder, Path java, TreeMap<Integer, Home> found) throws IOException {
        if (!Files.isDirectory(folder)) {
            return;
        }
        try (DirectoryStream<Path> versions = Files.newDirectoryStream(folder, "jdk-[1-9][0-9]+*")) {
            for (Path version : versions) {
                String name = version.getFileName().toString();
                String jar = "nb-javac-" + name;
                if (Files.isReadable(version.resolve(jar + ".jar")) && Files.isReadable(version.resolve(jar + "-api.jar"))) {
                    found.putIfAbsent(Integer.valueOf(name.substring(4, 6)), new Home(java, version));
                }
            }
        }
    }

    /** The command of this program with another parser. */
    private static List<String> command(Home home, String version) {
        List<String> command = new ArrayList<>(List.of(home.java.resolve("bin/java").toString()));
        String classes = System.getProperty("java.class.path");
        if (home.library == null) {
            for (String part : List.of("file", "main", "parser", "util")) {
                command.add("--add-exports=jdk.compiler/com.sun.tools.javac." + part + "=ALL-UNNAMED");
            }
        } else {
            // Without the JDK's own compiler the library's classes of the same names are found.
            command.addAll(List.of("--limit-modules=java.base,java.compiler,java.logging", "-D" + PARSER + "=" + version));
            classes = home.library.resolve("*") + File.pathSeparator + classes;
        }
        command.addAll(List.of("-Xmx1g", "-XX:+UseSerialGC", "-cp", classes, Judge.class.getName(), version));
        return command;
    }

    private static void refuse(String why) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        while (true) {
            try {
                in.skipNBytes(in.readInt());
            } catch (EOFException end) {
                return;
            }
            System.out.println("? " + why);
        }
    }

    /** Answers with the oldest parser that knows the version, since each one is the judge of its own. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        String version = arguments.length > 0 ? arguments[0] : String.valueOf(Runtime.version().feature());
        Map.Entry<Integer, Home> home = homes().ceilingEntry(Math.max(Integer.parseInt(version), OLDEST_JDK));
        if (home == null) {
            refuse("there is no JDK " + version + ", or newer, beside " + System.getProperty("java.home"));
        } else if (home.getKey() == Runtime.version().feature() || version.equals(System.getProperty(PARSER))) {
            OutputStream out = new FileOutputStream(FileDescriptor.out);
            // Deeply nested texts need a deep stack.
            Judge judge = new Judge(version);
            Thread watch = new Thread(judge::watch, "watch");
            watch.setDaemon(true);
            watch.start();
            Thread thread = new Thread(null, () -> {
                try {
                    judge.answer(out);
                } catch (IOException end) {
                    // Nobody reads the answers any more.
                }
            }, "judge", STACK_BYTES);
            thread.start();
            thread.join();
        } else {
            Process process = new ProcessBuilder(command(home.getValue(), version)).inheritIO().start();
            System.exit(process.waitFor());
        }
    }
}
