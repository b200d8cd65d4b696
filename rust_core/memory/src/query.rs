//! Queries: what followed the longest matches of the text before a cursor.

use crate::cursor::{Cursor, unseen};
use crate::languages::Language;
use crate::lexemes::{ASCII, CUT, Indents, Lexeme, Newline};
use crate::limits::{DEPTH, EACH, LINE, OTHERS, OWN, PREDICTED, PREDICTED_WALK, WALK};
use crate::segment::{Document, Segment};
use crate::store::{Open, State, Store, folder_of};
use crate::strings::Strings;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// Document of a query, with its language; if that is empty, the key's suffix decides.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'q> {
    /// Key of the document.
    pub key: &'q str,
    /// Language of the document, or an empty text.
    pub language: &'q str,
}

impl<'q> From<&'q str> for Asker<'q> {
    fn from(key: &'q str) -> Self {
        Self { key, language: "" }
    }
}

/// Place of a continuation, seen from the cursor; nearer ones are less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the same document.
    Document,
    /// In a document of the same folder.
    Folder,
    /// Elsewhere.
    Project,
}

/// Likely continuation at a cursor, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// Text to insert: the rest of a line, maybe with whole lines after it, without a line break at its end.
    pub text: String,
    /// Its lines.
    pub lines: u32,
    /// Lexemes before the cursor, or before the part of a word there, that also stood before the best occurrence.
    pub matched: u32,
    /// Their characters.
    pub matched_characters: u32,
    /// Occurrences among all visited matches, and among the longest ones.
    pub agreeing: u32,
    /// See `agreeing`.
    pub agreeing_longest: u32,
    /// Documents of these occurrences.
    pub documents: u32,
    /// Matching places, and the longest-matching ones, whatever followed there.
    pub candidates: u32,
    /// See `candidates`.
    pub candidates_longest: u32,
    /// The longest match of all places.
    pub longest: u32,
    /// Share of its places in the weight of all places; longer matches weigh more.
    pub share: f64,
    /// Share of the longest matches that continued with the same word or character.
    pub first_share: f64,
    /// Share in the weight of all places that continued with the same word or character.
    pub first_weight: f64,
    /// For each lexeme of the first line: characters of the text up to its end, and the share in the weight of all
    /// places that agree up to there.
    pub shares: Vec<(u32, f64)>,
    /// The nearest of its places.
    pub place: Place,
    /// Lines between the cursor and the nearest place in the same document.
    pub distance: Option<u32>,
    /// Edits of documents since the last edit of its open document, if it is in one.
    pub edits_ago: Option<u64>,
    /// Characters of the word begun before the cursor.
    pub prefix: u32,
    /// Lexemes right of the cursor that also followed this text there.
    pub right_agreement: u32,
    /// True if the rest of the cursor's line came after this text there, or is empty.
    pub meets_right: bool,
    /// Occurrences that agree to its last line.
    pub lines_agreeing: u32,
    /// The document of the best occurrence.
    pub source: String,
}

/// A matching place.
struct Hit<'s> {
    segment: &'s Segment,
    position: usize,
    matched: usize,
    document: Document,
    /// Line breaks before it in its document, where that is the cursor's own.
    line: Option<u32>,
    weight: f64,
    /// Lexemes that followed up to the line's end, or to the text right of the cursor; and where the line ended.
    length: usize,
    end: usize,
    meets_right: bool,
}

impl<'s> Hit<'s> {
    fn text(&self) -> &'s [Lexeme] {
        &self.segment.lexemes[self.position..self.position + self.length]
    }

    /// The first lexeme, and the second if the first is blank.
    fn first(&self, strings: &Strings) -> &'s [Lexeme] {
        let text = self.text();
        let blank = text.first().is_some_and(|&first| strings.text(first).starts_with([' ', '\t']));
        &text[..text.len().min(1 + usize::from(blank))]
    }
}

/// Segments to look at together, with the line at which their own part begins, and how far to go.
struct Search<'s> {
    segments: Vec<(&'s Segment, Option<u32>)>,
    most: usize,
    each: usize,
    walk: usize,
}

/// One way outwards from a place in a segment's order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Direction {
    matched: usize,
    upwards: bool,
    segment: usize,
    place: usize,
}

