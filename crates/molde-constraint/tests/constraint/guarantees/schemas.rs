//! Small schemas, generated: every keyword, and every pair of object and of array keywords.

use serde_json::{Map, Value, json};

use crate::walk::Random;

const OBJECT_KEYWORDS: [&str; 10] = [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
];

const ARRAY_KEYWORDS: [&str; 9] = [
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "unevaluatedItems",
];

const APPLICATORS: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "$ref", "$dynamicRef", "enum"];

const SCALAR_KEYWORDS: [&str; 12] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
];

/// Which keywords a sub-schema has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Object,
    Array,
    Scalar,
}

impl Family {
    fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Object => &OBJECT_KEYWORDS,
            Self::Array => &ARRAY_KEYWORDS,
            Self::Scalar => &SCALAR_KEYWORDS,
        }
    }
}

/// The schemas of the small world: always the same ones for a seed.
pub(crate) fn small_schemas(seed: u64) -> Vec<Value> {
    let mut generator = Generator { random: Random(seed) };
    let mut schemas = Vec::new();
    for (family, times) in [(Family::Object, 3), (Family::Array, 3), (Family::Scalar, 1)] {
        let keywords = family.keywords();
        for (index, first) in keywords.iter().enumerate() {
            for second in &keywords[index + 1..] {
                for _ in 0..times {
                    schemas.push(generator.with(family, &[first, second]));
                }
            }
            for applicator in APPLICATORS {
                schemas.push(generator.with(family, &[first, applicator]));
            }
        }
    }
    for (index, first) in APPLICATORS.iter().enumerate() {
        for second in &APPLICATORS[index + 1..] {
            let family = generator.choose(&[Family::Object, Family::Array, Family::Scalar]);
            schemas.push(generator.with(family, &[first, second]));
        }
    }
    for _ in 0..12 {
        schemas.push(generator.older("http://json-schema.org/draft-07/schema#"));
        schemas.push(generator.older("http://json-schema.org/draft-04/schema#"));
        schemas.push(generator.older("https://json-schema.org/draft/2019-09/schema"));
    }
    schemas
}

struct Generator {
    random: Random,
}

/// Adds a definition beside those that are there.
fn define(schema: &mut Map<String, Value>, name: &str, target: Value) {
    let definitions = schema.entry("$defs").or_insert_with(|| json!({}));
    definitions[name] = target;
}

