//! An automaton as bytes, for those that are made ahead of time.
//!
//! ```text
//! states (4 bytes, without the dead one)    then for each state
//!   accepts << 15 | transitions (2 bytes)   then for each transition  lo, hi, target (3 bytes)
//! ```

use super::{Dfa, RawDfa};

/// A run of bytes that is read from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self, bytes: usize) -> Option<u32> {
        let (number, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(number.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }
}

impl Dfa {
    /// The automaton as bytes.
    #[cfg(test)]
    pub(crate) fn to_table(&self) -> Vec<u8> {
        let mut table = (self.states() as u32 - 1).to_le_bytes().to_vec();
        for state in 1..self.states() as u32 {
            let transitions = self.transitions(state);
            let head = u16::from(self.is_accepting(state)) << 15 | transitions.len() as u16;
            table.extend(head.to_le_bytes());
            for transition in transitions {
                table.extend([transition.lo, transition.hi]);
                table.extend(&transition.target.to_le_bytes()[..3]);
            }
        }
        table
    }

    /// The automaton that [`to_table`](Self::to_table) wrote at the front of `table`, and what is
    /// after it; `None` if the table is cut short.
    ///
    /// # Complexity
    /// O(length): nothing is determinized or minimized.
    pub(crate) fn from_table(table: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader(table);
        let states = reader.number(4)?;
        let mut raw = RawDfa::new();
        for _ in 0..states {
            let head = reader.number(2)?;
            raw.accepting.push(head >> 15 == 1);
            raw.offsets.push(raw.transitions.len() as u32);
            for _ in 0..head & 0x7FFF {
                let (lo, hi) = (reader.number(1)?, reader.number(1)?);
                raw.push_transition(lo as u8, hi as u8, reader.number(3)?);
            }
        }
        Some((Self::from_canonical(raw), reader.0))
    }
}
