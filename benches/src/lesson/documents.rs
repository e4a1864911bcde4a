//! The documents: press releases made for this benchmark, with exact truth, or a file of them.
//!
//! The companies do not exist and the sentences come from templates. Traps on purpose: the revenue of
//! the quarter that has ended beside the forecast, profits, billions and millions, thousands
//! separators of both conventions, ranges around a middle, forecasts of the whole year, and no
//! forecast at all.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// A document and what it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Document {
    pub(crate) id: String,
    /// Type and language, as far as they are known: the columns that faults are counted by.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    pub(crate) text: String,
    pub(crate) truth: Truth,
}

/// The forecast, in millions of USD; all null without one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Truth {
    pub(crate) trimestre: Option<u32>,
    pub(crate) anio: Option<u32>,
    pub(crate) bajo: Option<f64>,
    pub(crate) alto: Option<f64>,
}

impl Truth {
    const NONE: Self = Self { trimestre: None, anio: None, bajo: None, alto: None };
}

/// Reads documents with truth, one JSON object a line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Document>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut documents: Vec<Document> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = || format!("{}, line {}", path.display(), number + 1);
        let document: Document = serde_json::from_str(line).with_context(at)?;
        let truth = &document.truth;
        ensure!(!document.text.trim().is_empty(), "{}: the text is empty", at());
        ensure!(
            truth.bajo.is_some() == truth.alto.is_some(),
            "{}: bajo and alto must both be given, or both be null",
            at()
        );
        ensure!(
            documents.iter().all(|other| other.id != document.id),
            "{}: the id {:?} comes twice",
            at(),
            document.id
        );
        documents.push(document);
    }
    ensure!(!documents.is_empty(), "{} has no documents", path.display());
    Ok(documents)
}

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn range(&mut self, low: u32, high: u32) -> u32 {
        low + self.below((high - low + 1) as usize) as u32
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.range(1, 100) <= percent
    }
}

/// Makes `count` documents. The first `n` of a seed are the same for every `count`.
pub(crate) fn generate(count: usize, seed: u64) -> Vec<Document> {
    (0..count)
        .map(|index| {
            // A stream for each document, so that one more or less does not change the others.
            let mut random =
                Random::new(seed.wrapping_mul(0x1_0000_0001).wrapping_add(index as u64));
            let english = random.chance(70);
            let (kind, text, truth) =
                if english { english_release(&mut random) } else { spanish_release(&mut random) };
            Document {
                id: format!("G{index:05}"),
                kind: Some(kind.to_owned()),
                language: Some(if english { "en" } else { "es" }.to_owned()),
                text,
                truth,
            }
        })
        .collect()
}

/// An amount in millions with at most one decimal: the text of it must say exactly that.
#[derive(Clone, Copy)]
struct Amount {
    /// Tenths of a million.
    tenths: u64,
}

impl Amount {
    fn millions(self) -> f64 {
        self.tenths as f64 / 10.0
    }
}

/// A range whose ends can be written in billions with two decimals if `billions`.
fn forecast_range(random: &mut Random, billions: bool) -> (Amount, Amount) {
    let (low, width) = if billions {
        let low = u64::from(random.range(105, 1900)) * 100;
        (low, u64::from(random.range(5, 60)) * 100)
    } else {
        let low = u64::from(random.range(900, 9800)) * if random.chance(60) { 10 } else { 1 };
        (low, u64::from(random.range(10, 50)) * 10)
    };
    (Amount { tenths: low }, Amount { tenths: low + width })
}

const COMPANIES: [&str; 12] = [
    "Halden Optics",
    "Brightwell Foods",
    "Corvane Systems",
    "Larkspur Retail",
    "Tessaly Networks",
    "Northmere Energy",
    "Quillon Therapeutics",
    "Ostrava Tools",
    "Peregrine Freight",
    "Maristan Hotels",
    "Velmont Apparel",
    "Iridane Software",
];

const SPANISH_COMPANIES: [&str; 8] = [
    "Salinas del Norte, S.A.",
    "Aceros Beltrán, S.A.",
    "Grupo Almazara",
    "Navieras del Ebro, S.A.",
    "Textiles Moncayo, S.A.",
    "Hoteles Serranía",
    "Energías del Tajo, S.A.",
    "Cementos Arlanza, S.A.",
];

const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];
const ORDINALES: [&str; 4] = ["primer", "segundo", "tercer", "cuarto"];

/// `1,234.5`, or with the separators given.
fn grouped(tenths: u64, decimals: bool, thousands: &str, point: &str) -> String {
    let digits = (tenths / 10).to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push_str(thousands);
        }
        text.push(digit);
    }
    if decimals || !tenths.is_multiple_of(10) {
        text.push_str(point);
        text.push_str(&(tenths % 10).to_string());
    }
    text
}

/// Billions with two decimals: tenths must be a multiple of 100.
fn billions(amount: Amount, point: &str) -> String {
    format!("{}{point}{:02}", amount.tenths / 10_000, amount.tenths % 10_000 / 100)
}

