use crate::limits::{DEEPEST, FILE, FOLDER_ENTRIES, GLOBS, IGNORE_FILE};
use crate::reading::Reader;
use crate::secret_files::SecretFiles;
use crate::walk::{Found, walk};
use ignore::WalkBuilder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Folder(PathBuf, SecretFiles);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("fim-server-walk-{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path, SecretFiles::default())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
    }

    /// Return the names that the walk finds, and its notes.
    fn walk(&self) -> (Vec<String>, Vec<String>) {
        let reader = Reader::new(&self.0).expect("a folder");
        let found = walk(&self.0, &[".py".to_string()], &self.1, &reader, &|| false);
        (found.iter().map(|found: &Found| self.name(found.path())).collect(), reader.into_notes())
    }

    /// Return the names that the `ignore` crate's walker finds.
    fn twin(&self) -> Vec<String> {
        let mut builder = WalkBuilder::new(&self.0);
        builder.parents(false).git_global(false).require_git(false).follow_links(false).max_filesize(Some(FILE));
        let files = builder.build().flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
        let mut names: Vec<PathBuf> = files.map(|entry| entry.into_path()).collect();
        names.retain(|path| path.extension().is_some_and(|suffix| suffix == "py"));
        names.sort();
        names.iter().map(|path| self.name(path)).collect()
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.0).expect("inside").to_str().expect("a plain name").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reproducible pseudo-random numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const GLOBS_OF_OTHERS: [&str; 24] = [
    "*.py", "!a.py", "a/", "!a/", "/b", "b/c", "**/c", "c/**", "!b/*.py", "?.py", "[ab].py", "{a,b}.py", "# a.py",
    "\\#a", "a.py ", "!.a.py", "!.b/", "*", "!*/", "[a", "\\", "a/**/b", "/*.py", "!c",
];

#[test]
fn files_are_those_of_the_ignore_crates_walker() {
    let mut numbers = Numbers(1);
    let mut differing = 0;
    for _ in 0..300 {
        let folder = Folder::new();
        let names = ["a", "b", "c", ".b"];
        let mut written = Vec::new();
        for _ in 0..12 {
            let depth = numbers.below(4);
            let at: String = (0..depth).map(|_| format!("{}/", numbers.one_of(&names))).collect();
            folder.write(&format!("{at}{}.py", numbers.one_of(&["a", "b", "c", ".a"])), "x = 1\n");
            let rules: String =
                (0..1 + numbers.below(3)).map(|_| numbers.one_of(&GLOBS_OF_OTHERS).to_string() + "\n").collect();
            written.push(format!("{at} {rules:?}"));
            match numbers.below(6) {
                0 => folder.write(&format!("{at}.gitignore"), rules),
                1 => folder.write(&format!("{at}.ignore"), rules),
                2 => folder.write(&format!("{at}.git/info/exclude"), rules),
                3 => folder.write(&format!("{at}.gitignore"), format!("\u{feff}{}", rules.replace('\n', "\r\n"))),
                _ => {}
            }
        }
        let twin = folder.twin();
        differing += usize::from(!twin.is_empty());
        assert_eq!(folder.walk(), (twin, Vec::new()), "{}", written.join("; "));
    }
    assert!(differing > 50);
}

#[cfg(unix)]
#[test]
fn irregular_ignore_files_are_not_read() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.write("a.py", "x = 1\n");
    symlink("/dev/zero", folder.0.join(".ignore")).expect("a link");
    for name in ["pipe", "socket", "outside", "loop", "folder", "shut", "inside"] {
        folder.write(&format!("{name}/a.py"), "x = 1\n");
    }
    let pipe = std::ffi::CString::new(folder.0.join("pipe/.gitignore").to_str().expect("a name")).expect("a name");
    // SAFETY: the path is a C string that lives as long as the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let _socket = std::os::unix::net::UnixListener::bind(folder.0.join("socket/.gitignore")).expect("a socket");
    let other = Folder::new();
    other.write("rules", "*.py\n");
    symlink(other.0.join("rules"), folder.0.join("outside/.gitignore")).expect("a link");
    symlink(".gitignore", folder.0.join("loop/.gitignore")).expect("a link");
    fs::create_dir(folder.0.join("folder/.gitignore")).expect("a folder");
    folder.write("inside/rules", "*.py\n");
    symlink("rules", folder.0.join("inside/.gitignore")).expect("a link");
    let (found, mut notes) = folder.walk();
    assert_eq!(found, ["a.py", "folder/a.py", "loop/a.py", "outside/a.py", "pipe/a.py", "shut/a.py", "socket/a.py"]);
    let named = |words: &str| notes.iter().filter(|note| note.ends_with(words)).count();
    assert_eq!(named("is a link that leads out of the folder"), 2);
    assert_eq!(named("is not a regular file"), 3);
    assert_eq!(named("cannot be read"), 1);
    notes.retain(|note| note.contains('\n'));
    assert!(notes.is_empty());
}

