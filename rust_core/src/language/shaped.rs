//! Lexer beside a shape: the accept sets that a symbol in progress can still become if the middle must keep its shape.

use crate::bits::{self, words_for};
use crate::components::components;
use crate::ids::{AcceptId, GuardId, ShapeId, StateId};
use crate::language::shape::Shape;
use crate::lexing::guards::{Guards, NO_GUARDS};
use crate::lexing::lexer::{DEAD, Lexer};
use crate::lexing::product::walk_beside;
use crate::stop::poll;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The place of a pair that does not occur.
const NONE: u32 = u32::MAX;

/// Product of a lexer and a shape: each pair of their states that occurs while a middle is written. Pairs follow a
/// boundary between symbols, or the symbol that L leaves in progress. A mask that is walked for one place of the shape
/// asks about other pairs as well, which soon lead to these or nowhere.
#[derive(Debug)]
pub(crate) struct ShapedLexer {
    lexer: Arc<Lexer>,
    shape: Arc<Shape>,
    /// The pairs that occur.
    pairs: Vec<(StateId, ShapeId)>,
    /// The index of each pair, [`NONE`] for the others.
    place_of: Vec<u32>,
    /// Successors of a pair, each once: `targets[first[pair]..first[pair + 1]]`.
    first: Vec<u32>,
    targets: Vec<u32>,
    /// The strongly connected components of pairs, each before those that it leads to, and the component of each pair.
    components: Vec<Vec<usize>>,
    component_of: Vec<usize>,
    /// Per pair: bitset of the accept sets that the symbol can end as, each at a place of the shape.
    ends: Reach,
    /// One byte of each class that the lexer and the shape do not distinguish.
    bytes: Vec<u8>,
    /// The class of each byte: the place of its own one among them.
    classes: [u8; 256],
    /// True if some text of the shape has each byte.
    takes: [bool; 256],
}

