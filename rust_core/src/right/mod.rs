//! The right context: its lattice and the chart over it.

pub(crate) mod chart;
