//! The memory from outside: documents come, change and go, and suggestions are what followed.

use fim_server_memory::{Asker, CHARACTERS, Indexed, Place, ProjectMemory};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// A folder of one's own, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("fim-server-memory-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path.to_str().expect("a plain name").to_string()
    }

    fn index(&self, memory: &ProjectMemory) -> Indexed {
        memory.index_folder(&self.0, &[".py".to_string()], &|| false)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn texts(memory: &ProjectMemory, left: &str) -> Vec<String> {
    memory.continuations("/here.py", (left, 0), "", 1, 8).into_iter().map(|one| one.text).collect()
}

fn likeliest(memory: &ProjectMemory, left: &str) -> String {
    texts(memory, left).into_iter().next().unwrap_or_default()
}

const CODE: &str =
    "import os\n\n\ndef first(path):\n    for name in os.listdir(path):\n        yield os.path.join(path, name)\n";

#[test]
fn following_text_is_suggested_at_any_depth() {
    let memory = ProjectMemory::new(CHARACTERS);
    memory.update("/other.py", CODE, "", false);
    assert_eq!(likeliest(&memory, "def second(path):\n    for name in "), "os.listdir(path):");
    assert_eq!(likeliest(&memory, "class A:\n\tdef second(path):\n\t\tfor na"), "me in os.listdir(path):");
    assert_eq!(texts(&memory, "for name in os.zzz"), [""; 0]);
    let more = memory.continuations("/here.py", ("if a:\n  if b:\n    for name in", 0), "\n  c", 5, 8);
    assert_eq!(more[0].text, " os.listdir(path):\n      yield os.path.join(path, name)");
    assert_eq!((more[0].lines, more[0].place, more[0].agreeing), (2, Place::Folder, 1));
    // The word at the cursor may be incomplete, so the match is the text before it.
    assert_eq!((more[0].matched_characters, more[0].prefix), (":\n    for name ".len() as u32, 2));
}

#[test]
fn text_right_of_the_cursor_is_not_repeated() {
    let memory = ProjectMemory::new(CHARACTERS);
    memory.update("/other.py", "x = call(a, (b), c).d\nz\n", "", false);
    let made = memory.continuations("/here.py", ("y = call(", 0), ")", 1, 8);
    assert_eq!((made[0].text.as_str(), made[0].meets_right, made[0].right_agreement), ("a, (b), c", true, 1));
    let made = memory.continuations("/here.py", ("y = call(", 0), ").d\n", 1, 8);
    assert_eq!((made[0].text.as_str(), made[0].right_agreement), ("a, (b), c", 4));
    let made = memory.continuations("/here.py", ("y = call(", 0), "]", 1, 8);
    assert_eq!((made[0].text.as_str(), made[0].meets_right), ("a, (b), c).d", false));
}

#[test]
fn documents_replace_their_files_and_files_come_back() {
    let folder = Folder::new();
    let key = folder.write("a.py", "alpha = beta(1)\n");
    folder.write("b/c.py", "gamma = delta(1)\n");
    let memory = ProjectMemory::new(CHARACTERS);
    assert_eq!(folder.index(&memory), Indexed { files: 2, read: 2, ..Indexed::default() });
    assert_eq!(folder.index(&memory), Indexed { files: 2, read: 0, ..Indexed::default() });
    assert_eq!(likeliest(&memory, "alpha = "), "beta(1)");
    assert!(memory.update(key.as_str(), "alpha = other\n", "x\n", false));
    assert!(!memory.update(key.as_str(), "alpha = other\n", "x\n", false));
    assert_eq!(likeliest(&memory, "alpha = "), "other");
    assert!(memory.close(&key));
    assert!(!memory.close(&key));
    assert_eq!(likeliest(&memory, "alpha = "), "beta(1)");
    folder.write("a.py", "alpha = changed()\n");
    fs::remove_file(folder.0.join("b/c.py")).expect("it was there");
    assert_eq!(folder.index(&memory), Indexed { files: 1, read: 1, ..Indexed::default() });
    assert_eq!(likeliest(&memory, "alpha = "), "changed()");
    assert!(texts(&memory, "gamma = ").iter().all(|text| !text.contains("delta")));
    assert!(memory.remove(&key));
    assert_eq!(texts(&memory, "alpha = "), [""; 0]);
    assert_eq!((memory.sizes().files, memory.sizes().characters), (0, 0));
}

#[test]
fn the_cursors_own_line_is_not_found() {
    let memory = ProjectMemory::new(CHARACTERS);
    let (before, after) = ("def f():\n", "    return 1\n");
    memory.update("/here.py", before, after, false);
    // The line before it and the line after it do not stand together.
    assert_eq!(texts(&memory, "def f():\n    total = su"), [""; 0]);
    memory.update("/here.py", "total = sum(x)\ndef f():\n", after, false);
    let made =
        memory.continuations("/here.py", ("total = sum(x)\ndef f():\n    total = su", 0), "\n    return 1\n", 1, 8);
    assert_eq!((made[0].text.as_str(), made[0].place, made[0].distance), ("m(x)", Place::Document, Some(2)));
}

#[test]
fn foreign_and_unfit_files_are_left_out() {
    let folder = Folder::new();
    folder.write("good.py", "alpha = good\n");
    folder.write(".gitignore", "ignored.py\n/out/\n");
    for name in ["ignored.py", "out/a.py", ".hidden.py", "venv/a.py", "node_modules/a.py", "my/lib/site-packages/a.py"]
    {
        folder.write(name, "alpha = bad\n");
    }
    folder.write("env2/pyvenv.cfg", "");
    folder.write("env2/a.py", "alpha = bad\n");
    folder.write("text.txt", "alpha = bad\n");
    folder.write("binary.py", b"alpha = bad\n\0");
    folder.write("latin.py", b"alpha = bad # \xe4\n");
    folder.write("generated.py", "# Generated by x, do not edit\nalpha = bad\n");
    folder.write("large.py", "alpha = bad\n".repeat(100_000));
    folder.write("windows.py", "\u{feff}omega = 1\r\nomega = 2\r\n");
    let outside = Folder::new();
    let other = outside.write("a.py", "alpha = bad\n");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside.0, folder.0.join("link")).expect("a link");
        std::os::unix::fs::symlink(other, folder.0.join("link.py")).expect("a link");
    }
    #[cfg(not(unix))]
    drop(other);
    let memory = ProjectMemory::new(CHARACTERS);
    assert_eq!(folder.index(&memory), Indexed { files: 2, read: 2, unfit: 3, ..Indexed::default() });
    assert_eq!(folder.index(&memory).read, 0);
    assert_eq!(likeliest(&memory, "alpha = "), "good");
    assert!(texts(&memory, "alpha = ").iter().all(|text| !text.contains("bad")));
    assert_eq!(memory.continuations("/a/b.py", ("omega", 0), "", 1, 8).len(), 2);
}

