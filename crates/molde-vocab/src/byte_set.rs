//! A set of bytes.

/// A set of bytes, as a bitset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// No byte.
    pub const EMPTY: Self = Self([0; 4]);
    /// Every byte.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// The set in which byte `b` is bit `b % 64` of word `b / 64`.
    pub const fn from_words(words: [u64; 4]) -> Self {
        Self(words)
    }

    /// Adds a byte.
    #[inline]
    pub const fn insert(&mut self, byte: u8) {
        self.0[byte as usize / 64] |= 1 << (byte % 64);
    }

    /// Adds the bytes of `first..=last`.
    pub fn insert_range(&mut self, first: u8, last: u8) {
        for (index, word) in self.0.iter_mut().enumerate() {
            let base = index * 64;
            let low = (first as usize).max(base);
            let high = (last as usize).min(base + 63);
            if low <= high {
                *word |= (u64::MAX >> (63 - (high - low))) << (low - base);
            }
        }
    }

    /// Adds the bytes of another set.
    pub fn union(&mut self, other: Self) {
        for (word, other) in self.0.iter_mut().zip(other.0) {
            *word |= other;
        }
    }

    /// Whether the byte is in the set.
    #[inline]
    pub const fn contains(&self, byte: u8) -> bool {
        self.0[byte as usize / 64] >> (byte % 64) & 1 == 1
    }

    /// Number of bytes in the set.
    pub const fn len(&self) -> u32 {
        self.0[0].count_ones()
            + self.0[1].count_ones()
            + self.0[2].count_ones()
            + self.0[3].count_ones()
    }

    /// Whether no byte is in the set.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + use<> {
        let mut words = self.0;
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < words.len() {
                let word = words[at];
                if word != 0 {
                    words[at] &= word - 1;
                    return Some((at * 64) as u8 + word.trailing_zeros() as u8);
                }
                at += 1;
            }
            None
        })
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::EMPTY;
        bytes.into_iter().for_each(|byte| set.insert(byte));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_the_bytes_between_their_ends() {
        for first in 0..=255 {
            for last in [0, 1, 62, 63, 64, 65, 127, 128, 191, 192, 254, 255] {
                let mut set = ByteSet::EMPTY;
                set.insert_range(first, last);
                let expected: Vec<u8> = (first..=last).collect();
                assert_eq!(set.iter().collect::<Vec<_>>(), expected);
                assert_eq!(set.len() as usize, expected.len());
                assert_eq!(set, expected.into_iter().collect());
            }
        }
    }
}