impl<'s> Search<'s> {
    /// Matching places, longest matches first.
    fn hits(&self, state: &State, strings: &Strings, cursor: &Cursor<'_>) -> Vec<Hit<'s>> {
        let mut directions = BinaryHeap::new();
        let direction = |segment: usize, place: Option<usize>, upwards, most| {
            let place = place.filter(|&place| place < self.segments[segment].0.len())?;
            let one = self.segments[segment].0;
            let matched = one.matching(one.position(place), &cursor.context, most);
            Some(Direction { matched, upwards, segment, place })
        };
        for (index, (segment, _)) in self.segments.iter().enumerate() {
            let place = segment.place(&cursor.context);
            directions.extend(direction(index, Some(place), true, DEPTH));
            directions.extend(direction(index, place.checked_sub(1), false, DEPTH));
        }
        let mut hits: Vec<Hit<'s>> = Vec::new();
        let mut of: FxHashMap<Document, usize> = FxHashMap::default();
        let mut starts: FxHashMap<Lexeme, bool> = FxHashMap::default();
        let least = if cursor.prefix.len() > 1 { 0 } else { 1 };
        for _ in 0..self.walk {
            let Some(now) = directions.pop() else { break };
            if now.matched < least || hits.len() >= self.most {
                break;
            }
            let (segment, line) = self.segments[now.segment];
            let next = if now.upwards { Some(now.place + 1) } else { now.place.checked_sub(1) };
            directions.extend(direction(now.segment, next, now.upwards, now.matched));
            let position = segment.position(now.place);
            let first = segment.lexemes[position];
            let begins = cursor.prefix.is_empty()
                || *starts.entry(first).or_insert_with(|| strings.text(first).starts_with(cursor.prefix));
            if !begins {
                continue;
            }
            let span = segment.span(position);
            let info = state.info(span.document);
            if !info.live || info.hidden {
                continue;
            }
            let seen = of.entry(span.document).or_default();
            *seen += 1;
            if *seen > self.each {
                continue;
            }
            let mut matched = now.matched;
            if matched == DEPTH {
                matched = segment.matching(position, &cursor.context, usize::MAX);
            }
            let line = line.map(|line| line + segment.line(span, position));
            let mut hit = Hit {
                segment,
                position,
                matched,
                document: span.document,
                line,
                weight: 0.0,
                length: 0,
                end: 0,
                meets_right: true,
            };
            hit.measure(cursor);
            hits.push(hit);
        }
        hits
    }
}

impl Hit<'_> {
    /// Measure how far the following text goes: to the line's end, or to the beginning of the text right of the cursor.
    fn measure(&mut self, cursor: &Cursor<'_>) {
        let following = self.segment.following(self.position);
        let ends = |&lexeme: &Lexeme| Newline::of(lexeme).is_some() || lexeme == CUT;
        let end = following.iter().take(LINE).position(ends).unwrap_or(following.len().min(LINE));
        let line = &following[..end];
        self.end = end;
        self.length = end;
        if cursor.rest.is_empty() {
            return;
        }
        let reached = if line.ends_with(&cursor.rest) {
            Some(end - cursor.rest.len())
        } else {
            outside_brackets(line, cursor.rest[0])
        };
        self.meets_right = reached.is_some();
        self.length = reached.unwrap_or(end);
    }

    /// Number of lexemes right of the cursor that followed here.
    fn right_agreement(&self, cursor: &Cursor<'_>) -> u32 {
        if !self.meets_right {
            return 0;
        }
        let after = &self.segment.following(self.position)[self.length..];
        let right = cursor.rest.iter().chain(&cursor.below);
        after.iter().zip(right).take_while(|(own, right)| own == right).count() as u32
    }
}

/// The first place of a lexeme in a line outside of brackets that the line opened.
fn outside_brackets(line: &[Lexeme], sought: Lexeme) -> Option<usize> {
    let is = |lexeme: Lexeme, bytes: &[u8]| bytes.iter().any(|&byte| lexeme == ASCII + Lexeme::from(byte));
    let mut open = 0usize;
    for (at, &lexeme) in line.iter().enumerate() {
        if open == 0 && lexeme == sought {
            return Some(at);
        }
        if is(lexeme, b"([{") {
            open += 1;
        } else if is(lexeme, b")]}") {
            open = open.checked_sub(1)?;
        }
    }
    None
}

