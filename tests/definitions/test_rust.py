"""The definition of Rust: texts that rustc is known to take and to refuse, by edition, cut wherever they can be.

Where cargo and rustc are installed, rustc's own parser is asked about each of them as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fim_server import Language
from fim_server.datasets.judging import programs
from fim_server.datasets.judging.judge import Judge
from support.languages.cut_texts import write_again
from support.markdown_pages import differences

EDITIONS = ("2015", "2018", "2021", "2024")

WHOLE = [
    "",
    "impl<T> (A) {} struct B(pub (super::C), D);",
    "#!/usr/bin/env run\nfn f() {}\n",
    "\ufeff#! a [\n#![b]\n",
    "\ufefffn f() {}\n",
    "#! [a]\nfn f() {}\n",
    "#![a]\n//! b\n/*! c */\n#[d(e = \"f\")] /** g */ /// h\npub(crate) mod i { #![j] }\n",
    "use a::{b, c as _, d::{self, *}, }; use ::e; pub use crate::f as g; extern crate h;\n",
    "const A: u8 = 1; static mut B: [u8; 2] = [1, 2]; const _: () = {}; type C<T> where T: D = E;\n",
    "struct A; struct B(pub C, #[d] pub(in e::f) G,); struct H<T: I> where T: J { pub k: L, m: N }\n",
    "enum A<T> { B, C(D), E { f: G }, H = 1 + 2, }\nunion I { j: K }\n",
    ("pub unsafe trait A<'a, T = B, const N: usize = 3>: C + ?Sized + 'a where T: D { fn e(&self); type F: G; "
    "const H: I = 1; }\n"),
    "impl<'a, T: 'a> A<'a> for &'a mut dyn B<C = D> where Self: E { default fn f(self: Box<Self>) {} type G = H; }\n",
    "impl !A for B {} unsafe impl C for (D, E) {} impl F { pub const G: H = 1; }\n",
    "extern \"C\" { fn a(b: *const c, ...) -> d; static e: F; } unsafe extern {}\n",
    ("const unsafe extern \"C\" fn a() {} pub(crate) fn b<T>(mut c: T, (d, e): (F, G), _: H) -> impl I + 'j "
    "where T: Fn(K) -> L + M {}\n"),
    "macro_rules! a { ($($b:tt)*) => { $(#[$c])* { [($b)] } }; } macro_rules! d (); e!{} f::g!(h); i![];\n",
    "fn f() { let x: Vec<Vec<u8>>= a::<B<C>>(); let Some(y) = z else { return }; let (a, ref mut b @ C(..)) = d; }\n",
    "fn f() { if let Some(x) | Other(x) = y {} else if a == (B { c: 1 }) {} else {} while let 1..=2 = x {} }\n",
    ("fn f() { match x { A | B if c => {} D(e, ..) => 1, F { g, h: 0x1.., .. } => return, [a, .., b] => {}.c, "
    "&mut _ => -1 } }\n"),
    "fn f() { 'a: loop { break 'a x + 1; } for (i, j) in 0..n { continue 'b } 'c: { break 'c } unsafe {} }\n",
    "fn f() { {} - 1; {} (a, b); match x {}.f(); if a {} else {}?; m!{} - 1; m!{}.g(); x }\n",
    "fn f() { a = b += c == d && e || f as u8 as u16 + !g * -h; *i = &&mut j; k[1] .l.0.1.m(n)?.o::<P>(..)(..=1); }\n",
    "fn f() { |a, &b: &C| a + b; || {}; move |x| -> T { x }; |a||b| c; return; }\n",
    "fn f() { A { b, c: 1, ..d }.e; [1; 2]; [1, 2,]; (); (1,); (1, 2); a..; ..b; a..=b; .. }\n",
    "fn f() { <A as B<C>>::d(); <<E>::F as G>::h; a::<<B>::C>(); x as Vec<u8> < y; x as usize + 1; }\n",
    ("fn f() { 1.f(); 1..2; 1.0.f(); 1e5; 0x1fu8; 0b1_0; 0o7; 1_000.5e-3f64; 1.; 'a'; b'\\xff'; '\\u{1F600}'; "
    "'b: loop {} }\n"),
    "fn f() { \"a\\\n b\\\"\"; r\"\\\"; r#\"\"\"#; r##\"\"#\"##; br#\"a\"#; b\"\\x00\"; \"a\"suffix; }\n",
    "fn f() { /* /* a */ b */ // c\n /**/ /***/ //// d\n x }\n",
    ("type A = (B, *const C, &'a mut D, fn(E, f: G) -> H, [I; 3], [J], !, for<'a> fn(&'a K), L<'_, {M}, -1, N = "
    "O>); type P = A + B;\n"),
    "fn union(auto: default, raw: macro_rules) { union.auto = default; let safe = r#fn; }\n",
    "fn é() { let 變 = 'é'; }\n",
    "/// a\r\n/** b\r\n */\r\nfn f() { \"c\r\nd\\\r\ne\"; b\"\\\r\n\"; // f\rg\r\n}\r\n",
    "fn f() { 1ª; 1_ª; 1.0ª; 1e1ª; 0xfgª; 0b1aª; 0x1eª; }\n",
    "fn f(self::A..: B, 1..self: C, (self..): D) {} struct E where F: G (H);\n",
    "fn f() { a as dyn + b; a as &dyn - c; a as dyn == d || e as impl || g; a as dyn ..; a as F() -> impl += h; }\n",
    "fn f() { -..a -= b; -..a..b; !.. = c; x == -..a -= b; &mut -..a as u8; - - ..=a && b = c; a + -.. + b; }\n",
    "fn f() { if -..a = b {} while -.. {} let A = -..b && c else {}; let A = a + -..b else {}; match -..b {} }\n",
    "fn f() { return ..a = b; return a..b..c; x = ..a..b; |x| a..b = c; let A = return ..b = c else {}; }\n",
    ("fn f() { let x = if return b {} {}; let x = if return b.c {}; if break 'a || b {} {} let x = if break b {} {}; "
    "if return {} {} let x = match become ..{} {}; if a > return b { c } {} if return a..b = c {} if break {} }\n"),
    "fn f() { while return .. ..b {} {} if x + return .. ..= -.. {} {} match become .. .. {} {} }\n",
    "fn f() { match x { a if let b = c && let d = e && f => 1, a if b && let c = d => 2 } }\n",
    "fn f() { match x { A(b) | C(b) if let Some(d) = b => d, _ if (let_ || x) && let E { .. } = y[..] => {} _ => 1 } }",
    "use self as a; use super as b; use crate::{self as c, d::self}; use super::super as e; use f::self as g;",
    "type const A: B = 1; trait C { type const D: E; default type const F: G = 1; } fn f() { pub type const H: I; }\n",
    "fn f() { let ref pin mut a = b; let C { ref pin const d, mut ref pin mut e, ref pin } = g; }\n",
    "fn f() { a.0. 1.g; a.0. 1. 2. 3.h(); a.0. 1 = b.1. 2..c.0. 1; -a.0. 1..=d; }\n",
    "fn \u088f\U000323b0() { a\u1acf; }\n",
    "type A = ~const B + C; type D = const E; fn f(a: &const B) where (const F) + G: H {}\n",
    "fn f(&'_ self) -> &'static A { const || 1; a = const static move || 1; for<> static || 1; } safe fn g() {}\n",
    "type A = F(self::B(C)::D, &&self(E)::G, [self(H)::I; 1]) -> self(J)->K::L; impl self(M)::N for O {}\n",
    "fn f(self::a!(): A, &&self!(): B, (self!()): C, super!(): D) { let &self!() = e; |self!()| g; }\n",
    "type A = F(super, crate<B>, &Self, self::C, &self::D, &&self, & &self, (self), dyn self, fn() -> self, ?self);\n",
    "type A = fn(self: B, a: self<C>); struct D(pub (self(E) -> F), pub (crate<G>), pub (super) H); type I = self + J;",
    "type A = F() -> dyn + B; type C = D<F() -> G() -> dyn + B>; type E = F() -> impl + B + C;\n",
]  # fmt: skip

REFUSED = [
    "fn",
    "struct B(pub (self));",
    ";",
    "fn f() {};",
    "mod a { let x = 1; }",
    "fn f(a) {}",
    "fn f(a: B, self) {}",
    "fn f(a: B = 1) {}",
    "struct A(B) {}",
    "struct A { b: C; }",
    "enum A { B; }",
    "trait A { struct B; }",
    "impl A; ",
    "pub m!();",
    "m!()",
    "m!{};",
    "pub(a) fn f() {}",
    "/// a",
    "struct A { b: C, /// d\n }",
    "fn f() { /// d\n }",
    "fn f() { #[a] }",
    "fn f() { x; #![a] }",
    " #!/usr/bin/env run\nfn f() {}",
    "fn f() {}\n#!/usr/bin/env run\n",
    "fn f() {} \ufeff",
    "unsafe async fn f() {}",
    "fn f() { a < b < c; }",
    "fn f() { a == b == c; }",
    "fn f() { a..b..c; }",
    "fn f() { a..=; }",
    "fn f() { a as usize < b; }",
    "fn f() { a as T[1]; }",
    "fn f() { let x = if A {} {}; }",
    "fn f() { if (let a = b) {} }",
    "fn f() { let A = b && c else {}; }",
    "fn f() { let A = b {} else {}; }",
    "fn f() { let A | B = c; }",
    "fn f() { {} + 1 }",
    "fn f() { m!{} = 1; }",
    "fn f() { 'a: if x {} }",
    "fn f() { match x { a => 1 b => 2 } }",
    "fn f() { match x { a, b => 1 } }",
    "fn f() { match x { &1..=2 => 1 } }",
    "fn f() { A { ..b, } }",
    "fn f() { x.f::<T>; }",
    "fn f() { x.0u8; }",
    "fn f() { x++; }",
    "fn f() { a <-b; }",
    "type A = &B + C;",
    "type A = Fn() -> dyn B + C;",
    "type A = <B>::C + D;",
    "type A = F(&self);",
    "type A = B<const ::C>;",
    "fn f() where const A: B {}",
    "fn f() { x.use(); }",
    "use a::{,};",
    "fn f() { 0b2; }",
    "fn f() { 1e; }",
    "fn f() { 0x; }",
    "fn f() { 'ab'; }",
    "fn f() { '\t'; }",
    'fn f() { "\\q"; }',
    "fn f() { '\\u{d800}'; }",
    'fn f() { b"é"; }',
    'fn f() { m!("); }',
    "fn f() { m!(]); }",
    "fn f() { /* /* */ }",
    "fn f() { r#self; }",
    "//! a\r",
    "//! a\r\r\n",
    "/// a\rb\nfn f() {}",
    "/** a /* \r */ */ fn f() {}",
    "/*! a\r */",
    'fn f() { "a\rb"; }',
    'fn f() { b"a\rb"; }',
    'fn f() { "a\\\rb"; }',
    "fn f() { 0xreturnª; }",
    "fn f() { 0x_ª; }",
    "fn f() { 0b2ª; }",
    "fn f() { 0o78ª; }",
    "fn f() { 1eª; }",
    "fn f() { 1.5eaª; }",
    "fn f() { 0b1e1ª; }",
    "fn f(self..: T) {}",
    "fn f(a: B, self..=1: T) {}",
    "trait A { fn f(self..self: T); }",
    "struct A where (B);",
    "struct A where B: C, (D);",
    "fn f((a if let b = c): T) {}",
    "fn f() { a as impl && b; }",
    "fn f() { a as impl as b; }",
    "fn f() { a as impl * b; }",
    "fn f() { a as impl < b; }",
    "fn f() { a as F() -> impl & b; }",
    "fn f() { a as dyn F() -> impl && b; }",
    "fn f() { let A = b as impl else {}; }",
    "type A = <&impl as B>::C;",
    "fn f() { -..a.. = b; }",
    "fn f() { -..b < c < d; }",
    "fn f() { #[a] ..b = c; }",
    "fn f() { return a..b.. = c; }",
    "fn f() { let A = .. as u8 else {}; }",
    "fn f() { let x = if return {}; }",
    "fn f() { let x = if return b {}; }",
    "fn f() { let x = if a > return b {}; }",
    "fn f() { let x = if return b as c + d {}; }",
    "fn f() { let x = if return |x| b {}; }",
    "fn f() { let x = if return .. {}; }",
    "fn f() { let x = if break b {}; }",
    "fn f() { let x = for a in yield {}; }",
    "fn f() { let x = if return return a..b = c {}; }",
    "fn f() { while return .. ..b {} }",
    "fn f() { if x + return .. ..= -.. {} }",
    "fn f() { match become .. .. {} }",
    "type A = for<> const B;",
    "type A = [const] B;",
    "type A = (!B) + C;",
    "struct A where B = [C; 3] (E);",
    "fn f() { '_: loop {} }",
    "fn f() { loop { break 'static } }",
    "fn f() { loop { continue '_ } }",
    "fn f() { a = const async || 1; }",
    "pub async safe fn f() {}",
    "safe unsafe static A: B;",
    "const A: B<~const C<D>>= e;",
    "impl F() -> impl for A {}",
    "fn f(self!(): A) {}",
    "fn f(a: B, &mut self!(): C) {}",
    "type A = F(self<B>);",
    "type A = F(B, &'a self!());",
    "type A = F(*const self);",
    "type A = F(self + B);",
    "type A = F(B, self(C)::D);",
    "type A = F(&self<B>::C);",
    "fn f() -> A(self(self::B)::C) {}",
    "type A = fn(self(B) -> C);",
    "type A = fn(&mut self<B>);",
    "fn f() { a::(self!()); }",
    "struct A(pub (crate));",
    "type const A = 1;",
    "type const fn f() {}",
    "unsafe type const A: B = 1;",
    "extern { type const A: B; }",
    "fn f() { let ref pin a = b; }",
    "fn f() { let ref mut pin mut a = b; }",
    "fn f() { a.0. 1u8; }",
    "fn f() { match x { _ if let A = b || c => 1 } }",
    "fn f() { match x { _ if (let A = b) => 1 } }",
    "use a as self;",
    "use a as crate;",
]

# The editions that take a text; all others refuse it.
BY_EDITION = [
    ("fn f() { let async = 1; let dyn = await(try); }", "2015"),
    ("fn f() { x.async; } struct dyn; type A = dyn::B;", "2015"),
    ("trait A { fn f(u8, &str) -> B; }", "2015"),
    ("type A = &dyn B;", "2015 2018 2021 2024"),
    ("async fn f() { x.await; async move {}; async || 1; }", "2018 2021 2024"),
    ("fn f() { try { x; } }", "2018 2021 2024"),
    ("type A = dyn use<>; type B = dyn !C; type D = dyn [const] E; type F = dyn ~const G;", "2018 2021 2024"),
    ("fn f() { dyn!(a); dyn(a); dyn{}; } type B = dyn<C>;", "2015"),
    ("type A = &dyn for<'a> B; type D = dyn (E) + F; type G = dyn ?H; type I = dyn 'j + K;", "2015 2018 2021 2024"),
    ("async safe fn f() { async safe fn g() {} } impl A { default async safe fn h() {} }", "2018 2021 2024"),
    ("fn f() { let gen = 1; }", "2015 2018 2021"),
    ("fn f() { gen {}; async gen move {}; } gen fn g() {}", "2024"),
    ("fn f() { m!(a\"b\" c'd' e#f); }", "2015 2018"),
    ('fn f() { c"a"; cr#"b"#; }', "2021 2024"),
    ('fn f() { m!(#"a"# ##); }', "2015 2018 2021"),
    ("fn f() { if let A = b && let C = d && e {} }", "2024"),
    ("fn f() { if let A = b {} }", "2015 2018 2021 2024"),
    ("fn f() { if a && let B = c {} }", "2024"),
    ("fn f() { for await (a, Some(b)) in c.d() {} 'e: for await f in g { continue 'e } }", "2018 2021 2024"),
    ("fn f() { for await in a {} let await = b; }", "2015"),
    ("fn f() { x.0. 1.await; }", "2015 2018 2021 2024"),
    ("fn f() { x.0.await; }", "2015 2018 2021 2024"),
    ("fn f() { m!('r#a); }", "2015 2018 2021 2024"),
]


def rows() -> list[tuple[str, bool]]:
    """The texts of docs/rust.md, and whether they are accepted here; rustc says the reverse."""
    return [
        (text.strip().replace("⏎", "\n").replace("\\ufeff", "\ufeff").replace("\\r", "\r"), here)
        for text, here in differences("docs/rust.md")
    ]


@cache
def rust(edition: str | None = None) -> Language:
    return Language.load("rust", edition)


def takes(text: str, edition: str | None = None) -> bool:
    return rust(edition).open("", "").check(text).complete


@pytest.mark.parametrize("text", WHOLE)
def test_what_rust_takes_can_be_written_from_any_cut(text: str) -> None:
    assert all(takes(text, edition) for edition in EDITIONS)
    write_again(rust(), text, 12)


@pytest.mark.parametrize("text", REFUSED)
def test_what_rust_refuses_is_refused(text: str) -> None:
    assert not any(takes(text, edition) for edition in EDITIONS)
    middle = len(text) // 2
    assert not rust().open(text[:middle], "").check(text[middle:]).complete


@pytest.mark.parametrize(("text", "editions"), BY_EDITION)
def test_editions(text: str, editions: str) -> None:
    assert [edition for edition in EDITIONS if takes(text, edition)] == editions.split()


def test_the_edition_is_that_of_the_package(tmp_path: Path) -> None:
    file = tmp_path / "src" / "lib.rs"
    file.parent.mkdir()
    file.touch()
    manifest = tmp_path / "Cargo.toml"
    for edition in ("2018", "2021"):
        manifest.write_text(f'[package]\nname = "a"\nedition = "{edition}"\n')
        assert Language.for_path(file).version == edition
    manifest.write_text('[package]\nname = "a"\n')
    assert Language.for_path(file).version == "2015"
    manifest.write_text('[package]\nname = "a"\nedition = "2024"\n')
    assert Language.for_path(file).version is None


def test_masks_do_not_depend_on_the_right_side() -> None:
    text = next(text for text in WHOLE if "for (i, j)" in text)
    assert all(rust().open(text[:at], text[at:])._core.is_loose() for at in range(len(text) + 1))


def test_depths_have_limits() -> None:
    for depth, taken in ((16, True), (17, False)):
        assert takes("/* " * (depth + 1) + "*/ " * (depth + 1)) == taken
        assert takes(f'const A: B = r{"#" * depth}""{"#" * depth};') == taken


@pytest.mark.parametrize(("text", "here"), rows())
def test_examples_of_the_page(text: str, here: bool) -> None:
    assert takes(text) == here


def test_the_table_is_read() -> None:
    assert len(rows()) == 20


@pytest.fixture(scope="module")
def judges() -> Iterator[dict[str, Judge]]:
    reason = programs.unavailable("rust")
    if reason is not None:
        pytest.skip(reason)
    started = {edition: Judge(programs.appeal("rust", edition)) for edition in EDITIONS}
    yield started
    for judge in started.values():
        judge.close()


def test_rustc_agrees(judges: dict[str, Judge]) -> None:
    newest = judges["2024"]
    assert [text for text in WHOLE if newest.verdict(text) is not True] == []
    assert [text for text in REFUSED if newest.verdict(text) is not False] == []
    assert [text for text, here in rows() if newest.verdict(text) is not (not here)] == []
    for text, editions in BY_EDITION:
        assert [edition for edition in EDITIONS if judges[edition].verdict(text)] == editions.split(), text


def test_shortest_completions_are_taken_by_rustc(judges: dict[str, Judge]) -> None:
    rng = random.Random(1)
    for text in WHOLE:
        start, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
        found = rust().open(text[:start], text[end:]).start().shortest_completion()
        assert found is not None
        whole = text[:start] + found + text[end:]
        assert judges["2024"].verdict(whole), (text[:start], found, text[end:])
