//! The exponent of a number text: a set of integers, read digit by digit.

/// A set of integers, as sorted ranges with gaps between them. Both ends of a range belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ExponentSet {
    ranges: Vec<(i64, i64)>,
}

impl ExponentSet {
    /// Below every exponent that has at most 18 digits, with room for sums.
    pub(super) const LEAST: i64 = -2_000_000_000_000_000_000;
    /// Above every exponent that has at most 18 digits, with room for sums.
    pub(super) const GREATEST: i64 = 2_000_000_000_000_000_000;

    pub(super) fn range(low: i64, high: i64) -> Self {
        Self { ranges: if low <= high { vec![(low, high)] } else { Vec::new() } }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn without(self, exponent: i64) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        for (low, high) in self.ranges {
            if exponent < low || exponent > high {
                ranges.push((low, high));
                continue;
            }
            if low < exponent {
                ranges.push((low, exponent - 1));
            }
            if exponent < high {
                ranges.push((exponent + 1, high));
            }
        }
        Self { ranges }
    }

    /// The union of any number of sets.
    pub(super) fn union(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<(i64, i64)> = sets.into_iter().flat_map(|set| set.ranges).collect();
        all.sort_unstable();
        let mut ranges: Vec<(i64, i64)> = Vec::with_capacity(all.len());
        for (low, high) in all {
            match ranges.last_mut() {
                Some(last) if low <= last.1 + 1 => last.1 = last.1.max(high),
                _ => ranges.push((low, high)),
            }
        }
        Self { ranges }
    }

    pub(super) fn shifted(mut self, by: i64) -> Self {
        for range in &mut self.ranges {
            *range = (range.0 + by, range.1 + by);
        }
        self
    }

    pub(super) fn negated(self) -> Self {
        Self { ranges: self.ranges.into_iter().rev().map(|(low, high)| (-high, -low)).collect() }
    }

    pub(super) fn clipped(self, low: i64, high: i64) -> Self {
        let ranges = (self.ranges.into_iter())
            .map(|range| (range.0.max(low), range.1.min(high)))
            .filter(|range| range.0 <= range.1)
            .collect();
        Self { ranges }
    }

    /// The least member between two integers.
    fn least_within(&self, low: i64, high: i64) -> Option<i64> {
        let at = self.ranges.partition_point(|range| range.1 < low);
        let least = self.ranges.get(at)?.0.max(low);
        (least <= high).then_some(least)
    }

    fn holds_all_from(&self, exponent: i64, greatest: i64) -> bool {
        self.ranges.last().is_some_and(|last| last.0 <= exponent && last.1 >= greatest)
    }
}

/// How far the exponent of a text has been read, and what it may still become.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ExponentState {
    /// After `e`: a member of the set, whatever its sign.
    Mark(ExponentSet),
    /// After `e+` or `e-`: a member of the set, which has been negated for `-`.
    Sign(ExponentSet),
    /// Among the digits.
    Digits {
        /// Digits read, leading zeros included.
        count: u32,
        /// Their value.
        value: i64,
        /// What the whole has to be a member of.
        set: ExponentSet,
    },
}

impl ExponentState {
    /// After `e`, or `None` if no exponent of at most `max_digits` digits is in the set.
    pub(super) fn mark(set: ExponentSet, max_digits: u32) -> Option<Self> {
        let greatest = 10i64.pow(max_digits) - 1;
        let set = set.clipped(-greatest, greatest);
        (!set.is_empty()).then_some(Self::Mark(set))
    }

    /// The state after one more byte, if a member of the set can still be reached.
    pub(super) fn step(&self, byte: u8, max_digits: u32) -> Option<Self> {
        let greatest = 10i64.pow(max_digits) - 1;
        match (self, byte) {
            (Self::Mark(set), b'+' | b'-') => {
                let set = set.clone();
                let set = if byte == b'-' { set.negated() } else { set };
                let set = set.clipped(0, greatest);
                (!set.is_empty()).then_some(Self::Sign(set))
            }
            (Self::Mark(set), b'0'..=b'9') => Self::digits(
                1,
                i64::from(byte - b'0'),
                &set.clone().clipped(0, greatest),
                max_digits,
            ),
            (Self::Sign(set), b'0'..=b'9') => {
                Self::digits(1, i64::from(byte - b'0'), set, max_digits)
            }
            (Self::Digits { count, value, set }, b'0'..=b'9') if *count < max_digits => {
                Self::digits(count + 1, value * 10 + i64::from(byte - b'0'), set, max_digits)
            }
            _ => None,
        }
    }