/// The quarter after one that has ended.
fn next_quarter(quarter: u32, year: u32) -> (u32, u32) {
    if quarter == 4 { (1, year + 1) } else { (quarter + 1, year) }
}

fn english_release(random: &mut Random) -> (&'static str, String, Truth) {
    let company = random.of(&COMPANIES);
    let (ended, year) = (random.range(1, 4), random.range(2018, 2025));
    let (quarter, of_year) = next_quarter(ended, year);
    let in_billions = random.chance(55);
    let (low, high) = forecast_range(random, in_billions);
    let amount = |amount: Amount, unit: bool| {
        if in_billions {
            format!("${}{}", billions(amount, "."), if unit { " billion" } else { "" })
        } else {
            let word = if unit { " million" } else { "" };
            format!("${}{word}", grouped(amount.tenths, false, ",", "."))
        }
    };
    // The quarter that has ended: near the forecast, and never it.
    let revenue =
        Amount { tenths: low.tenths * u64::from(random.range(70, 95)) / 10_000 * 100 + 100 };
    let profit = Amount { tenths: revenue.tenths * u64::from(random.range(3, 25)) / 100 + 7 };
    let mut lines = vec![match random.below(3) {
        0 => format!(
            "{company} Reports {} Quarter {year} Results",
            capital(ORDINALS[ended as usize - 1])
        ),
        1 => format!("{} ANNOUNCES Q{ended} {year} RESULTS", company.to_uppercase()),
        _ => format!("Revenue of {}", amount(revenue, true)),
    }];
    if !lines[0].starts_with("Revenue") {
        lines.push(format!(
            "Revenue of {}, up {} percent from a year ago",
            amount(revenue, true),
            random.range(2, 28)
        ));
    }
    lines.push(format!(
        "Net income of ${} million, or ${}.{:02} per share",
        grouped(profit.tenths, true, ",", "."),
        random.range(0, 13),
        random.range(0, 99)
    ));
    match random.below(4) {
        0 => lines.push(format!("Stores at quarter end: {}.", random.range(80, 900))),
        1 => lines.push(format!(
            "The company returned ${} million to shareholders through buybacks.",
            random.range(20, 400)
        )),
        2 => lines.push(format!(
            "Operating margin was {}.{} percent.",
            random.range(4, 31),
            random.range(0, 9)
        )),
        _ => {}
    }
    let ordinal = ORDINALS[quarter as usize - 1];
    let truth = Truth {
        trimestre: Some(quarter),
        anio: Some(of_year),
        bajo: Some(low.millions()),
        alto: Some(high.millions()),
    };
    let whole_year = format!(
        "For the full year {of_year} we expect revenue of {} to {}.",
        amount(Amount { tenths: low.tenths * 4 }, true),
        amount(Amount { tenths: high.tenths * 4 }, true)
    );
    let (sentence, truth) = match random.below(12) {
        0 => (format!("{company} is not providing guidance at this time."), Truth::NONE),
        1 => (whole_year, Truth::NONE),
        2 => (String::new(), Truth::NONE),
        3 | 4 => (
            format!(
                "We currently anticipate the {ordinal} quarter of {of_year} revenue of between {} and {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        5 => (
            format!(
                "Outlook: for the {ordinal} quarter of {of_year}, {company} expects revenue in the range of {} to {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        6 => (
            format!(
                "For Q{quarter} {of_year}, net sales are expected to be between {} and {}.",
                amount(low, false),
                amount(high, true)
            ),
            truth,
        ),
        7 => (
            format!(
                "Management guides to {ordinal}-quarter {of_year} revenue of {} to {}. {whole_year}",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        8 => (
            format!(
                "{whole_year} For the {ordinal} quarter of {of_year} we expect {} to {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        9 => {
            // The ends are not written: the middle and the distance are.
            let middle = Amount { tenths: u64::midpoint(low.tenths, high.tenths) / 10 * 10 };
            let distance = Amount { tenths: (high.tenths - low.tenths) / 20 * 10 };
            let sentence = format!(
                "For the {ordinal} quarter of {of_year} we expect revenue of ${} million, plus or minus ${} million.",
                grouped(middle.tenths, false, ",", "."),
                grouped(distance.tenths, false, ",", ".")
            );
            let ends = Truth {
                bajo: Some(Amount { tenths: middle.tenths - distance.tenths }.millions()),
                alto: Some(Amount { tenths: middle.tenths + distance.tenths }.millions()),
                ..truth
            };
            (sentence, ends)
        }
        10 => (
            format!(
                "Revenue for the {ordinal} quarter of {of_year} is forecast at no less than {} and no more than {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        _ => (
            format!(
                "Guidance, {ordinal} quarter {of_year}: revenue {}-{}.",
                amount(low, false),
                amount(high, true).trim_start_matches('$')
            ),
            truth,
        ),
    };
    if !sentence.is_empty() {
        lines.push(sentence);
    }
    ("8-K", lines.join("\n"), truth)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn spanish_release(random: &mut Random) -> (&'static str, String, Truth) {
    let company = random.of(&SPANISH_COMPANIES);
    let (ended, year) = (random.range(1, 4), random.range(2018, 2025));
    let (quarter, of_year) = next_quarter(ended, year);
    let in_billions = random.chance(25);
    let (low, high) = forecast_range(random, in_billions);
    let amount = |amount: Amount, unit: bool| {
        if in_billions {
            format!("{}{}", billions(amount, ","), if unit { " mil millones de USD" } else { "" })
        } else {
            let word = if unit { " millones de USD" } else { "" };
            format!("{}{word}", grouped(amount.tenths, false, ".", ","))
        }
    };
    let revenue =
        Amount { tenths: low.tenths * u64::from(random.range(70, 95)) / 10_000 * 100 + 100 };
    let profit = Amount { tenths: revenue.tenths * u64::from(random.range(3, 25)) / 100 + 7 };
    let mut lines = vec![
        format!(
            "{company} comunica sus resultados del {} trimestre de {year}",
            ORDINALES[ended as usize - 1]
        ),
        format!(
            "La cifra de negocio alcanzó los {}, un {} % más que un año antes.",
            amount(revenue, true),
            random.range(2, 19)
        ),
        format!(
            "El beneficio neto fue de {} millones de USD.",
            grouped(profit.tenths, true, ".", ",")
        ),
    ];
    if random.chance(40) {
        lines.push(format!(
            "El Consejo propondrá un dividendo de 0,{:02} USD por acción.",
            random.range(5, 95)
        ));
    }
    let ordinal = ORDINALES[quarter as usize - 1];
    let truth = Truth {
        trimestre: Some(quarter),
        anio: Some(of_year),
        bajo: Some(low.millions()),
        alto: Some(high.millions()),
    };
    let (sentence, truth) = match random.below(8) {
        0 => ("La sociedad no facilita previsiones.".to_owned(), Truth::NONE),
        1 => (
            format!(
                "Para el conjunto del ejercicio {of_year} se esperan ventas de entre {} y {}.",
                amount(Amount { tenths: low.tenths * 4 }, true),
                amount(Amount { tenths: high.tenths * 4 }, true)
            ),
            Truth::NONE,
        ),
        2 | 3 => (
            format!(
                "Para el {ordinal} trimestre de {of_year} la sociedad prevé unas ventas de entre {} y {}.",
                amount(low, false),
                amount(high, true)
            ),
            truth,
        ),
        4 => (
            format!(
                "La compañía espera que las ventas del {ordinal} trimestre de {of_year} se sitúen entre {} y {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        5 => (
            format!(
                "Previsión de ventas para el {quarter}T {of_year}: de {} a {}.",
                amount(low, false),
                amount(high, true)
            ),
            truth,
        ),
        6 => (
            format!(
                "En el {ordinal} trimestre de {of_year} las ventas no bajarán de {} ni superarán los {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
        _ => (
            format!(
                "Las previsiones para el {ordinal} trimestre de {of_year} apuntan a unas ventas comprendidas entre {} y {}.",
                amount(low, true),
                amount(high, true)
            ),
            truth,
        ),
    };
    lines.push(sentence);
    (if random.chance(60) { "OIR" } else { "HR" }, lines.join("\n"), truth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_documents_and_a_prefix_of_more() {
        let few = generate(20, 3);
        let many = generate(200, 3);
        for (left, right) in few.iter().zip(&many) {
            assert_eq!((&left.text, left.truth), (&right.text, right.truth));
        }
        assert_ne!(generate(20, 4)[0].text, few[0].text);
    }

    /// Every way in which an amount in millions can stand in a document.
    fn spellings(millions: f64) -> Vec<String> {
        let tenths = (millions * 10.0).round() as u64;
        let mut all = Vec::new();
        for decimals in [false, true] {
            all.push(grouped(tenths, decimals, ",", "."));
            all.push(grouped(tenths, decimals, ".", ","));
        }
        if tenths.is_multiple_of(100) {
            all.push(billions(Amount { tenths }, "."));
            all.push(billions(Amount { tenths }, ","));
        }
        all
    }

    #[test]
    fn the_truth_is_what_the_text_says() {
        let documents = generate(2000, 1);
        let mut with = 0;
        for Document { text, truth, .. } in &documents {
            let (Some(low), Some(high)) = (truth.bajo, truth.alto) else {
                assert_eq!(*truth, Truth::NONE);
                continue;
            };
            with += 1;
            assert!(low < high && low > 0.0, "{truth:?}");
            let (quarter, year) = (truth.trimestre.expect("given"), truth.anio.expect("given"));
            assert!((1..=4).contains(&quarter) && (2018..=2026).contains(&year), "{truth:?}");
            assert!(text.contains(&year.to_string()), "{year} in {text}");
            if text.contains("plus or minus") {
                continue;
            }
            for end in [low, high] {
                assert!(
                    spellings(end).iter().any(|spelling| text.contains(spelling)),
                    "{end} in {text}"
                );
            }
        }
        assert!(with > 1300 && with < 1800, "{with} of 2000 have a forecast");
    }
}
