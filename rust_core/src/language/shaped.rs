//! The lexer beside a shape: what a symbol in progress can still become if the middle must keep its shape.

use crate::ids::{AcceptId, GuardId, StateId};
use crate::language::shape::{Shape, ShapeId};
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::lexer::{DEAD, Lexer, bits};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The product of a lexer and a shape.
#[derive(Debug)]
pub(crate) struct ShapedLexer {
    lexer: Arc<Lexer>,
    shape: Arc<Shape>,
    /// Successors of a pair: `targets[first[pair]..first[pair + 1]]`.
    first: Vec<u32>,
    targets: Vec<u32>,
    /// Per pair: bitset of the accept sets that the symbol can end as, each at a place of the shape.
    ends: Vec<u64>,
    words: usize,
    /// One byte of each class that neither the lexer nor the shape tells apart.
    bytes: Vec<u8>,
}

/// What can be reached from each pair, as rows of a bitset.
#[derive(Debug)]
pub(crate) struct Reach {
    rows: Vec<u64>,
    words: usize,
}

impl ShapedLexer {
    /// The product.
    #[must_use]
    pub(crate) fn new(lexer: &Arc<Lexer>, shape: &Arc<Shape>) -> Self {
        let mut seen: FxHashSet<(u8, Vec<Option<ShapeId>>)> = FxHashSet::default();
        let column = |byte: u8| (0..shape.len()).map(|state| shape.step(ShapeId(state), byte)).collect();
        let bytes: Vec<u8> = (0..=255u8).filter(|&byte| seen.insert((lexer.class_of(byte), column(byte)))).collect();
        let mut product = Self {
            lexer: lexer.clone(),
            shape: shape.clone(),
            first: Vec::new(),
            targets: Vec::new(),
            ends: Vec::new(),
            words: 0,
            bytes,
        };
        product.link();
        let places = shape.boundaries().len();
        let reach = product.reach(lexer.accept_set_count() * places, |state, inside, row| {
            if let (true, Some(place)) = (lexer.accepts(state), shape.place(inside)) {
                let bit = lexer.accept(state).index() * places + place;
                row[bit / 64] |= 1 << (bit % 64);
            }
        });
        product.ends = reach.rows;
        product.words = reach.words;
        product
    }

    fn link(&mut self) {
        for inside in 0..self.shape.len() {
            for state in (0..self.lexer.state_count()).map(StateId::from_index) {
                let begin = self.targets.len();
                self.first.push(u32::try_from(begin).expect("edge count fits u32"));
                for &byte in &self.bytes {
                    let target = self.lexer.step(state, byte);
                    if let (true, Some(to)) = (target != DEAD, self.shape.step(ShapeId(inside), byte)) {
                        self.targets.push(self.pair(target, to));
                    }
                }
                self.targets[begin..].sort_unstable();
                let mut kept = begin;
                for index in begin..self.targets.len() {
                    if index == begin || self.targets[index] != self.targets[kept - 1] {
                        self.targets[kept] = self.targets[index];
                        kept += 1;
                    }
                }
                self.targets.truncate(kept);
            }
        }
        self.first.push(u32::try_from(self.targets.len()).expect("edge count fits u32"));
    }

    fn pair(&self, state: StateId, inside: ShapeId) -> u32 {
        inside.0 * u32::try_from(self.lexer.state_count()).expect("state count fits u32") + state.0
    }

    /// What each pair can reach by zero or more bytes, of what pairs bring with them.
    pub(crate) fn reach(&self, bits: usize, own: impl Fn(StateId, ShapeId, &mut [u64])) -> Reach {
        let words = bits.div_ceil(64);
        let pairs = self.first.len() - 1;
        let states = self.lexer.state_count();
        let mut rows = vec![0u64; pairs * words];
        for pair in 0..pairs {
            let inside = ShapeId(u32::try_from(pair / states).expect("pair count fits u32"));
            own(StateId::from_index(pair % states), inside, &mut rows[pair * words..(pair + 1) * words]);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for pair in (0..pairs).rev() {
                for edge in self.first[pair]..self.first[pair + 1] {
                    let target = self.targets[edge as usize] as usize;
                    for word in 0..words {
                        let more = rows[target * words + word] & !rows[pair * words + word];
                        if more != 0 {
                            rows[pair * words + word] |= more;
                            changed = true;
                        }
                    }
                }
            }
        }
        Reach { rows, words }
    }

    /// What a symbol in progress can end as in the middle, each with the place of the shape that it ends at.
    pub(crate) fn ends(&self, state: StateId, inside: ShapeId) -> impl Iterator<Item = (AcceptId, usize)> + '_ {
        let begin = self.pair(state, inside) as usize * self.words;
        let places = self.shape.boundaries().len();
        bits(&self.ends[begin..begin + self.words]).map(move |bit| (AcceptId::from_index(bit / places), bit % places))
    }

    /// What is reached from a pair.
    pub(crate) fn reached<'a>(
        &self,
        reach: &'a Reach,
        state: StateId,
        inside: ShapeId,
    ) -> impl Iterator<Item = usize> + use<'a> {
        let begin = self.pair(state, inside) as usize * reach.words;
        bits(&reach.rows[begin..begin + reach.words])
    }

    /// All configurations that a symbol in progress beside guards can come to.
    pub(crate) fn beside(
        &self,
        guards: &mut Guards,
        from: (StateId, GuardId, ShapeId),
    ) -> Vec<(StateId, GuardId, ShapeId)> {
        let mut seen: FxHashMap<(StateId, GuardId, ShapeId), ()> = FxHashMap::default();
        let mut stack = vec![from];
        let mut found = Vec::new();
        while let Some((state, id, inside)) = stack.pop() {
            if seen.insert((state, id, inside), ()).is_some() {
                continue;
            }
            found.push((state, id, inside));
            for &byte in &self.bytes {
                let target = self.lexer.step(state, byte);
                let (true, Some(to)) = (target != DEAD, self.shape.step(inside, byte)) else { continue };
                let stepped = if id == NO_GUARDS { Some(id) } else { guards.step(&self.lexer, id, byte) };
                stack.extend(stepped.map(|stepped| (target, stepped, to)));
            }
        }
        found
    }
}
