use serde_json::{Value, json};

use crate::{Language, PromptTemplate, SignatureLimits, schema_without_titles, signature};

fn line(schema: &Value, language: Language) -> String {
    signature(schema, language, &SignatureLimits::default())
}

fn forecast() -> Value {
    json!({
        "description": "Previsión de ventas del trimestre siguiente.",
        "type": "object",
        "properties": {
            "trimestre": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]},
            "anio": {"anyOf": [{"type": "integer", "minimum": 2018, "maximum": 2026}, {"type": "null"}]},
            "bajo": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
            "alto": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}], "description": "millones de\n USD"},
        },
        "required": ["trimestre", "anio", "bajo", "alto"],
        "additionalProperties": false,
    })
}

#[test]
fn a_flat_object_is_one_line_in_schema_order() {
    assert_eq!(
        line(&forecast(), Language::Spanish),
        r#"{"trimestre": integer 1-4 o null, "anio": integer 2018-2026 o null, "bajo": number > 0 o null, "alto": number > 0 o null}"#
    );
    assert!(
        line(&forecast(), Language::English).starts_with(r#"{"trimestre": integer 1-4 or null, "#)
    );
}

#[test]
fn every_kind_of_value_has_its_words() {
    let cases = [
        (json!({"type": "integer", "minimum": -4, "maximum": 4}), "integer -4 to 4"),
        (json!({"type": "integer", "minimum": 0}), "integer >= 0"),
        (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5}), "number > 0 and <= 1.5"),
        (json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}), "number > 0"),
        (json!({"type": "number", "multipleOf": 0.01}), "number (multiple of 0.01)"),
        (json!({"type": ["string", "null"], "maxLength": 40}), "string (at most 40) or null"),
        (json!({"type": "string", "format": "date"}), "string (YYYY-MM-DD)"),
        (json!({"type": "string", "pattern": "^[A-Z]{3}$"}), "string (/^[A-Z]{3}$/)"),
        (json!({"enum": ["USD", "EUR", null]}), r#""USD" | "EUR" or null"#),
        (json!({"const": "x"}), r#""x""#),
        (json!({"type": "array", "items": {"type": "boolean"}}), "[boolean, …]"),
        (
            json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
            "[integer, …] (2)",
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}),
            "[integer, string]",
        ),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), r#"{"…": number}"#),
        (
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"]}}}),
            r#"{"a": {"b": null} (optional)}"#,
        ),
        (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), "integer"),
        (json!(true), "any JSON value"),
        (json!({}), "any JSON value"),
    ];
    for (schema, expected) in cases {
        assert_eq!(line(&schema, Language::English), expected, "{schema}");
    }
}

#[test]
fn a_recursive_or_wide_schema_stays_inside_its_limits() {
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"},
        }, "required": ["left", "right"]}},
    });
    let properties: serde_json::Map<String, Value> =
        (0..5000).map(|index| (format!("field number {index}"), tree.clone())).collect();
    let wide = json!({"type": "object", "properties": properties, "$defs": tree["$defs"]});
    for (schema, characters) in [(&tree, 200), (&wide, 300), (&tree, 10)] {
        let limits = SignatureLimits { characters, ..SignatureLimits::default() };
        let line = signature(schema, Language::English, &limits);
        assert!(line.chars().count() <= characters + 1, "{} of {characters}: {line}", line.len());
        assert!(line.starts_with('{'), "{line}");
    }
    let values: Vec<Value> = (0..1000).map(Value::from).collect();
    assert_eq!(
        signature(
            &json!({"enum": values}),
            Language::English,
            &SignatureLimits { enum_values: 3, ..SignatureLimits::default() }
        ),
        "0 | 1 | 2 | …"
    );
}

#[test]
fn the_system_message_has_its_parts_in_order() {
    let prompt = PromptTemplate {
        language: Language::Spanish,
        instructions: Some("Extrae la previsión.".to_owned()),
        conventions: Some("Importes en millones.".to_owned()),
        ..PromptTemplate::default()
    };
    let message = prompt.system_message(&forecast().to_string());
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 4, "{message}");
    assert_eq!(lines[0], "Extrae la previsión. Responde solo con un objeto JSON así:");
    assert!(lines[1].starts_with("{\"trimestre\""));
    assert_eq!(lines[2], "alto: millones de USD");
    assert!(lines[3].starts_with("Importes en millones. ") && lines[3].contains("null"));
}