#[test]
fn rules_have_bounds() {
    let folder = Folder::new();
    folder.write("a.py", "x = 1\n");
    folder.write("b.py", "x = 1\n");
    let many: String = (0..200_000).map(|number| format!("name{number}*[ab]?\n")).collect();
    assert!(many.len() as u64 > IGNORE_FILE);
    folder.write(".gitignore", format!("a.py\n{many}b.py\n"));
    let (found, notes) = folder.walk();
    // The first rules hold; those beyond the bounds do not.
    assert_eq!(found, ["b.py"]);
    assert_eq!(notes.len(), 1);
    let one_line = [
        "x".repeat(100_000),
        "{".repeat(100_000),
        "{".repeat(250) + &"}".repeat(4),
        "*a".repeat(100_000),
        "[!a]?*".repeat(40),
        "{a,b}".repeat(30),
    ];
    for hostile in one_line {
        folder.write(".gitignore", format!("{hostile}\na.py\n"));
        assert_eq!(folder.walk().0, ["b.py"]);
    }
    // A chain of folders has no more rules than one folder has.
    let rules: String = (0..GLOBS / 2).map(|number| format!("name{number}\n")).collect();
    folder.write(".gitignore", &rules);
    folder.write("x/.gitignore", &rules);
    folder.write("x/y/.gitignore", "a.py\n");
    folder.write("x/y/a.py", "x = 1\n");
    folder.write("z/.gitignore", "a.py\n");
    folder.write("z/a.py", "x = 1\n");
    assert_eq!(folder.walk().0, ["a.py", "b.py", "x/y/a.py"]);
}

#[test]
fn folders_have_bounds() {
    let folder = Folder::new();
    let mut deep = String::new();
    for _ in 0..3 * DEEPEST {
        deep += "d/";
    }
    folder.write(&format!("{deep}a.py"), "x = 1\n");
    folder.write("d/d/a.py", "x = 1\n");
    let (found, notes) = folder.walk();
    assert_eq!((found, notes.len()), (vec!["d/d/a.py".to_string()], 1));
    let wide = Folder::new();
    for number in 0..FOLDER_ENTRIES + 2 {
        wide.write(&format!("wide/{number}"), "");
    }
    wide.write("a.py", "x = 1\n");
    let (found, notes) = wide.walk();
    assert_eq!((found, notes.len()), (vec!["a.py".to_string()], 1));
}

#[test]
fn a_file_instead_of_a_repository_refers_to_it_inside_of_the_folder() {
    let folder = Folder::new();
    folder.write("sub/a.py", "x = 1\n");
    folder.write("sub/b.py", "x = 1\n");
    folder.write("sub/.git", "gitdir: ../modules/sub\n");
    folder.write("modules/sub/info/exclude", "a.py\n");
    assert_eq!(folder.walk().0, ["sub/b.py"]);
    for text in ["gitdir: /dev", "gitdir: ", "", "gitdir: ../../../../../../etc\n", &"x".repeat(1 << 20)] {
        folder.write("sub/.git", text);
        assert_eq!(folder.walk().0, ["sub/a.py", "sub/b.py"]);
    }
}

#[test]
fn secret_and_withheld_files_are_not_found() {
    let mut folder = Folder::new();
    for name in ["a.py", "secrets.py", "x/b.py", "x/c.py", "y/a.py", "z/a.py", "z/d.py", "w/a.py", "SECRETS.PY.py"] {
        folder.write(name, "");
    }
    assert_eq!(folder.walk().0, ["a.py", "w/a.py", "x/b.py", "x/c.py", "y/a.py", "z/a.py", "z/d.py"]);
    folder.write(".aiignore", "y/\n");
    folder.write("x/.cursorignore", "*\n!C.py\n");
    folder.write(".codeiumignore", "d.PY");
    assert_eq!(folder.walk().0, ["a.py", "w/a.py", "x/c.py", "z/a.py"]);
    let globs = ["w", "!secrets.py", "!d.py", "z/a.*"].map(str::to_string);
    folder.1 = SecretFiles::new(&globs).expect("globs");
    assert_eq!(folder.walk().0, ["a.py", "secrets.py", "x/c.py", "z/d.py"]);
}
