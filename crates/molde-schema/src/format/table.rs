//! The languages of the formats, made ahead of time.
//!
//! They depend on no schema, so `tables.bin` holds what [`Format::build`] makes of each: reading one
//! takes microseconds where determinizing it takes milliseconds. A test compares all of them, and
//! writes the file anew under `UPDATE_FORMAT_TABLES=1`.
//!
//! ```text
//! for each profile, for each of Format::ALL, then for those whose standard language is a subset the
//! outer languages:
//!   bytes of the entry (4), fewest characters (4), most (4, all ones: any number), automaton
//! ```

use crate::dfa::Dfa;
use crate::pattern::Pattern;

use super::{Format, Profile};

const TABLES: &[u8] = include_bytes!("tables.bin");

/// The profiles in the order of the file.
const PROFILES: [Profile; 2] = [Profile::Standard, Profile::Interoperable];

impl Format {
    /// The texts of the format, bounds on their length kept apart from the automaton.
    pub(crate) fn language(self, profile: Profile) -> Pattern {
        let entry = self.entry(profile);
        read(entry, TABLES).expect("a test compares the table with what is built")
    }

    /// A language that has all texts of the format; `None` where the enforced one is exact.
    pub(crate) fn outer(self, profile: Profile) -> Option<Pattern> {
        self.subset(profile)?;
        let with_outer = Self::ALL.iter().filter(|format| format.has_outer());
        let entry = if self.has_outer() {
            let before = with_outer.take_while(|&&format| format != self).count();
            PROFILES.len() * Self::ALL.len() + before
        } else {
            self.entry(Profile::Standard)
        };
        read(entry, TABLES)
    }

    /// Whether not even the standard language has all texts.
    fn has_outer(self) -> bool {
        self.subset(Profile::Standard).is_some()
    }

    /// The index of the entry of a profile.
    fn entry(self, profile: Profile) -> usize {
        let block = PROFILES.iter().take_while(|&&known| known != profile).count();
        block * Self::ALL.len() + Self::ALL.iter().take_while(|&&known| known != self).count()
    }
}

/// The language of the entry of this index.
fn read(entry: usize, tables: &[u8]) -> Option<Pattern> {
    let mut rest = tables;
    for _ in 0..entry {
        rest = rest.split_at_checked(number(rest, 0)? as usize)?.1;
    }
    let (dfa, _) = Dfa::from_table(rest.get(12..)?)?;
    let most = number(rest, 8)?;
    let max_chars = (most != u32::MAX).then_some(u64::from(most));
    Some(Pattern { dfa, min_chars: u64::from(number(rest, 4)?), max_chars })
}

fn number(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dfa::DfaLimits;

    /// What is in the table, in its order.
    fn all_built() -> Vec<Pattern> {
        let limits = DfaLimits::default();
        let mut built = Vec::new();
        for profile in PROFILES {
            built.extend(Format::ALL.map(|format| format.build(profile, &limits).unwrap()));
        }
        let with_outer = Format::ALL.into_iter().filter(|format| format.has_outer());
        built.extend(with_outer.map(|format| format.build_outer(&limits).unwrap()));
        built
    }

    #[test]
    fn the_tables_are_what_the_expressions_of_the_formats_make() {
        let built = all_built();
        let mut tables = Vec::new();
        for pattern in &built {
            let dfa = pattern.dfa.to_table();
            let most = pattern.max_chars.map_or(u32::MAX, |most| most as u32);
            tables.extend((dfa.len() as u32 + 12).to_le_bytes());
            tables.extend((pattern.min_chars as u32).to_le_bytes());
            tables.extend(most.to_le_bytes());
            tables.extend(dfa);
        }
        if std::env::var_os("UPDATE_FORMAT_TABLES").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/tables.bin");
            std::fs::write(path, &tables).unwrap();
        }
        for (entry, pattern) in built.iter().enumerate() {
            assert_eq!(read(entry, &tables).as_ref(), Some(pattern));
        }
        assert!(tables == TABLES, "run this test with UPDATE_FORMAT_TABLES=1 and build again");
    }

    #[test]
    fn an_outer_language_has_every_text_that_is_enforced() {
        let limits = DfaLimits::default();
        for format in Format::ALL {
            let outer = format.build_outer(&limits).unwrap();
            let most = outer.max_chars.unwrap_or(u64::MAX);
            for profile in PROFILES {
                let enforced = format.build(profile, &limits).unwrap();
                let beyond = enforced.dfa.difference(&outer.dfa, &limits).unwrap();
                assert!(beyond.is_empty(), "{format:?}");
                assert!(enforced.min_chars >= outer.min_chars, "{format:?}");
                assert!(enforced.max_chars.unwrap_or(u64::MAX) <= most, "{format:?}");
                let expected = format.subset(profile).map(|_| outer.clone());
                assert_eq!(format.outer(profile), expected, "{format:?}");
            }
        }
    }
}
