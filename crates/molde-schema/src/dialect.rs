//! The drafts of JSON Schema, and which keywords each has.

/// A draft of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12, the default.
    Draft202012,
}

impl Dialect {
    /// The draft named by a `$schema` URI; `None` if it is none of the five.
    pub(crate) fn from_uri(uri: &str) -> Option<Self> {
        let uri = uri.trim_end_matches('#');
        let path = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
        match path.strip_prefix("json-schema.org/")?.trim_end_matches('/') {
            "draft-04/schema" => Some(Self::Draft4),
            "draft-06/schema" => Some(Self::Draft6),
            "draft-07/schema" => Some(Self::Draft7),
            "draft/2019-09/schema" => Some(Self::Draft201909),
            "draft/2020-12/schema" => Some(Self::Draft202012),
            _ => None,
        }
    }

    /// Whether the keywords beside a `$ref` are ignored, as drafts up to 7 say.
    pub(crate) fn ref_hides_siblings(self) -> bool {
        self <= Self::Draft7
    }

    /// The keyword that holds a location's own URI.
    pub(crate) fn id_keyword(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }
}

/// How a keyword is treated in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Applies other schemas.
    Applicator,
    /// Asserts something about the value by itself: of the validation vocabulary, which a
    /// dialect of the user's may leave out.
    Validation,
    /// Says nothing about which values are valid, in this dialect or ever.
    Annotation,
}

/// The treatment of a keyword; what no draft knows is an annotation.
pub(crate) fn treatment(keyword: &str, dialect: Dialect) -> Treatment {
    use Dialect::{Draft6, Draft7, Draft201909, Draft202012};
    use Treatment::{Annotation, Applicator, Validation};
    let since = |first: Dialect, treatment| {
        if dialect >= first { treatment } else { Annotation }
    };
    let until = |last: Dialect, treatment| {
        if dialect <= last { treatment } else { Annotation }
    };
    match keyword {
        "type" | "enum" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
        | "multipleOf" | "minLength" | "maxLength" | "pattern" | "format" | "minItems"
        | "maxItems" | "uniqueItems" | "required" | "minProperties" | "maxProperties" => Validation,
        // Later drafts dropped `dependencies`, but validators still honour it: ignoring it would
        // accept what its writer meant to exclude.
        "items"
        | "properties"
        | "patternProperties"
        | "additionalProperties"
        | "allOf"
        | "anyOf"
        | "oneOf"
        | "not"
        | "dependencies"
        | "$ref" => Applicator,
        "const" => since(Draft6, Validation),
        "contains" | "propertyNames" => since(Draft6, Applicator),
        "if" | "then" | "else" => since(Draft7, Applicator),
        "minContains" | "maxContains" | "dependentRequired" => since(Draft201909, Validation),
        "dependentSchemas" | "unevaluatedItems" | "unevaluatedProperties" => {
            since(Draft201909, Applicator)
        }
        "prefixItems" | "$dynamicRef" => since(Draft202012, Applicator),
        "additionalItems" => until(Draft201909, Applicator),
        "$recursiveRef" if dialect == Draft201909 => Applicator,
        _ => Annotation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_recognised_with_and_without_fragment_and_tls() {
        for (uri, dialect) in [
            ("http://json-schema.org/draft-04/schema#", Dialect::Draft4),
            ("https://json-schema.org/draft-06/schema", Dialect::Draft6),
            ("http://json-schema.org/draft-07/schema", Dialect::Draft7),
            ("https://json-schema.org/draft/2019-09/schema", Dialect::Draft201909),
            ("https://json-schema.org/draft/2020-12/schema#", Dialect::Draft202012),
        ] {
            assert_eq!(Dialect::from_uri(uri), Some(dialect), "{uri}");
        }
        assert_eq!(Dialect::from_uri("https://example.com/schema"), None);
        assert_eq!(Dialect::from_uri("json-schema.org/draft-07/schema"), None);
    }

    #[test]
    fn keywords_of_other_drafts_are_annotations() {
        assert_eq!(treatment("prefixItems", Dialect::Draft7), Treatment::Annotation);
        assert_eq!(treatment("const", Dialect::Draft4), Treatment::Annotation);
        assert_eq!(treatment("additionalItems", Dialect::Draft202012), Treatment::Annotation);
        assert_eq!(treatment("if", Dialect::Draft6), Treatment::Annotation);
        assert_eq!(treatment("title", Dialect::Draft7), Treatment::Annotation);
    }
}
