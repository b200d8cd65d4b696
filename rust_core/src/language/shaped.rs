//! The lexer beside a shape: what a symbol in progress can still become if the middle must keep its shape.

use crate::bits::{self, BitRows};
use crate::ids::{AcceptId, GuardId, ShapeId, StateId};
use crate::language::shape::Shape;
use crate::lexing::guards::Guards;
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::product::walk_beside;
use rustc_hash::FxHashMap;
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
    ends: Reach,
    /// One byte of each class that neither the lexer nor the shape tells apart.
    bytes: Vec<u8>,
    /// The class of each byte: the place of its own one among them.
    classes: [u8; 256],
    /// Whether some text of the shape has each byte.
    takes: [bool; 256],
}

/// What can be reached from each pair, as rows of a bitset.
#[derive(Debug, Default)]
pub(crate) struct Reach(BitRows);

impl ShapedLexer {
    /// The product.
    #[must_use]
    pub(crate) fn new(lexer: &Arc<Lexer>, shape: &Arc<Shape>) -> Self {
        let mut seen: FxHashMap<(u8, Vec<Option<ShapeId>>), u8> = FxHashMap::default();
        let column = |byte: u8| shape.states().map(|state| shape.step(state, byte)).collect();
        let mut bytes: Vec<u8> = Vec::new();
        let mut classes = [0; 256];
        for byte in 0..=255u8 {
            let class = *seen.entry((lexer.class_of(byte), column(byte))).or_insert_with(|| {
                bytes.push(byte);
                u8::try_from(bytes.len() - 1).expect("no more classes than bytes")
            });
            classes[byte as usize] = class;
        }
        let mut product = Self {
            lexer: lexer.clone(),
            shape: shape.clone(),
            first: Vec::new(),
            targets: Vec::new(),
            ends: Reach::default(),
            bytes,
            classes,
            takes: std::array::from_fn(|byte| {
                shape.states().any(|state| shape.step(state, u8::try_from(byte).expect("256 bytes")).is_some())
            }),
        };
        product.link();
        let places = shape.boundaries().len();
        product.ends = product.reach(lexer.accept_set_count() * places, |state, inside, row| {
            if let (true, Some(place)) = (lexer.accepts(state), shape.place(inside)) {
                bits::insert(row, lexer.accept(state).index() * places + place);
            }
        });
        product
    }

    /// The class of a byte: bytes of one class are the same to the lexer and to the shape.
    pub(crate) fn class_of(&self, byte: u8) -> u8 {
        self.classes[byte as usize]
    }

    /// Whether some text of the shape has a byte.
    pub(crate) fn takes(&self, byte: u8) -> bool {
        self.takes[byte as usize]
    }

    fn link(&mut self) {
        for inside in self.shape.states() {
            for state in (0..self.lexer.state_count()).map(StateId::from_index) {
                let begin = self.targets.len();
                self.first.push(u32::try_from(begin).expect("edge count fits u32"));
                for &byte in &self.bytes {
                    let target = self.lexer.step(state, byte);
                    if let (true, Some(to)) = (target != DEAD, self.shape.step(inside, byte)) {
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
        u32::try_from(inside.index() * self.lexer.state_count() + state.index()).expect("pair count fits u32")
    }

    /// What each pair can reach by zero or more bytes, of what pairs bring with them.
    pub(crate) fn reach(&self, bound: usize, own: impl Fn(StateId, ShapeId, &mut [u64])) -> Reach {
        let pairs = self.first.len() - 1;
        let states = self.lexer.state_count();
        let mut rows = BitRows::new(pairs, bound);
        for pair in 0..pairs {
            own(StateId::from_index(pair % states), ShapeId::from_index(pair / states), rows.row_mut(pair));
        }
        let mut changed = true;
        while changed {
            changed = false;
            for pair in (0..pairs).rev() {
                for &target in &self.targets[self.first[pair] as usize..self.first[pair + 1] as usize] {
                    changed |= rows.grow(pair, target as usize);
                }
            }
        }
        Reach(rows)
    }

    /// What a symbol in progress can end as in the middle, each with the place of the shape that it ends at.
    pub(crate) fn ends(&self, state: StateId, inside: ShapeId) -> impl Iterator<Item = (AcceptId, usize)> + '_ {
        let places = self.shape.boundaries().len();
        let ends = self.reached(&self.ends, state, inside);
        ends.map(move |end| (AcceptId::from_index(end / places), end % places))
    }

    /// What is reached from a pair.
    pub(crate) fn reached<'a>(
        &self,
        reach: &'a Reach,
        state: StateId,
        inside: ShapeId,
    ) -> impl Iterator<Item = usize> + use<'a> {
        bits::numbers(reach.0.row(self.pair(state, inside) as usize))
    }

    /// All configurations that a symbol in progress beside guards can come to.
    pub(crate) fn beside(
        &self,
        guards: &mut Guards,
        from: (StateId, GuardId, ShapeId),
    ) -> Vec<(StateId, GuardId, ShapeId)> {
        let step = |inside, byte| self.shape.step(inside, byte);
        let found = walk_beside(&self.lexer, guards, &self.bytes, from, step, |_| true);
        found.into_iter().map(|at| (at.state, at.guards, at.along)).collect()
    }
}