impl Generator {
    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        self.random.choose(from)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound)
    }

    /// A schema with these keywords, and mostly with the type that they are about.
    fn with(&mut self, family: Family, keywords: &[&str]) -> Value {
        let mut schema = Map::new();
        if self.below(3) > 0 {
            match family {
                Family::Object => schema.insert("type".to_owned(), json!("object")),
                Family::Array => schema.insert("type".to_owned(), json!("array")),
                Family::Scalar => None,
            };
        }
        for keyword in keywords {
            self.add(&mut schema, family, keyword);
        }
        Value::Object(schema)
    }

    /// Adds a keyword, with those that give it a meaning.
    fn add(&mut self, schema: &mut Map<String, Value>, family: Family, keyword: &str) {
        let value = match keyword {
            "minContains" | "maxContains" => {
                if !schema.contains_key("contains") {
                    self.add(schema, family, "contains");
                }
                json!(self.below(3))
            }
            "if" => {
                for branch in ["then", "else"] {
                    if self.below(4) > 0 {
                        schema.insert(branch.to_owned(), self.part(family));
                    }
                }
                self.part(family)
            }
            "$ref" => {
                let target = self.part(family);
                define(schema, "x", target);
                json!("#/$defs/x")
            }
            "$dynamicRef" => {
                let mut target = self.part(family);
                let anchored = target.as_object_mut().map(|target| {
                    target.insert("$dynamicAnchor".to_owned(), json!("y"));
                });
                define(schema, "y", target);
                json!(if anchored.is_some() { "#y" } else { "#/$defs/y" })
            }
            _ => self.keyword(family, keyword),
        };
        schema.insert(keyword.to_owned(), value);
    }

    /// The value of a keyword.
    fn keyword(&mut self, family: Family, keyword: &str) -> Value {
        match keyword {
            "type" => self.types(),
            "const" => self.constant(),
            "enum" => {
                let count = 1 + self.below(3);
                Value::Array((0..count).map(|_| self.constant()).collect())
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => self.bound(),
            "multipleOf" => self.choose(&[1.0, 2.0, 0.5, 0.1, 1.5, 3.0]).into(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => {
                json!(self.below(3))
            }
            "minProperties" => json!(1 + self.below(2)),
            "pattern" => json!(self.pattern()),
            "format" => {
                json!(self.choose(&["hostname", "json-pointer", "uri-reference", "regex", "date"]))
            }
            "properties" => {
                let mut properties = Map::new();
                for name in ["b", "a", "", "ab"] {
                    if self.below(2) == 0 {
                        properties.insert(name.to_owned(), self.leaf());
                    }
                }
                Value::Object(properties)
            }
            "required" => self.choose_names(),
            "patternProperties" => {
                let mut patterns = Map::new();
                for _ in 0..=self.below(2) {
                    let pattern = self.choose(&["^a", "b$", "", "^$", "a", "^b?$"]);
                    patterns.insert(pattern.to_owned(), self.leaf());
                }
                Value::Object(patterns)
            }
            "propertyNames" => match self.below(6) {
                0 => json!({"maxLength": 1}),
                1 => json!({"minLength": 1}),
                2 => json!({"enum": ["a", "ab"]}),
                3 => json!({"not": {"const": "a"}}),
                4 => json!({"const": "b"}),
                _ => json!({"pattern": self.pattern()}),
            },
            "dependentRequired" => {
                let mut dependent = Map::new();
                for name in ["a", "b"] {
                    if self.below(3) > 0 {
                        dependent.insert(name.to_owned(), self.choose_names());
                    }
                }
                Value::Object(dependent)
            }
            "dependentSchemas" => {
                let name = self.choose(&["a", "b", ""]);
                json!({name: self.part(Family::Object)})
            }
            "prefixItems" => {
                let count = 1 + self.below(2);
                Value::Array((0..count).map(|_| self.leaf()).collect())
            }
            "uniqueItems" => json!(self.below(8) > 0),
            "allOf" | "anyOf" | "oneOf" => {
                let count = 2 + self.below(2);
                Value::Array((0..count).map(|_| self.part(family)).collect())
            }
            "not" => self.part(family),
            // Schemas for members and items.
            _ => self.leaf(),
        }
    }

    /// A sub-schema that applies to the same value: one or two keywords.
    fn part(&mut self, family: Family) -> Value {
        if self.below(12) == 0 {
            return json!(self.below(2) == 0);
        }
        let mut schema = Map::new();
        for _ in 0..=self.below(2) {
            let keyword = match self.below(10) {
                0 => self.choose(&["const", "enum", "type"]),
                1 => self.choose(&["anyOf", "oneOf", "not"]),
                _ => self.choose(family.keywords()),
            };
            // What is deeper would only be slower.
            if !matches!(keyword, "anyOf" | "oneOf" | "not" | "dependentSchemas") {
                self.add(&mut schema, family, keyword);
            } else if keyword == "not" {
                schema.insert(keyword.to_owned(), self.leaf());
            } else if keyword != "dependentSchemas" {
                schema.insert(keyword.to_owned(), json!([self.leaf(), self.leaf()]));
            }
        }
        Value::Object(schema)
    }

    /// A schema for a member or an item.
    fn leaf(&mut self) -> Value {
        match self.below(16) {
            0 => json!(true),
            1 => json!(false),
            2 | 3 => json!({"const": self.constant()}),
            4 => json!({"enum": [self.constant(), self.constant()]}),
            5 => json!({"minimum": self.bound()}),
            6 => json!({"exclusiveMaximum": self.bound()}),
            7 => json!({"maxLength": self.below(2)}),
            8 => json!({"not": {"type": self.types()}}),
            9 => json!({"not": {"const": self.constant()}}),
            10 => json!({"items": {"type": self.types()}, "maxItems": 1}),
            11 => json!({"required": [self.choose(&["a", "b", ""])]}),
            _ => json!({"type": self.types()}),
        }
    }

    fn types(&mut self) -> Value {
        let names = ["integer", "number", "string", "null", "array", "object", "boolean"];
        let first = self.choose(&names);
        let second = self.choose(&names);
        if self.below(3) == 0 && first != second { json!([first, second]) } else { json!(first) }
    }

    fn constant(&mut self) -> Value {
        match self.below(12) {
            0 | 1 => json!(0),
            2 => json!(1),
            3 => json!(1.0),
            4 => json!(""),
            5 => json!("a"),
            6 => json!(null),
            7 => json!([]),
            8 => json!({}),
            9 => json!([0]),
            10 => json!({"a": 0}),
            _ => json!(true),
        }
    }

    fn bound(&mut self) -> Value {
        self.choose(&[json!(0), json!(1), json!(-1), json!(0.5), json!(10)].each_ref()).clone()
    }

    fn pattern(&mut self) -> &'static str {
        self.choose(&["^a", "b$", "^[ab]?$", "a", "^$", "^(ab)*$", "^a|b$", "^(?!a)"])
    }

    fn choose_names(&mut self) -> Value {
        let first = self.choose(&["a", "b", "", "ab"]);
        let second = self.choose(&["a", "b", ""]);
        if self.below(3) == 0 && first != second { json!([first, second]) } else { json!([first]) }
    }

    /// A schema of an older draft, with what was spelled otherwise there.
    fn older(&mut self, draft: &str) -> Value {
        let mut schema = Map::new();
        schema.insert("$schema".to_owned(), json!(draft));
        let draft4 = draft.contains("draft-04");
        // Draft 4 has no boolean schemas.
        let leaf = |generator: &mut Self| loop {
            let leaf = generator.leaf();
            let unfit = leaf.is_boolean()
                || leaf.get("const").is_some()
                || leaf.get("exclusiveMaximum").is_some()
                || leaf.pointer("/not/const").is_some();
            if !(draft4 && unfit) {
                return leaf;
            }
        };
        for _ in 0..2 {
            match self.below(5) {
                0 => {
                    let list = json!([leaf(self), leaf(self)]);
                    schema.insert("items".to_owned(), list);
                    schema.insert("additionalItems".to_owned(), leaf(self));
                }
                1 if !draft.contains("2019") => {
                    let schema_of_b = leaf(self);
                    let dependencies = json!({"a": ["b"], "b": schema_of_b});
                    schema.insert("dependencies".to_owned(), dependencies);
                }
                2 if draft4 => {
                    schema.insert("minimum".to_owned(), self.bound());
                    schema.insert("exclusiveMinimum".to_owned(), json!(self.below(2) == 0));
                }
                3 if draft.contains("2019") => {
                    schema.insert("additionalProperties".to_owned(), json!({"$recursiveRef": "#"}));
                    schema.insert("maxProperties".to_owned(), json!(1));
                }
                // Siblings of `$ref` mean nothing up to draft 7.
                4 => {
                    let (place, target) = ("definitions", leaf(self));
                    schema.insert(place.to_owned(), json!({"x": target}));
                    schema.insert(
                        "items".to_owned(),
                        json!({"$ref": "#/definitions/x", "type": "null"}),
                    );
                    schema.remove("additionalItems");
                }
                _ => {
                    schema
                        .insert("properties".to_owned(), json!({"a": leaf(self), "b": leaf(self)}));
                    schema.insert("required".to_owned(), self.choose_names());
                }
            }
        }
        Value::Object(schema)
    }
}

#[test]
fn every_keyword_and_every_pair_of_one_family_is_among_the_small_schemas() {
    let schemas = small_schemas(1);
    assert!(schemas.len() >= 500, "{}", schemas.len());
    for keywords in [&OBJECT_KEYWORDS[..], &ARRAY_KEYWORDS[..], &SCALAR_KEYWORDS[..]] {
        for first in keywords {
            for second in keywords {
                let has =
                    |schema: &&Value| schema.get(first).is_some() && schema.get(second).is_some();
                assert!(schemas.iter().any(|schema| has(&schema)), "{first} with {second}");
            }
        }
    }
    assert_eq!(schemas, small_schemas(1));
    assert_ne!(schemas, small_schemas(2));
}
