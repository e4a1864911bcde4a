use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::{NonZeroI8, NonZeroU64};
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fake::{Fake, Policy};
use crate::{Contract, End, MoldeError, rust_type};

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Integers {
    a: i8,
    b: u8,
    c: i16,
    d: u16,
    e: i32,
    f: u32,
    g: i64,
    h: u64,
    i: isize,
    j: usize,
    k: i128,
    l: u128,
    m: NonZeroI8,
    n: NonZeroU64,
    o: Option<NonZeroI8>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Scalars {
    float: f32,
    double: f64,
    character: char,
    text: String,
    flag: Option<bool>,
    nothing: (),
    address: IpAddr,
    maybe: Option<u8>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Containers {
    list: Vec<u8>,
    triple: [i8; 3],
    pair: (u8, Option<char>),
    by_name: BTreeMap<String, i16>,
    by_number: BTreeMap<u8, bool>,
    by_signed: BTreeMap<i8, bool>,
    time: Duration,
    moment: SystemTime,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)]
enum Currency {
    Usd,
    /// With a comment, which makes it a constant of its own.
    Eur,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
enum External {
    Unit,
    Newtype(u8),
    Tuple(i8, bool),
    Struct { a: u16, b: Option<i32> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
#[allow(dead_code)]
enum Internal {
    Unit,
    Struct { a: u64, b: Option<f32> },
    Newtype(Inner),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
#[allow(dead_code)]
enum Adjacent {
    Unit,
    Newtype(i64),
    Struct { x: char },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum Untagged {
    Number(u16),
    Text(char),
    Struct { wide: i64 },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Inner {
    #[serde(alias = "other")]
    name: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Enums {
    currency: Currency,
    external: External,
    internal: Internal,
    adjacent: Adjacent,
    untagged: Untagged,
    outcome: Result<u8, bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Flattened {
    first: u8,
    #[serde(flatten)]
    inner: Inner,
    #[serde(flatten)]
    wide: Wide,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Wide {
    wide: u64,
    #[serde(default)]
    narrow: i8,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Tree {
    value: i8,
    children: Vec<Tree>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Anything {
    any: Value,
    many: Vec<Value>,
}

/// Writes `answers` random answers of type `T`, each of which must be read into it.
fn all_deserialise<T: JsonSchema + DeserializeOwned + Send>(answers: usize, max_tokens: usize) {
    let engine = Fake::engine(Policy::Random(7));
    let name = std::any::type_name::<T>();
    let extractor = match engine.extractor_for::<T>().max_tokens(max_tokens).build() {
        Ok(extractor) => extractor,
        Err(error) => panic!("{name}: {error}"),
    };
    // The derived schema, from which the enforced one may only take away. `oneOf` is left to
    // serde, and formats of numbers are no business of a validator.
    let mut derived = schemars::schema_for!(T).to_value();
    replace_one_of(&mut derived);
    let derived = jsonschema::validator_for(&derived).expect("schemars derives a schema");
    let mut closed = 0;
    for index in 0..answers {
        let outcome = extractor
            .extract("any document")
            .unwrap_or_else(|error| panic!("{name}, answer {index}: {error}"));
        assert!(outcome.value.is_some(), "{name}: a constrained answer is always whole");
        assert_eq!(outcome.undecided, 0, "{name}");
        closed += usize::from(matches!(outcome.end, End::ClosedByBudget { .. }));
        if index % 10 == 0 {
            let value: Value = serde_json::from_str(&outcome.text).expect("the answer is JSON");
            assert!(derived.is_valid(&value), "{name}: {value}");
        }
    }
    assert!(closed < answers || answers == 0, "{name}: some answer ends by itself");
}

fn replace_one_of(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(branches) = map.remove("oneOf") {
                map.insert("anyOf".to_owned(), branches);
            }
            map.values_mut().for_each(replace_one_of);
        }
        Value::Array(items) => items.iter_mut().for_each(replace_one_of),
        _ => {}
    }
}

#[test]
fn random_answers_of_every_integer_type_deserialise() {
    all_deserialise::<Integers>(2000, 900);
}

#[test]
fn random_answers_of_every_scalar_type_deserialise() {
    all_deserialise::<Scalars>(2000, 900);
}

#[test]
fn random_answers_with_containers_deserialise() {
    all_deserialise::<Containers>(1500, 900);
}

#[test]
fn random_answers_with_enums_deserialise() {
    all_deserialise::<Enums>(2400, 600);
}

#[test]
fn random_answers_with_flattened_structs_deserialise() {
    all_deserialise::<Flattened>(1000, 200);
}

#[test]
fn random_answers_of_a_recursive_type_deserialise() {
    all_deserialise::<Tree>(100, 150);
}

#[test]
fn an_answer_of_a_recursive_type_deserialises_at_any_depth() {
    let levels = 300;
    let answer = format!(
        "{}{{\"value\": 0, \"children\": []}}{}",
        "{\"value\": 1, \"children\": [".repeat(levels),
        "]}".repeat(levels)
    );
    let engine = Fake::engine(Policy::Script(answer.clone()));
    let extractor = engine.extractor_for::<Tree>().max_tokens(answer.len()).build().expect("small");
    let outcome = extractor.extract("any document").expect("the answer deserialises");
    assert_eq!((outcome.text.as_str(), &outcome.end), (answer.as_str(), &End::Complete));
    let mut tree = &outcome.value.expect("complete");
    for _ in 0..levels {
        tree = &tree.children[0];
    }
    assert_eq!((tree.value, tree.children.len()), (0, 0));

    let engine = Fake::engine(Policy::Script(answer.clone()));
    let extractor = engine.extractor("true").max_tokens(answer.len()).build().expect("small");
    let value = extractor.extract("any document").expect("any JSON").into_value().expect("whole");
    assert!(value.to_value().expect("JSON")["children"][0]["children"].is_array());
}

#[test]
fn random_answers_with_any_value_deserialise() {
    all_deserialise::<Anything>(500, 300);
    all_deserialise::<Value>(500, 200);
}

fn schema_of<T: JsonSchema>() -> Value {
    let text = rust_type::schema_text::<T>().expect("the type can be narrowed");
    serde_json::from_str(&text).expect("the schema is JSON")
}

#[test]
fn integer_widths_become_bounds() {
    let schema = schema_of::<Integers>();
    let bounds = |name: &str| {
        let property = &schema["properties"][name];
        (property["minimum"].to_string(), property["maximum"].to_string())
    };
    assert_eq!(bounds("a"), ("-128".to_owned(), "127".to_owned()));
    assert_eq!(bounds("f"), ("0".to_owned(), "4294967295".to_owned()));
    assert_eq!(bounds("g"), (i64::MIN.to_string(), i64::MAX.to_string()));
    assert_eq!(bounds("h"), ("0".to_owned(), u64::MAX.to_string()));
    assert_eq!(bounds("l").1.replace('+', ""), "3.40282366920938e38", "just below u128::MAX");
    assert_eq!(bounds("n"), ("1".to_owned(), u64::MAX.to_string()));
}

#[test]
fn narrower_bounds_of_the_caller_are_kept() {
    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Narrow {
        #[schemars(range(min = 1, max = 4))]
        quarter: Option<i32>,
        #[schemars(range(min = -1000))]
        small: u8,
        #[schemars(range(min = 0.5))]
        share: f32,
    }
    let schema = schema_of::<Narrow>();
    assert_eq!(schema["properties"]["quarter"]["minimum"], 1);
    assert_eq!(schema["properties"]["quarter"]["maximum"], 4);
    assert_eq!(schema["properties"]["small"]["minimum"], 0);
    assert_eq!(schema["properties"]["share"]["minimum"], 0.5);
    assert_eq!(schema["required"], json!(["small", "share", "quarter"]));
}

#[test]
fn structs_are_closed_and_maps_stay_open() {
    let schema = schema_of::<Containers>();
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["by_name"]["additionalProperties"]["maximum"], i16::MAX);
    // A part of a larger object must not forbid the other parts.
    let schema = schema_of::<Internal>();
    assert!(schema["$defs"]["Inner"].get("additionalProperties").is_none(), "{schema}");
}

#[test]
fn a_format_that_nothing_enforces_is_refused_by_name() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Odd {
        #[schemars(extend("format" = "iban"))]
        account: String,
        list: Vec<OddItem>,
    }
    #[derive(Debug, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct OddItem {
        #[schemars(extend("format" = "swift"))]
        bank: String,
    }
    let error = Contract::<Odd>::from_type().expect_err("two formats are unknown");
    assert!(matches!(error, MoldeError::RustType { .. }));
    let pointers: Vec<&str> =
        error.offenders().iter().map(|offender| offender.pointer.as_str()).collect();
    assert_eq!(pointers, ["/properties/account/format", "/$defs/OddItem/properties/bank/format"]);
    assert!(error.to_string().contains("iban") && error.to_string().contains("swift"));
}

#[test]
fn what_deserialize_demands_beyond_the_schema_is_an_error_without_the_text() {
    #[derive(Debug, JsonSchema)]
    struct Even(#[allow(dead_code)] u8);
    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let number = u8::deserialize(deserializer)?;
            if number % 2 == 0 {
                Ok(Self(number))
            } else {
                Err(serde::de::Error::custom(format!("secret {number}")))
            }
        }
    }
    let engine = Fake::engine(Policy::Script("7".to_owned()));
    let extractor = engine.extractor_for::<Even>().build().expect("an integer can be enforced");
    let error = extractor.extract("any document").expect_err("7 is odd");
    assert_eq!(error.kind(), "deserialize");
    assert!(!error.to_string().contains("secret") && error.to_string().contains("Even"), "{error}");
}
