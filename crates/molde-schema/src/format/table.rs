//! The languages of the formats, made ahead of time.
//!
//! They depend on no schema, so `tables.bin` holds what [`Format::build`] makes of each: reading one
//! takes microseconds where determinizing it takes milliseconds. A test compares all of them, and
//! writes the file anew under `UPDATE_FORMAT_TABLES=1`.
//!
//! ```text
//! for each profile, for each of Format::ALL:
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
        self.read(profile, TABLES).expect("a test compares the table with what is built")
    }

    fn read(self, profile: Profile, tables: &[u8]) -> Option<Pattern> {
        let profile = PROFILES.iter().position(|&known| known == profile)?;
        let format = Self::ALL.iter().position(|&known| known == self)?;
        let mut rest = tables;
        for _ in 0..profile * Self::ALL.len() + format {
            rest = rest.split_at_checked(number(rest, 0)? as usize)?.1;
        }
        let (dfa, _) = Dfa::from_table(rest.get(12..)?)?;
        let most = number(rest, 8)?;
        let max_chars = (most != u32::MAX).then_some(u64::from(most));
        Some(Pattern { dfa, min_chars: u64::from(number(rest, 4)?), max_chars })
    }
}

fn number(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dfa::DfaLimits;

    #[test]
    fn the_tables_are_what_the_expressions_of_the_formats_make() {
        let mut tables = Vec::new();
        for profile in PROFILES {
            for format in Format::ALL {
                let built = format.build(profile, &DfaLimits::default()).unwrap();
                let dfa = built.dfa.to_table();
                let most = built.max_chars.map_or(u32::MAX, |most| most as u32);
                tables.extend((dfa.len() as u32 + 12).to_le_bytes());
                tables.extend((built.min_chars as u32).to_le_bytes());
                tables.extend(most.to_le_bytes());
                tables.extend(dfa);
            }
        }
        if std::env::var_os("UPDATE_FORMAT_TABLES").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/format/tables.bin");
            std::fs::write(path, &tables).unwrap();
        }
        for profile in PROFILES {
            for format in Format::ALL {
                let built = format.build(profile, &DfaLimits::default()).unwrap();
                assert_eq!(format.read(profile, &tables).as_ref(), Some(&built));
            }
        }
        assert!(tables == TABLES, "run this test with UPDATE_FORMAT_TABLES=1 and build again");
    }
}
