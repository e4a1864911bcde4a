//! Which keywords forbid a token.

use std::sync::Arc;

use molde_constraint::{Explanation, Matcher, MatcherOptions, SchemaConstraint, Segmentation};
use molde_schema::{CompileOptions, CompiledSchema};
use molde_vocab::TokenEntry::{Control, Text};
use molde_vocab::{TokenConstraint, TokenId, Vocabulary};

use crate::schemas::{SCHEMAS, vocabulary};
use crate::walk::Random;

const LESSON: &str = r#"{"type": "object", "additionalProperties": false,
    "properties": {"trimestre": {"anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]}},
    "required": ["trimestre"]}"#;

fn matcher(schema: &str, vocabulary: &Arc<Vocabulary>) -> Matcher<SchemaConstraint> {
    let schema = CompiledSchema::compile(schema, &CompileOptions::default()).unwrap();
    let options = MatcherOptions { segmentation: Segmentation::Any, ..MatcherOptions::default() };
    let constraint = SchemaConstraint::new(&Arc::new(schema));
    Matcher::new(constraint, Arc::clone(vocabulary), options)
}

#[test]
fn the_digits_that_the_lesson_loses_are_removed_by_the_ends_of_the_range() {
    let texts = ["{\"trimestre\": ", "0", "1", "4", "5", "6", "8", "null", "\"", "7}", "}"];
    let entries = texts.map(|text| Text(text.as_bytes().to_vec())).into_iter().chain([Control]);
    let vocabulary = Arc::new(Vocabulary::new(entries, [texts.len() as TokenId], None).unwrap());
    let mut matcher = matcher(LESSON, &vocabulary);
    matcher.accept(0).unwrap();
    let allowed: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
    assert_eq!(allowed, [2, 3, 7]);
    for (token, keyword) in
        [(1, "minimum"), (4, "maximum"), (5, "maximum"), (6, "maximum"), (9, "maximum")]
    {
        let rejection = matcher.reasons(token).unwrap();
        assert_eq!(rejection.offset, 0);
        let [reason] = rejection.reasons.as_slice() else { panic!("{rejection:?}") };
        assert_eq!(reason.location, "/properties/trimestre/anyOf/0");
        assert_eq!((reason.instance.as_str(), reason.keyword.as_str()), ("/trimestre", keyword));
    }
    assert_eq!(matcher.reasons(2), None);
    assert_eq!(matcher.reasons(11), None, "it has no bytes");
    let live = matcher.live_keywords();
    let at = |end: &str| live.iter().filter(|live| live.location.ends_with(end)).count();
    assert_eq!((at("/anyOf/0"), at("/anyOf/1"), at("/trimestre"), live.len()), (3, 1, 1, 9));
    matcher.accept(2).unwrap();
    assert!(matcher.reasons_to_go_on().unwrap().reasons[0].expected.contains("not complete"));
    matcher.accept(10).unwrap();
    assert_eq!(matcher.reasons_to_go_on(), None);
}

#[test]
fn every_token_that_is_rejected_has_a_reason_at_the_same_byte() {
    let vocabulary = vocabulary();
    let mut random = Random(5);
    let mut rejected = 0;
    for schema in SCHEMAS {
        let mut matcher = matcher(schema, &vocabulary);
        for _ in 0..12 {
            for _ in 0..12 {
                let token = random.below(vocabulary.len()) as TokenId;
                let explanation = matcher.explain(token);
                match (explanation, matcher.reasons(token)) {
                    (Explanation::Rejected { byte_offset, .. }, Some(rejection)) => {
                        rejected += 1;
                        assert_eq!(rejection.offset, byte_offset, "{schema} {token}");
                        assert!(!rejection.reasons.is_empty(), "{schema} {token} {rejection:?}");
                    }
                    (Explanation::Undecided { .. }, _)
                    | (
                        Explanation::Allowed | Explanation::NotText | Explanation::NotComplete,
                        None,
                    ) => {}
                    other => panic!("{schema} {token}: {other:?}"),
                }
            }
            let allowed: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            matcher.accept(random.choose(&allowed)).unwrap();
            if matcher.is_finished() {
                matcher.reset();
            }
        }
    }
    assert!(rejected > 500, "{rejected}");
}
