//! The figures, as SVG that stands alone.

use std::fmt::Write as _;

use super::record::Record;

/// A figure.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) title: String,
    /// What it shows, in words, for who does not see it.
    pub(super) caption: String,
    pub(super) svg: String,
}

const WIDTH: f64 = 720.0;
const LABELS: f64 = 200.0;
const BAR: f64 = 20.0;
const STEP: f64 = 30.0;

/// Every figure that the record has the numbers for.
pub(super) fn all(record: &Record) -> Vec<Figure> {
    [errors(record), validity(record), time(record), mask(record)].into_iter().flatten().collect()
}

/// Drawing with the few elements that are needed.
struct Canvas {
    body: String,
    height: f64,
}

impl Canvas {
    fn new(rows: usize) -> Self {
        Self { body: String::new(), height: rows as f64 * STEP + 50.0 }
    }

    fn bar(&mut self, x: f64, y: f64, width: f64, class: &str) {
        let width = width.max(0.0);
        writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{BAR}"/>"#
        )
        .expect("a String takes any text");
    }

    fn line(&mut self, x: f64, x2: f64, y: f64) {
        writeln!(self.body, r#"<line x1="{x:.1}" x2="{x2:.1}" y1="{y:.1}" y2="{y:.1}"/>"#)
            .expect("a String takes any text");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        )
        .expect("a String takes any text");
    }

    fn finish(self, title: &str, caption: &str) -> String {
        let (width, height) = (WIDTH, self.height);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">
<title>{title}</title>
<style>
text {{ font: 13px system-ui, sans-serif; fill: #222; }}
.a {{ fill: #2b6cb0; }} .b {{ fill: #a0aec0; }} .c {{ fill: #c05621; }} .d {{ fill: #e2e8f0; }}
line {{ stroke: #222; stroke-width: 1.2; }}
</style>
<rect width="{width:.0}" height="{height:.0}" fill="#fff"/>
{body}</svg>
"##,
            label = escape(caption),
            title = escape(title),
            body = self.body
        )
    }
}

/// Text inside markup.
pub(super) fn escape(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&quot;".to_owned(),
            // Control characters may not stand in XML.
            character if character.is_control() && character != '\n' => "\u{fffd}".to_owned(),
            character => character.to_string(),
        })
        .collect()
}

fn errors(record: &Record) -> Option<Figure> {
    let free = record.methods.iter().find(|method| method.name == "free")?;
    let mut rows: Vec<(&str, usize)> =
        free.error_kinds.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    rows.push(("valid", free.valid));
    rows.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
    let most = rows.iter().map(|row| row.1).max()?.max(1) as f64;
    let mut canvas = Canvas::new(rows.len());
    for (index, (kind, count)) in rows.iter().enumerate() {
        let y = 20.0 + index as f64 * STEP;
        canvas.text(LABELS - 10.0, y + 15.0, "end", kind);
        let class = if *kind == "valid" {
            "a"
        } else if index == 0 {
            "c"
        } else {
            "b"
        };
        let width = *count as f64 / most * (WIDTH - LABELS - 60.0);
        canvas.bar(LABELS, y, width, class);
        canvas.text(LABELS + width + 8.0, y + 15.0, "start", &count.to_string());
    }
    let title = "First fault of each free answer".to_owned();
    let list: Vec<String> = rows.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let caption =
        format!("Free extraction of {} documents, by first fault: {}.", free.n, list.join(", "));
    let svg = canvas.finish(&title, &caption);
    Some(Figure { name: "errors", title, caption, svg })
}

fn validity(record: &Record) -> Option<Figure> {
    if record.methods.is_empty() {
        return None;
    }
    let mut canvas = Canvas::new(record.methods.len() * 2);
    let scale = WIDTH - LABELS - 80.0;
    let mut said = Vec::new();
    for (index, method) in record.methods.iter().enumerate() {
        let top = 20.0 + index as f64 * 2.0 * STEP;
        canvas.text(LABELS - 10.0, top + 25.0, "end", &method.name);
        for (row, (count, share, class)) in
            [(method.valid, method.valid_share, "b"), (method.correct, method.correct_share, "a")]
                .into_iter()
                .enumerate()
        {
            let y = top + row as f64 * (BAR + 2.0);
            canvas.bar(LABELS, y, share.of_all * scale, class);
            canvas.line(LABELS + share.low * scale, LABELS + share.high * scale, y + BAR / 2.0);
            canvas.text(
                LABELS + share.high * scale + 8.0,
                y + 15.0,
                "start",
                &format!("{count}/{}", method.n),
            );
        }
        said.push(format!(
            "{} {} valid and {} correct of {}",
            method.name, method.valid, method.correct, method.n
        ));
    }
    let y = canvas.height - 12.0;
    canvas.text(LABELS, y, "start", "grey: valid, blue: correct, lines: 95 % intervals");
    let title = "Validity is not correctness".to_owned();
    let caption = format!("By method: {}.", said.join("; "));
    let svg = canvas.finish(&title, &caption);
    Some(Figure { name: "validity", title, caption, svg })
}

fn time(record: &Record) -> Option<Figure> {
    let most = record.methods.iter().map(|method| method.ms_per_document).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let mut canvas = Canvas::new(record.methods.len() + 1);
    let scale = (WIDTH - LABELS - 90.0) / most;
    let mut said = Vec::new();
    for (index, method) in record.methods.iter().enumerate() {
        let y = 20.0 + index as f64 * STEP;
        canvas.text(LABELS - 10.0, y + 15.0, "end", &method.name);
        let stages = method.stages;
        let mut x = LABELS;
        for (time, class) in
            [(stages.read, "b"), (stages.write, "a"), (stages.mask, "c"), (stages.other, "d")]
        {
            canvas.bar(x, y, time * scale, class);
            x += time * scale;
        }
        canvas.text(x + 8.0, y + 15.0, "start", &format!("{:.0} ms", method.ms_per_document));
        said.push(format!(
            "{} {:.0} ms (reading {:.0}, writing {:.0}, mask {:.0})",
            method.name, method.ms_per_document, stages.read, stages.write, stages.mask
        ));
    }
    let y = canvas.height - 12.0;
    canvas.text(LABELS, y, "start", "grey: reading, blue: writing, orange: mask, light: the rest");
    let title = "Time for one document".to_owned();
    let caption = format!("Milliseconds by stage: {}.", said.join("; "));
    let svg = canvas.finish(&title, &caption);
    Some(Figure { name: "time", title, caption, svg })
}

fn mask(record: &Record) -> Option<Figure> {
    let view = record.mask_view.as_ref()?;
    let mut canvas = Canvas::new(view.tokens.len());
    let most = view.tokens.iter().map(|token| token.probability).fold(0.0, f64::max).max(1e-9);
    let mut said = Vec::new();
    for (index, token) in view.tokens.iter().enumerate() {
        let y = 20.0 + index as f64 * STEP;
        let verdict = if token.allowed { "allowed" } else { "masked out" };
        canvas.text(LABELS - 10.0, y + 15.0, "end", &format!("{:?}", token.text));
        let width = token.probability / most * (WIDTH - LABELS - 170.0);
        canvas.bar(LABELS, y, width, if token.allowed { "a" } else { "c" });
        let label = format!("{:.1} %, {verdict}", 100.0 * token.probability);
        canvas.text(LABELS + width + 8.0, y + 15.0, "start", &label);
        said.push(format!("{:?} {label}", token.text));
    }
    let title = format!("The mask after {}", view.prefix);
    let caption = format!(
        "Most likely next tokens in {}: {}. The mask removes {:.1} % of the probability.",
        view.document,
        said.join("; "),
        100.0 * view.removed
    );
    let svg = canvas.finish(&title, &caption);
    Some(Figure { name: "mask", title, caption, svg })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place_in_markup() {
        assert_eq!(escape("<a href=\"x\">&\u{1b}"), "&lt;a href=&quot;x&quot;&gt;&amp;\u{fffd}");
        let mut canvas = Canvas::new(1);
        canvas.text(0.0, 0.0, "end", "</text><script>");
        assert!(!canvas.finish("t", "c").contains("<script>"));
    }
}