#[test]
fn near_files_come_first_where_not_all_fit() {
    let folder = Folder::new();
    for name in ["a/one.py", "b/two.py", "c/three.py"] {
        folder.write(name, format!("alpha = {}\n", name.replace('/', ".")).repeat(100));
    }
    let memory = ProjectMemory::new(4_000);
    memory.update(folder.0.join("b/open.py").to_str().expect("a plain name"), "", "", false);
    assert_eq!(folder.index(&memory).beyond, 1);
    assert_eq!(likeliest(&memory, "alpha = b."), "two.py");
    memory.close(folder.0.join("b/open.py").to_str().expect("a plain name"));
    memory.update(folder.0.join("c/open.py").to_str().expect("a plain name"), "", "", false);
    folder.index(&memory);
    assert_eq!(likeliest(&memory, "alpha = c."), "three.py");
    assert!(memory.sizes().characters <= 4_000);
}

#[test]
fn many_small_files_are_few_segments() {
    let folder = Folder::new();
    let memory = ProjectMemory::new(CHARACTERS);
    for round in 0..40 {
        for file in 0..5 {
            folder.write(&format!("{round}/{file}.py"), format!("value_{round} = call_{file}({round})\n").repeat(20));
        }
        folder.index(&memory);
    }
    assert_eq!(memory.sizes().files, 200);
    assert!(memory.sizes().segments <= 10, "{:?}", memory.sizes());
    for round in [0, 17, 39] {
        assert_eq!(likeliest(&memory, &format!("value_{round} = call_3(")), format!("{round})"));
    }
    // Replaced text does not accumulate.
    let bytes = memory.sizes().bytes;
    for round in 0..60 {
        folder.write("0/0.py", format!("again = {round}\n").repeat(500 + round));
        folder.index(&memory);
    }
    assert!(memory.sizes().segments <= 10 && memory.sizes().bytes < bytes + 200_000, "{:?}", memory.sizes());
    assert_eq!(likeliest(&memory, "again = "), "59");
}

#[test]
fn predictions_follow_what_came_next() {
    let memory = ProjectMemory::new(CHARACTERS);
    memory.update("/other.py", "a.b = 1\na.c = 2\na.b = 3\n", "", false);
    let told = memory.predict("/here.py", "x\na.", "", 8);
    assert_eq!(told.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>()[..2], ["b", "c"]);
    assert!(told[0].1 > told[1].1 && told.iter().map(|(_, weight)| weight).sum::<f64>() <= 1.0);
    assert_eq!(memory.predict("/here.py", "x\na.b", "", 8)[0].0, " =");
    assert_eq!(memory.predict("/here.py", "x\na.zz", "", 8), []);
}