/// Numbers reachable from each component of pairs, as interned bitsets.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    width: usize,
    rows: Vec<u64>,
    row_of: Vec<u32>,
}

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
            pairs: Vec::new(),
            place_of: vec![NONE; shape.states().len() * lexer.state_count()],
            first: Vec::new(),
            targets: Vec::new(),
            components: Vec::new(),
            component_of: Vec::new(),
            ends: Reach::default(),
            bytes,
            classes,
            takes: std::array::from_fn(|byte| {
                shape.states().any(|state| shape.step(state, u8::try_from(byte).expect("256 bytes")).is_some())
            }),
        };
        product.link();
        let bound = lexer.accept_set_count() * shape.boundaries().len();
        product.ends = product.reach(bound, |state, inside| product.end(state, inside));
        product
    }

    /// The number of the accept set and place at which a symbol ends in a pair.
    fn end(&self, state: StateId, inside: ShapeId) -> Option<usize> {
        let place = self.shape.place(inside).filter(|_| self.lexer.accepts(state))?;
        Some(self.lexer.accept(state).index() * self.shape.boundaries().len() + place)
    }

    /// The class of a byte. The lexer and the shape do not distinguish bytes of one class.
    pub(crate) fn class_of(&self, byte: u8) -> u8 {
        self.classes[byte as usize]
    }

    /// Return whether some text of the shape has a byte.
    pub(crate) fn takes(&self, byte: u8) -> bool {
        self.takes[byte as usize]
    }

    /// Find the pairs that occur, their successors and their components.
    fn link(&mut self) {
        let (lexer, shape) = (self.lexer.clone(), self.shape.clone());
        // The bytes that the shape goes on with from each of its states, and where to.
        let ways: Vec<Vec<(u8, ShapeId)>> = shape
            .states()
            .map(|inside| self.bytes.iter().filter_map(|&byte| Some((byte, shape.step(inside, byte)?))).collect())
            .collect();
        for start in lexer.starts() {
            shape.boundaries().iter().for_each(|&inside| _ = self.place(start, inside));
        }
        for state in (1..lexer.state_count()).map(StateId::from_index) {
            self.place(state, shape.first());
        }
        // The last pair that each one was found to follow.
        let mut follows: Vec<u32> = Vec::new();
        while self.first.len() < self.pairs.len() {
            poll();
            let own = u32::try_from(self.first.len()).expect("pair count fits u32");
            let (state, inside) = self.pairs[self.first.len()];
            self.first.push(u32::try_from(self.targets.len()).expect("edge count fits u32"));
            for &(byte, to) in &ways[inside.index()] {
                let target = lexer.step(state, byte);
                if target == DEAD {
                    continue;
                }
                let place = self.place(target, to);
                follows.resize(self.pairs.len(), NONE);
                if std::mem::replace(&mut follows[place as usize], own) != own {
                    self.targets.push(place);
                }
            }
        }
        self.first.push(u32::try_from(self.targets.len()).expect("edge count fits u32"));
        let successor = |pair: usize, nth: usize| self.successors(pair).get(nth).map(|&target| target as usize);
        (self.components, self.component_of) = components(self.pairs.len(), successor);
    }

    fn index(&self, state: StateId, inside: ShapeId) -> usize {
        inside.index() * self.lexer.state_count() + state.index()
    }

    /// The place of a pair, which comes up from now on.
    fn place(&mut self, state: StateId, inside: ShapeId) -> u32 {
        let index = self.index(state, inside);
        if self.place_of[index] == NONE {
            self.place_of[index] = u32::try_from(self.pairs.len()).expect("pair count fits u32");
            self.pairs.push((state, inside));
        }
        self.place_of[index]
    }

    fn successors(&self, pair: usize) -> &[u32] {
        &self.targets[self.first[pair] as usize..self.first[pair + 1] as usize]
    }

    /// Numbers that each pair can reach by zero or more bytes. `own` gives the number, below `bound`, of a pair itself.
    pub(crate) fn reach(&self, bound: usize, own: impl Fn(StateId, ShapeId) -> Option<usize>) -> Reach {
        let width = words_for::<u64>(bound);
        let mut reach = Reach { width, rows: Vec::new(), row_of: vec![NONE; self.components.len()] };
        let mut ids: FxHashMap<Box<[u64]>, u32> = FxHashMap::default();
        let mut from: Vec<u32> = Vec::new();
        let mut row = vec![0u64; width];
        for (place, component) in self.components.iter().enumerate().rev() {
            poll();
            let targets = component.iter().flat_map(|&pair| self.successors(pair));
            from.clear();
            from.extend(
                targets.map(|&target| reach.row_of[self.component_of[target as usize]]).filter(|&row| row != NONE),
            );
            from.sort_unstable();
            from.dedup();
            let mut brought =
                component.iter().filter_map(|&pair| own(self.pairs[pair].0, self.pairs[pair].1)).peekable();
            if brought.peek().is_none() && from.len() < 2 {
                reach.row_of[place] = from.first().copied().unwrap_or(NONE);
                continue;
            }
            row.fill(0);
            from.iter().for_each(|&other| bits::unite(&mut row, reach.row(other)));
            brought.for_each(|number| bits::insert(&mut row, number));
            reach.row_of[place] = match ids.get(&row[..]) {
                Some(&id) => id,
                None => {
                    let id = u32::try_from(ids.len()).expect("no more rows than pairs");
                    ids.insert(row.clone().into(), id);
                    reach.rows.extend_from_slice(&row);
                    id
                }
            };
        }
        reach
    }

    /// Accept sets as which a symbol in progress can end in the middle, each with the place of the shape where it ends.
    pub(crate) fn ends(&self, state: StateId, inside: ShapeId) -> Vec<(AcceptId, usize)> {
        let places = self.shape.boundaries().len();
        let ends = self.reached(&self.ends, |state, inside| self.end(state, inside), (state, inside)).into_iter();
        ends.map(|end| (AcceptId::from_index(end / places), end % places)).collect()
    }

    /// The numbers that are reachable from a pair, ascending; `own` as in [`ShapedLexer::reach`].
    pub(crate) fn reached(
        &self,
        reach: &Reach,
        own: impl Fn(StateId, ShapeId) -> Option<usize>,
        from: (StateId, ShapeId),
    ) -> Vec<usize> {
        let row = |(state, inside)| {
            let pair = self.place_of[self.index(state, inside)];
            (pair != NONE).then(|| reach.row(reach.row_of[self.component_of[pair as usize]]))
        };
        if let Some(row) = row(from) {
            return bits::numbers(row).collect();
        }
        let mut seen: FxHashSet<(StateId, ShapeId)> = std::iter::once(from).collect();
        let mut stack = vec![from];
        let mut found = vec![0u64; reach.width];
        while let Some((state, inside)) = stack.pop() {
            if let Some(row) = row((state, inside)) {
                bits::unite(&mut found, row);
                continue;
            }
            own(state, inside).into_iter().for_each(|number| bits::insert(&mut found, number));
            for &byte in &self.bytes {
                let target = self.lexer.step(state, byte);
                if let (true, Some(to)) = (target != DEAD, self.shape.step(inside, byte)) {
                    stack.extend(seen.insert((target, to)).then_some((target, to)));
                }
            }
        }
        bits::numbers(&found).collect()
    }

    /// Configurations that a symbol in progress with guards can reach, until no guard is left.
    pub(crate) fn beside(
        &self,
        guards: &mut Guards,
        from: (StateId, GuardId, ShapeId),
    ) -> Vec<(StateId, GuardId, ShapeId)> {
        let step = |inside, byte| self.shape.step(inside, byte);
        let found = walk_beside(&self.lexer, guards, &self.bytes, from, step, |guards| guards != NO_GUARDS);
        found.into_iter().map(|at| (at.state, at.guards, at.along)).collect()
    }

    /// Walk from a boundary between symbols, in every mode, nearest first. `found` gets each configuration and the
    /// least bytes to it.
    pub(crate) fn walk(&self, from: ShapeId, seen: &mut Walked, mut found: impl FnMut(StateId, ShapeId, u32)) {
        seen.walk += 1;
        seen.by.resize(self.pairs.len(), 0);
        let mut layer: Vec<u32> = self.lexer.starts().map(|start| self.place_of[self.index(start, from)]).collect();
        let mut following = Vec::new();
        let mut bytes = 0;
        while !layer.is_empty() {
            bytes += 1;
            poll();
            for &pair in &layer {
                for &target in self.successors(pair as usize) {
                    if std::mem::replace(&mut seen.by[target as usize], seen.walk) != seen.walk {
                        let (state, inside) = self.pairs[target as usize];
                        following.push(target);
                        found(state, inside, bytes);
                    }
                }
            }
            std::mem::swap(&mut layer, &mut following);
            following.clear();
        }
    }
}

/// Pairs of a product that the last walk has reached.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    walk: u32,
    by: Vec<u32>,
}

impl Reach {
    /// One of the rows; [`NONE`] is the empty row.
    fn row(&self, row: u32) -> &[u64] {
        if row == NONE { &[] } else { &self.rows[row as usize * self.width..(row as usize + 1) * self.width] }
    }
}

#[cfg(test)]
impl ShapedLexer {
    /// Number of pairs that occur.
    pub(crate) fn pair_count(&self) -> usize {
        self.pairs.len()
    }
}