/// Weight of a match of some length.
fn weight(matched: usize) -> f64 {
    f64::from(1u32 << matched.min(24))
}

/// Return the segments of the cursor's own document, if it is in that language.
fn own(open: Option<&Open>, language: Option<Language>) -> Vec<(&Segment, Option<u32>)> {
    let blocks = open.into_iter().flat_map(|open| &open.blocks);
    let blocks = blocks.filter(|block| Some(block.segment.language) == language);
    blocks.map(|block| (&*block.segment, Some(block.line))).collect()
}

/// Return the segments of all other documents in a language, without private ones.
fn others<'s>(state: &'s State, key: &str, language: Option<Language>) -> Vec<(&'s Segment, Option<u32>)> {
    let open = state.open.iter().filter(|(other, open)| &***other != key && !open.private);
    let open = open.flat_map(|(_, open)| &open.blocks).map(|block| &*block.segment);
    let all = open.chain(state.segments.iter().map(|segment| &**segment));
    all.filter(|segment| Some(segment.language) == language).map(|segment| (segment, None)).collect()
}

/// A group of hits that agree, while it is made.
struct Group {
    hits: Vec<usize>,
    weight: f64,
}

/// Parameters that all groups of a query share.
struct Asked<'q> {
    state: &'q State,
    strings: &'q Strings,
    cursor: &'q Cursor<'q>,
    folder: u64,
    key: &'q str,
    most_lines: usize,
}

