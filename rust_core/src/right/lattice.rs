//! The lattice over R: a node for each place that R can go on at, with the Earley set of the parses that come there.

use crate::grammar::compiled::Grammar;
use crate::ids::{ChunkId, DotId, FreeId, LinkId, ModeId, NodeId, OriginId, PartId, PredictionId, SymbolId};
use crate::language::free::Cost;
use crate::lexing::layout::Column;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What is on top of the indentation stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Top {
    /// This column.
    Exact(Column),
    /// Some column right of the next line's.
    Above,
    /// Some column right of the next line's that the indentation cut by the cursor can have (an index of entries).
    AboveEntry(u16),
    /// Nothing is known (in the first, partial line).
    Unknown,
}

/// What a node stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// A symbol at a byte of R, in a line whose column is `line`.
    Middle {
        /// Byte offset in R.
        position: u32,
        /// The line's own column, as far as it is known.
        line: Top,
    },
    /// The first symbol of a line at column `column`, with another column on top of the stack.
    Line {
        /// Byte offset in R.
        position: u32,
        /// The line's own column.
        column: Column,
        /// What is on top of the stack.
        top: Top,
    },
    /// A symbol of code inside a field of a formatted string, or whatever else stands between lexemes of another mode. Line
    /// breaks do not count there, and nothing is assumed of what comes after: the parser sees to it.
    Nested {
        /// Byte offset in R.
        position: u32,
    },
    /// A symbol of a mode that reads no code.
    Text {
        /// Byte offset in R.
        position: u32,
        /// The mode.
        mode: ModeId,
    },
    /// The end of the file, all blocks closed.
    End,
}

impl Place {
    /// The byte offset in R; none for the end of the file.
    #[must_use]
    pub(crate) fn position(self) -> Option<u32> {
        match self {
            Self::Middle { position, .. }
            | Self::Line { position, .. }
            | Self::Nested { position }
            | Self::Text { position, .. } => Some(position),
            Self::End => None,
        }
    }

    fn names_column(self) -> bool {
        matches!(self, Self::Line { .. } | Self::Middle { line: Top::Exact(_), .. })
    }

    /// Whether it is inside of a literal that holds code.
    #[must_use]
    pub(super) fn is_in_literal(self) -> bool {
        matches!(self, Self::Nested { .. } | Self::Text { .. })
    }
}

/// Where an item's rule began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// At a node.
    Node(NodeId),
    /// In the middle.
    Free(FreeId),
}

/// The place where a rule began, as far as what ends it has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Begun {
    /// In a line that no literal holds.
    Line(Top),
    /// Elsewhere in R.
    Elsewhere,
}

impl Place {
    /// What is kept of it as the place where a rule began.
    pub(super) fn begun(self) -> Begun {
        match self {
            Self::Middle { line, .. } => Begun::Line(line),
            _ => Begun::Elsewhere,
        }
    }
}

/// Which of the items that have a symbol next are read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Taken {
    /// All.
    All,
    /// Those after which a lexeme of one of some modes can come.
    Modes(u64),
    /// Those after which code goes on, of rules begun in a line with this column, or in the middle where it is unknown.
    EndsIn(Top),
    /// Those after which code goes on, of rules begun elsewhere than in a line.
    EndsNested,
}

impl Taken {
    /// Whether an item is taken, with its dot moved, whose rule began at a place (none in the middle).
    pub(super) fn takes(self, grammar: &Grammar, dot: DotId, begun: Option<Begun>) -> bool {
        let modes = grammar.modes_after(dot);
        let goes_on = modes & grammar.code_modes() != 0;
        match self {
            Self::All => true,
            Self::Modes(wanted) => modes & wanted != 0,
            Self::EndsIn(line) => goes_on && begun.map_or(line == Top::Unknown, |begun| begun == Begun::Line(line)),
            Self::EndsNested => goes_on && !matches!(begun, Some(Begun::Line(_))),
        }
    }
}

/// Where an item's rule began, with the columns of its block where it has read an INDENT: (below, block's own).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) base: Base,
    pub(super) block: Option<(Column, Column)>,
}

/// Something with what is to be added to its costs.
pub(super) type At<T> = (T, Cost);

/// A run of entries of one of the lattice's lists.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    begin: u32,
    length: u32,
}

impl Run {
    pub(super) fn of<T>(self, entries: &[T]) -> &[T] {
        &entries[self.begin as usize..(self.begin + self.length) as usize]
    }