#[test]
fn the_task_comes_from_the_schema_unless_it_is_given() {
    let message = PromptTemplate::default().system_message(&forecast().to_string());
    assert!(message.starts_with("Previsión de ventas del trimestre siguiente. "), "{message}");
    let message =
        PromptTemplate { instructions: Some("  ".to_owned()), ..PromptTemplate::default() }
            .system_message("{}");
    assert!(message.starts_with("Extract data from the document. "), "{message}");
}

#[test]
fn null_is_asked_for_only_where_the_schema_admits_it() {
    let without = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert!(!PromptTemplate::default().system_message(&without.to_string()).contains("null"));
    let with = json!({"type": "object", "properties": {"a": {"enum": ["x", null]}}});
    assert!(
        PromptTemplate::default()
            .system_message(&with.to_string())
            .lines()
            .last()
            .is_some_and(|line| line.contains("null"))
    );
    let own = PromptTemplate { no_data: Some(String::new()), ..PromptTemplate::default() }
        .system_message(&with.to_string());
    assert!(own.ends_with("or null}") || own.ends_with("(optional)}"), "{own}");
}

/// The contract of the lesson that the benchmark follows, as Pydantic writes it.
const LESSON: &str = r#"{"additionalProperties": false, "description": "Previsión de ventas del trimestre siguiente.", "properties": {"trimestre": {"anyOf": [{"maximum": 4, "minimum": 1, "type": "integer"}, {"type": "null"}], "title": "Trimestre"}, "anio": {"anyOf": [{"maximum": 2026, "minimum": 2018, "type": "integer"}, {"type": "null"}], "title": "Anio"}, "bajo": {"anyOf": [{"exclusiveMinimum": 0, "type": "number"}, {"type": "null"}], "description": "millones de USD", "title": "Bajo"}, "alto": {"anyOf": [{"exclusiveMinimum": 0, "type": "number"}, {"type": "null"}], "description": "millones de USD", "title": "Alto"}}, "required": ["trimestre", "anio", "bajo", "alto"], "title": "Prevision", "type": "object"}"#;

#[test]
fn the_prompt_of_the_lesson_comes_out_of_the_template() {
    let message = PromptTemplate::new(Language::Spanish)
        .instructions("Extrae la previsión de ventas del trimestre siguiente.")
        .conventions("Importes en millones de USD, sin separador de miles (1 billion = 1000).")
        .no_data("Sin previsión: null.")
        .field_notes(false)
        .system_message(LESSON);
    assert_eq!(
        message,
        "Extrae la previsión de ventas del trimestre siguiente. Responde solo con un objeto JSON \
         así:\n{\"trimestre\": integer 1-4 o null, \"anio\": integer 2018-2026 o null, \"bajo\": number \
         > 0 o null, \"alto\": number > 0 o null}\nImportes en millones de USD, sin separador de miles \
         (1 billion = 1000). Sin previsión: null."
    );
}

#[test]
fn titles_go_and_members_that_are_called_title_stay() {
    let schema = json!({
        "title": "T", "type": "object", "$defs": {"title": {"title": "D", "type": "null"}},
        "properties": {"title": {"type": "string", "title": "Title", "default": {"title": "x"}}},
        "required": ["title"],
    });
    let expected = json!({
        "type": "object", "$defs": {"title": {"type": "null"}},
        "properties": {"title": {"type": "string", "default": {"title": "x"}}},
        "required": ["title"],
    });
    assert_eq!(schema_without_titles(&schema.to_string()), expected.to_string());
}

#[test]
fn descriptions_stand_in_a_signature_when_they_are_asked_for() {
    let limits = SignatureLimits { descriptions: true, ..SignatureLimits::default() };
    assert!(
        signature(&forecast(), Language::English, &limits)
            .ends_with(r#""alto": number > 0 or null (millones de USD)}"#)
    );
}