impl Asked<'_> {
    fn place(&self, hit: &Hit<'_>) -> Place {
        let info = self.state.info(hit.document);
        if &*info.key == self.key {
            Place::Document
        } else if info.folder == self.folder {
            Place::Folder
        } else {
            Place::Project
        }
    }

    fn weight(&self, hit: &Hit<'_>) -> f64 {
        let place = match self.place(hit) {
            Place::Document => 2.0,
            Place::Folder => 1.4,
            Place::Project => 1.0,
        };
        let agreement = 1.0 + 0.25 * f64::from(hit.right_agreement(self.cursor).min(8));
        let against = if hit.meets_right { 1.0 } else { 0.5 };
        weight(hit.matched) * place * agreement * against
    }

    /// The text of a continuation with its further lines, and the number of hits that agree.
    fn text(&self, best: &Hit<'_>, hits: &[&Hit<'_>]) -> (String, u32, u32) {
        let mut text = String::new();
        best.text().iter().for_each(|&lexeme| text.push_str(self.strings.text(lexeme)));
        let mut text = text.strip_prefix(self.cursor.prefix).map(String::from).unwrap_or(text);
        let (mut lines, mut agreeing) = (1, hits.len());
        if self.most_lines <= 1 || !self.cursor.rest.is_empty() {
            return (text, lines, agreeing as u32);
        }
        let following = best.segment.following(best.position);
        let mut indents: Indents = self.cursor.indents.clone();
        let depth = indents.depth();
        let mut at = best.end;
        while let Some(newline) = following.get(at).and_then(|&lexeme| Newline::of(lexeme)) {
            let rest = &following[at + 1..];
            let ends = rest.iter().take(LINE).position(|&lexeme| Newline::of(lexeme).is_some());
            // Texts end with a line; a text longer than the limit has no known end.
            let Some(length) = ends.or((rest.len() < LINE).then_some(rest.len())) else { break };
            let line = &following[at..at + 1 + length];
            let end = at + line.len();
            let goes_on = |hit: &&&Hit<'_>| hit.segment.following(hit.position).get(..end) == Some(&following[..end]);
            let alike = hits.iter().filter(goes_on).count();
            let stands_below = self.cursor.below.get(1..=length) == Some(&line[1..]);
            let mut written = String::new();
            indents.write(newline, &mut written);
            if 3 * alike < 2 * hits.len() || stands_below || length == 0 || indents.depth() < depth {
                break;
            }
            text.push_str(&written);
            line.iter().for_each(|&lexeme| text.push_str(self.strings.text(lexeme)));
            lines += newline.breaks as u32;
            agreeing = alike;
            at = end;
            if lines as usize >= self.most_lines {
                break;
            }
        }
        (text, lines, agreeing as u32)
    }

    /// Count how the hits that agree with one become fewer with each lexeme.
    fn shares(&self, best: &Hit<'_>, all: &[Hit<'_>], total: f64) -> Vec<(u32, f64)> {
        let mut alike: Vec<&Hit<'_>> = all.iter().collect();
        let mut characters = 0;
        let share = |(at, &lexeme): (usize, &Lexeme)| {
            alike.retain(|hit| hit.text().get(at) == Some(&lexeme));
            characters += self.strings.text(lexeme).chars().count();
            let written = characters.saturating_sub(self.cursor.prefix.chars().count());
            (written as u32, alike.iter().map(|hit| hit.weight).sum::<f64>() / total)
        };
        best.text().iter().enumerate().map(share).collect()
    }

    fn continuation(
        &self,
        group: &Group,
        all: &[Hit<'_>],
        firsts: &FxHashMap<&[Lexeme], (usize, f64)>,
    ) -> Continuation {
        let hits: Vec<&Hit<'_>> = group.hits.iter().map(|&index| &all[index]).collect();
        let nearest = |one: &&&Hit<'_>| (one.matched, std::cmp::Reverse(self.place(one)), one.line);
        let best = hits.iter().max_by_key(nearest).expect("a group has hits");
        let longest = all.iter().map(|hit| hit.matched).max().unwrap_or(0);
        let at_longest = all.iter().filter(|hit| hit.matched == longest).count();
        let total: f64 = all.iter().map(|hit| hit.weight).sum();
        let (first_count, first_weight) = firsts[best.first(self.strings)];
        let mut documents: Vec<Document> = hits.iter().map(|hit| hit.document).collect();
        documents.sort_unstable();
        documents.dedup();
        let edited = documents.iter().filter_map(|&document| self.state.info(document).edited).max();
        let distances = hits.iter().filter_map(|hit| hit.line).map(|line| line.abs_diff(self.cursor.line));
        let (text, lines, lines_agreeing) = self.text(best, &hits);
        Continuation {
            text,
            lines,
            lines_agreeing,
            matched: best.matched as u32,
            matched_characters: self.cursor.characters(best.matched),
            agreeing: hits.len() as u32,
            agreeing_longest: hits.iter().filter(|hit| hit.matched == longest).count() as u32,
            documents: documents.len() as u32,
            candidates: all.len() as u32,
            candidates_longest: at_longest as u32,
            longest: longest as u32,
            share: group.weight / total,
            first_share: first_count as f64 / at_longest as f64,
            first_weight: first_weight / total,
            shares: self.shares(best, all, total),
            place: hits.iter().map(|hit| self.place(hit)).min().expect("a group has hits"),
            distance: distances.min(),
            edits_ago: edited.map(|edited| self.state.edits - edited),
            prefix: self.cursor.prefix.chars().count() as u32,
            right_agreement: hits.iter().map(|hit| hit.right_agreement(self.cursor)).max().unwrap_or(0),
            meets_right: best.meets_right,
            source: self.state.info(best.document).key.to_string(),
        }
    }
}