    /// Appends entries to a list.
    pub(super) fn append<T>(entries: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Self {
        let begin = entries.len();
        entries.extend(more);
        let length = u32::try_from(entries.len() - begin).expect("a set fits u32");
        Self { begin: u32::try_from(begin).expect("a chart fits u32"), length }
    }
}

/// A node of the lattice with its Earley set.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it stands.
    pub place: Place,
    /// The last of the edges that lead here, plus one.
    edges: u32,
    /// The node made before this one at the same position, plus one.
    beside: u32,
    /// Items of rules that began in R, by the symbol after the dot.
    pub(super) items: Run,
    /// What else began in R: the dots that a link has moved, with the node where they all began.
    pub(super) links: Run,
    /// Completed nonterminals that end here, as far as anything can ask for them.
    pub(super) completed: Run,
    /// The free parts, with what is to be added to their costs.
    pub(super) parts: Run,
    pub(super) prediction: PredictionId,
    pub(super) processed: bool,
    /// The file may begin here: nothing but blank lines stands before the cursor.
    pub(super) first: bool,
    /// The cursor may fall here.
    pub(super) crossed: bool,
    /// Some parse comes here.
    pub(super) alive: bool,
}

/// A completed nonterminal, or all that a link finishes, with where they began.
#[derive(Clone, Copy, Debug)]
pub(super) enum Completed {
    One(SymbolId, NodeId),
    Link(LinkId, NodeId),
}

/// What is to be read into a set that is not completed yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) items: Vec<(DotId, OriginId)>,
    pub(super) chunks: Vec<At<ChunkId>>,
    /// Symbols that move all predicted dots of a node that have them next.
    pub(super) symbols: Vec<(SymbolId, NodeId)>,
}

/// Origins by number, those that are more than a node each with the least bytes of middle that what precedes its items costs.
#[derive(Debug, Default)]
pub(super) struct Origins {
    table: Vec<(Origin, Cost)>,
    ids: FxHashMap<Origin, OriginId>,
}

/// Numbers from here on are those of nodes.
const NODES: u32 = 1 << 31;

impl Origins {
    /// Interns an origin; of several costs the least counts.
    pub(super) fn intern(&mut self, origin: Origin, cost: Cost) -> OriginId {
        if let Origin { base: Base::Node(node), block: None } = origin {
            return Self::at_node(node);
        }
        if let Some(&id) = self.ids.get(&origin) {
            let known = &mut self.table[id.index()].1;
            *known = cost.min(*known);
            return id;
        }
        let id = OriginId::from_index(self.table.len());
        self.table.push((origin, cost));
        self.ids.insert(origin, id);
        id
    }

    /// The origin of what begins at a node itself.
    #[inline]
    pub(super) fn at_node(node: NodeId) -> OriginId {
        OriginId(NODES | node.0)
    }

    #[inline]
    pub(super) fn get(&self, id: OriginId) -> Origin {
        if id.0 >= NODES {
            return Origin { base: Base::Node(NodeId(id.0 ^ NODES)), block: None };
        }
        self.table[id.index()].0
    }

    pub(super) fn cost(&self, id: OriginId) -> Cost {
        if id.0 >= NODES { 0 } else { self.table[id.index()].1 }
    }
}

/// An edge, and the one to the same node that was read before it (plus one).
#[derive(Debug)]
struct Edge {
    symbol: SymbolId,
    from: NodeId,
    before: u32,
}

/// The nodes, by their places.
#[derive(Debug)]
pub(super) struct Lattice {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    pending: FxHashMap<NodeId, Pending>,
    /// The runs of all nodes.
    pub(super) items: Vec<(DotId, OriginId)>,
    pub(super) links: Vec<(LinkId, NodeId)>,
    pub(super) completed: Vec<Completed>,
    pub(super) parts: Vec<At<PartId>>,
    /// Per position, and after them for the end of the file: the last node made there that names no column, plus one.
    last_at: Vec<u32>,
    /// The nodes that name a column, which may be many at one position.
    of_columns: FxHashMap<Place, NodeId>,
    /// Nodes whose sets are to be completed, in the order in which that is done.
    queue: BTreeMap<(u32, u64), NodeId>,
    /// The length of R.
    end: u32,
    /// How much all sets held while the chart was made: items, links, parts and what was completed.
    pub(super) entries: usize,
}