#[test]
fn unusual_texts_take_no_longer_than_others() {
    let million = 1_000_000;
    let mut random = 1u64;
    let bytes: String = (0..million / 2)
        .map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from((random >> 56) as u8)
        })
        .collect();
    let deep: String = (0..1400).map(|depth| format!("{}x\n", " ".repeat(depth))).collect();
    let texts = [
        CODE.repeat(million / CODE.len()),
        "x,".repeat(million / 2),
        "x".repeat(million),
        "\n".repeat(million),
        " ".repeat(million),
        "\0".repeat(million),
        "(".repeat(million),
        "ab\n".repeat(million / 3),
        format!("{}\n", "call(1) ".repeat(million / 8)),
        bytes,
        deep,
        (0..100).map(|_| format!("{}x\n", " ".repeat(10_000))).collect(),
    ];
    for (index, text) in texts.iter().enumerate() {
        let memory = ProjectMemory::new(CHARACTERS);
        let start = Instant::now();
        let mut middle = text.len() / 2;
        while !text.is_char_boundary(middle) {
            middle += 1;
        }
        let (before, after) = text.split_at(middle);
        memory.update("/a.py", before, after, false);
        let read = start.elapsed();
        for left in [before, text, &before[before.len() / 2 / 3 * 3..]].iter().filter(|left| left.len() < 1 << 24) {
            let left = if text.is_ascii() { left } else { &before };
            let made = memory.continuations("/a.py", (left, 0), after, 10, 8);
            let told = memory.predict("/b.py", left, "", 8);
            assert!(made.len() <= 8 && told.len() <= 8);
        }
        let all = start.elapsed();
        eprintln!("{index}: read in {read:?}, asked in {:?}", all - read);
        // Not a measurement: a hundred times the usual time, which quadratic code would exceed.
        assert!(all.as_secs() < 20, "text {index}: {read:?}, {all:?}");
    }
}

#[test]
fn threads_query_while_others_update() {
    let memory = ProjectMemory::new(CHARACTERS);
    let folder = Folder::new();
    for file in 0..50 {
        folder.write(&format!("{file}.py"), CODE.repeat(5));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| (0..5).for_each(|_| assert_eq!(folder.index(&memory).files, 50)));
        scope.spawn(|| {
            for round in 0..50 {
                memory.update("/here.py", &CODE.repeat(1 + round % 5), CODE, false);
                if round % 7 == 0 {
                    memory.close("/here.py");
                }
            }
        });
        for _ in 0..2 {
            scope.spawn(|| (0..100).for_each(|_| drop(texts(&memory, "    for name in "))));
        }
    });
    assert_eq!(likeliest(&memory, "\n    for name in "), "os.listdir(path):");
}

#[test]
fn files_made_for_secrets_are_left_out() {
    let folder = Folder::new();
    folder.write("secrets.py", "alpha = beta\n");
    folder.write("a/Secrets.py", "alpha = beta\n");
    folder.write("a/credentials.py", "omega = psi\n");
    let memory = ProjectMemory::new(CHARACTERS);
    assert_eq!(folder.index(&memory).files, 1);
    assert_eq!(likeliest(&memory, "alpha = "), "psi");
}

#[test]
fn a_document_answers_in_its_language_and_a_private_one_only_itself() {
    let memory = ProjectMemory::new(CHARACTERS);
    memory.name_languages(&[(".py".to_string(), "python".to_string()), (".rs".to_string(), "rust".to_string())]);
    memory.update("/a.py", "for row in rows:\n", "", false);
    memory.update("/b.py", "for secret in them:\n", "", true);
    let asked = |key: &str, language: &str| {
        let made = memory.continuations(Asker { key, language }, ("for ", 0), "", 1, 8);
        made.into_iter().map(|one| one.text).collect::<Vec<_>>()
    };
    for told in [asked("/c.py", ""), asked("untitled:1", "python")] {
        assert_eq!(told[0], "row in rows:");
        assert!(!told.concat().contains("secret"));
    }
    let own = asked("/b.py", "");
    assert!(["row in rows:", "secret in them:"].iter().all(|text| own.iter().any(|one| one == text)));
    assert!(asked("/c.rs", "").is_empty());
    assert!(asked("/c.py", "rust").is_empty());
    assert_eq!(memory.characters("python"), memory.characters(""));
}
