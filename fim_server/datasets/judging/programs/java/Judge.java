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
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
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

    /** The homes of the JDKs beside this one, this one among them, by what version of Java they are. */
    private static TreeMap<Integer, Path> jdks() throws IOException {
        TreeMap<Integer, Path> found = new TreeMap<>();
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
                    found.put(Integer.valueOf(version.replaceFirst("\\D.*", "")), home);
                }
            }
        }
        found.put(Runtime.version().feature(), own);
        return found;
    }

    /** The command of this program in another JDK. */
    private static List<String> command(Path home, String version) {
        List<String> command = new ArrayList<>(List.of(home.resolve("bin/java").toString()));
        for (String part : List.of("file", "main", "parser", "util")) {
            command.add("--add-exports=jdk.compiler/com.sun.tools.javac." + part + "=ALL-UNNAMED");
        }
        command.addAll(List.of("-Xmx1g", "-XX:+UseSerialGC"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Judge.class.getName(), version));
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

    /**
     * Answers in the oldest JDK that knows the version, since each parser is the judge of its own; in this one if it is that.
     */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        String version = arguments.length > 0 ? arguments[0] : String.valueOf(Runtime.version().feature());
        Map.Entry<Integer, Path> jdk = jdks().ceilingEntry(Math.max(Integer.parseInt(version), OLDEST_JDK));
        if (jdk == null) {
            refuse("no JDK " + version + " or newer is installed beside " + System.getProperty("java.home"));
        } else if (jdk.getKey() == Runtime.version().feature()) {
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
            Process process = new ProcessBuilder(command(jdk.getValue(), version)).inheritIO().start();
            System.exit(process.waitFor());
        }
    }
}