impl Store {
    /// Continuations at a cursor, the likeliest first.
    pub(crate) fn continuations(
        &self,
        Asker { key, language }: Asker<'_>,
        (left, above): (&str, u32),
        right: &str,
        most_lines: usize,
        limit: usize,
    ) -> Vec<Continuation> {
        let (strings, state) = (self.strings(), self.state());
        let open = state.open.get(key);
        let language = state.languages.find(key, language);
        let cursor = Cursor::new(left, right, above, open.map(|open| open.unit), &strings);
        let near = Search { segments: own(open, language), most: OWN, each: OWN, walk: WALK / 2 };
        let far = Search { segments: others(&state, key, language), most: OTHERS, each: EACH, walk: WALK };
        let mut hits = near.hits(&state, &strings, &cursor);
        hits.extend(far.hits(&state, &strings, &cursor));
        let asked =
            Asked { state: &state, strings: &strings, cursor: &cursor, folder: folder_of(key), key, most_lines };
        hits.iter_mut().for_each(|hit| hit.weight = asked.weight(hit));
        let longest = hits.iter().map(|hit| hit.matched).max().unwrap_or(0);
        let mut groups: FxHashMap<&[Lexeme], Group> = FxHashMap::default();
        let mut firsts: FxHashMap<&[Lexeme], (usize, f64)> = FxHashMap::default();
        for (index, hit) in hits.iter().enumerate() {
            let group = groups.entry(hit.text()).or_insert_with(|| Group { hits: Vec::new(), weight: 0.0 });
            group.hits.push(index);
            group.weight += hit.weight;
            let first = firsts.entry(hit.first(&strings)).or_default();
            first.0 += usize::from(hit.matched == longest);
            first.1 += hit.weight;
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        // The first hit decides between equals, so that the answer does not depend on a hash table's order.
        groups.sort_by(|one, other| other.weight.total_cmp(&one.weight).then(one.hits[0].cmp(&other.hits[0])));
        let made = groups.iter().map(|group| asked.continuation(group, &hits, &firsts));
        // Half a surrogate pair is no text in Rust; it is not suggested as another character.
        made.filter(|one| !one.text.contains('\u{fffd}')).take(limit).collect()
    }

    /// Likely next texts, up to the end of a lexeme, or of two where the first is blank; the weights sum to at most 1.
    ///
    /// Matches of each length take a share by how often they were seen, and leave the rest to shorter ones (Witten and
    /// Bell 1991, method C).
    pub(crate) fn predict(
        &self,
        Asker { key, language }: Asker<'_>,
        left: &str,
        middle: &str,
        limit: usize,
    ) -> Vec<(String, f64)> {
        let left = [&left[unseen(left)..], middle].concat();
        let (strings, state) = (self.strings(), self.state());
        let open = state.open.get(key);
        let language = state.languages.find(key, language);
        let cursor = Cursor::new(&left, "", 0, open.map(|open| open.unit), &strings);
        let search = |segments| Search { segments, most: PREDICTED, each: PREDICTED / 2, walk: PREDICTED_WALK };
        let mut hits = search(own(open, language)).hits(&state, &strings, &cursor);
        hits.extend(search(others(&state, key, language)).hits(&state, &strings, &cursor));
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.matched));
        let mut weights: Vec<(&[Lexeme], f64)> = Vec::new();
        let mut rest = 1.0;
        for level in hits.chunk_by(|one, other| one.matched == other.matched) {
            let mut counts: FxHashMap<&[Lexeme], f64> = FxHashMap::default();
            level.iter().for_each(|hit| *counts.entry(piece(hit, &cursor, &strings)).or_default() += 1.0);
            let known = level.len() as f64 / (level.len() + counts.len()) as f64;
            for (piece, count) in counts {
                let weight = rest * known * count / level.len() as f64;
                match weights.iter_mut().find(|(other, _)| *other == piece) {
                    Some((_, sum)) => *sum += weight,
                    None => weights.push((piece, weight)),
                }
            }
            rest *= 1.0 - known;
            if rest < 1e-4 {
                break;
            }
        }
        let mut told: Vec<(String, f64)> =
            weights.iter().map(|&(piece, weight)| (told(piece, &cursor, &strings), weight)).collect();
        told.retain(|(text, _)| !text.is_empty() && !text.contains('\u{fffd}'));
        told.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        told.truncate(limit);
        told
    }
}

/// The lexemes of a prediction: after a word that is already whole, those that follow it.
fn piece<'s>(hit: &Hit<'s>, cursor: &Cursor<'_>, strings: &Strings) -> &'s [Lexeme] {
    let following = hit.segment.following(hit.position);
    let text = |at: usize| following.get(at).map_or("", |&lexeme| strings.text(lexeme));
    let mut length = 1 + usize::from(!cursor.prefix.is_empty() && text(0) == cursor.prefix);
    length += usize::from(text(length - 1).starts_with([' ', '\t']));
    &following[..following.len().min(length)]
}

/// Write lexemes as they stand at the cursor.
fn told(piece: &[Lexeme], cursor: &Cursor<'_>, strings: &Strings) -> String {
    let mut text = String::new();
    let mut indents = cursor.indents.clone();
    for &lexeme in piece {
        match Newline::of(lexeme) {
            Some(newline) => indents.write(newline, &mut text),
            None => text.push_str(strings.text(lexeme)),
        }
    }
    text.strip_prefix(cursor.prefix).map(String::from).unwrap_or(text)
}