impl Lattice {
    pub(super) fn new(end: usize) -> Self {
        Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            pending: FxHashMap::default(),
            items: Vec::new(),
            links: Vec::new(),
            completed: Vec::new(),
            parts: Vec::new(),
            last_at: vec![0; end + 2],
            of_columns: FxHashMap::default(),
            queue: BTreeMap::new(),
            end: u32::try_from(end).expect("R fits u32"),
            entries: 0,
        }
    }

    #[inline]
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node of a place, if some parse comes there.
    pub(super) fn get(&self, place: Place) -> Option<NodeId> {
        if place.names_column() {
            return self.of_columns.get(&place).copied();
        }
        let mut at = self.last_at[self.position(place)];
        while let Some(index) = at.checked_sub(1) {
            let node = &self.nodes[index as usize];
            if node.place == place {
                return Some(NodeId(index));
            }
            at = node.beside;
        }
        None
    }

    /// The free parts of a node.
    #[inline]
    pub(super) fn parts(&self, id: NodeId) -> &[At<PartId>] {
        self.nodes[id.index()].parts.of(&self.parts)
    }

    /// What is to be read into the set of a node.
    pub(super) fn pending(&mut self, id: NodeId) -> &mut Pending {
        self.pending.entry(id).or_default()
    }

    /// The same, for good.
    pub(super) fn take_pending(&mut self, id: NodeId) -> Pending {
        self.pending.remove(&id).unwrap_or_default()
    }

    /// Adds an edge.
    pub(super) fn connect(&mut self, symbol: SymbolId, from: NodeId, to: NodeId) {
        let before = self.nodes[to.index()].edges;
        self.edges.push(Edge { symbol, from, before });
        self.nodes[to.index()].edges = u32::try_from(self.edges.len()).expect("edges fit u32");
    }

    /// Symbols that lead to a node, with the nodes they come from.
    pub(super) fn incoming(&self, id: NodeId) -> impl Iterator<Item = (SymbolId, NodeId)> + '_ {
        let mut at = self.nodes[id.index()].edges;
        std::iter::from_fn(move || {
            let edge = self.edges.get(at.checked_sub(1)? as usize)?;
            at = edge.before;
            Some((edge.symbol, edge.from))
        })
    }

    /// Forgets what only the making of the chart needs.
    pub(super) fn settle(&mut self) {
        for node in &mut self.nodes {
            (node.items, node.links) = (Run::default(), Run::default());
        }
        self.items = Vec::new();
        self.links = Vec::new();
        self.pending = FxHashMap::default();
        self.queue = BTreeMap::new();
        self.nodes.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.completed.shrink_to_fit();
        self.parts.shrink_to_fit();
    }

    /// The next node whose set is to be completed: every edge to it has been read.
    pub(super) fn pop(&mut self) -> Option<NodeId> {
        self.queue.pop_first().map(|(_, id)| id)
    }

    /// The node of a place.
    pub(super) fn intern(&mut self, place: Place) -> NodeId {
        if let Some(id) = self.get(place) {
            return id;
        }
        let id = NodeId::from_index(self.nodes.len());
        let beside = if place.names_column() {
            self.of_columns.insert(place, id);
            0
        } else {
            let position = self.position(place);
            std::mem::replace(&mut self.last_at[position], id.0 + 1)
        };
        self.nodes.push(Node {
            place,
            edges: 0,
            beside,
            items: Run::default(),
            links: Run::default(),
            completed: Run::default(),
            parts: Run::default(),
            prediction: PredictionId(0),
            processed: false,
            first: false,
            crossed: false,
            alive: false,
        });
        self.queue.insert((self.order(place), u64::from(id.0) | rank(place) << 32), id);
        id
    }

    fn position(&self, place: Place) -> usize {
        place.position().unwrap_or(self.end + 1) as usize
    }

    /// Nodes are processed from left to right; every edge leads to a later key.
    fn order(&self, place: Place) -> u32 {
        match place {
            Place::Middle { position, .. } | Place::Nested { position } | Place::Text { position, .. } => {
                position * 2 + 1
            }
            Place::Line { position, .. } if position == self.end => self.end * 2 + 2,
            Place::Line { position, .. } => position * 2,
            Place::End => self.end * 2 + 3,
        }
    }
}

/// Among the nodes before one line: what closes more blocks comes first.
fn rank(place: Place) -> u64 {
    match place {
        Place::Line { top: Top::AboveEntry(_), .. } => 0,
        Place::Line { top: Top::Above, .. } => 1,
        Place::Line { top: Top::Exact(column), .. } => u64::from(u32::MAX - 1 - column.wide.min(u32::MAX - 3)),
        _ => u64::from(u32::MAX),
    }
}