    fn digits(count: u32, value: i64, set: &ExponentSet, max_digits: u32) -> Option<Self> {
        let greatest = 10i64.pow(max_digits) - 1;
        if value > 0 && set.holds_all_from(value, greatest) {
            // Every continuation is a member: which number it was makes no difference.
            return Some(Self::Digits { count, value: 1, set: ExponentSet::range(1, greatest) });
        }
        let state = Self::Digits { count, value, set: set.clone() };
        state.completion(max_digits).is_some().then_some(state)
    }

    /// A shortest continuation to a member, if there is one.
    pub(super) fn completion(&self, max_digits: u32) -> Option<Vec<u8>> {
        let greatest = 10i64.pow(max_digits) - 1;
        let text = match self {
            Self::Sign(set) => set.least_within(0, greatest)?.to_string(),
            Self::Mark(set) => {
                let positive = set.least_within(0, greatest);
                let negative = set.clone().negated().least_within(1, greatest);
                let positive = positive.map(|exponent| exponent.to_string());
                let negative = negative.map(|exponent| format!("-{exponent}"));
                [positive, negative].into_iter().flatten().min_by_key(String::len)?
            }
            Self::Digits { count, value, set } => {
                let (mut low, mut high, mut more) = (*value, *value, 0);
                loop {
                    if let Some(found) = set.least_within(low, high) {
                        if more == 0 {
                            return Some(Vec::new());
                        }
                        break format!("{:0>more$}", found - low);
                    }
                    if count + more as u32 >= max_digits {
                        return None;
                    }
                    (low, high, more) = (low * 10, high * 10 + 9, more + 1);
                }
            }
        };
        Some(text.into_bytes())
    }

    #[cfg(test)]
    /// Bytes held on the heap.
    pub(super) fn memory_usage(&self) -> usize {
        let (Self::Mark(set) | Self::Sign(set) | Self::Digits { set, .. }) = self;
        set.ranges.capacity() * size_of::<(i64, i64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All exponent texts of up to `length` bytes that the state lets through.
    fn texts(state: &ExponentState, prefix: &str, length: usize, found: &mut Vec<String>) {
        if state.completion(3).is_some_and(|text| text.is_empty()) {
            found.push(prefix.to_owned());
        }
        if prefix.len() == length {
            return;
        }
        for byte in b"+-0123456789" {
            if let Some(next) = state.step(*byte, 3) {
                assert!(next.completion(3).is_some());
                texts(&next, &format!("{prefix}{}", *byte as char), length, found);
            }
        }
    }

    #[test]
    fn the_texts_read_are_the_spellings_of_the_members() {
        let sets = [
            ExponentSet::range(-3, 12),
            ExponentSet::range(7, 7),
            ExponentSet::range(ExponentSet::LEAST, -5),
            ExponentSet::range(120, ExponentSet::GREATEST),
            ExponentSet::range(-20, 20).without(0).without(-20).without(13),
            ExponentSet::union([ExponentSet::range(5, 9), ExponentSet::range(100, 101)]),
            ExponentSet::union([ExponentSet::range(-2, -1), ExponentSet::range(0, 1)]).shifted(40),
        ];
        for set in sets {
            let mut expected = Vec::new();
            for sign in ["", "+", "-"] {
                for width in 1..=3 {
                    for magnitude in 0..10i64.pow(width as u32) {
                        let value = if sign == "-" { -magnitude } else { magnitude };
                        if set.ranges.iter().any(|range| (range.0..=range.1).contains(&value)) {
                            expected.push(format!("{sign}{magnitude:0>width$}"));
                        }
                    }
                }
            }
            let state = ExponentState::mark(set.clone(), 3).expect("not empty");
            let mut found = Vec::new();
            texts(&state, "", 4, &mut found);
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{set:?}");
            let shortest = expected.iter().map(String::len).min();
            assert_eq!(state.completion(3).map(|text| text.len()), shortest);
        }
        assert_eq!(ExponentState::mark(ExponentSet::range(1000, 2000), 3), None);
    }
}
