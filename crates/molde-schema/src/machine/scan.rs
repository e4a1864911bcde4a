//! Where in a text the last key or item of each open container is.

/// What was found in a text up to some byte.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    open: Vec<Container>,
    /// Where the content of an unfinished string begins.
    string: Option<usize>,
    is_escaped: bool,
    expects_key: bool,
}

/// A container that has not ended.
#[derive(Debug, Clone)]
struct Container {
    is_object: bool,
    /// The content of the last key, or the last item, that has ended by a comma: from and to.
    last: Option<(usize, usize)>,
    /// Where the item after it begins.
    start: usize,
}

impl Scan {
    /// Goes on from `from` up to the end of `text`.
    fn read(&mut self, text: &[u8], from: usize) {
        for (at, &byte) in text.iter().enumerate().skip(from) {
            if let Some(start) = self.string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        if self.expects_key
                            && let Some(container) = self.open.last_mut()
                        {
                            container.last = Some((start, at));
                        }
                        self.string = None;
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.string = Some(at + 1),
                b'{' | b'[' => {
                    let is_object = byte == b'{';
                    self.open.push(Container { is_object, last: None, start: at + 1 });
                    self.expects_key = is_object;
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.expects_key = false;
                }
                b',' => {
                    if let Some(container) = self.open.last_mut() {
                        self.expects_key = container.is_object;
                        if !container.is_object {
                            container.last = Some((container.start, at));
                            container.start = at + 1;
                        }
                    }
                }
                b':' => self.expects_key = false,
                _ => {}
            }
        }
    }

    /// The raw content of the last key that has ended in the container inside `depth` others.
    pub(super) fn last_key<'a>(&self, depth: usize, text: &'a [u8]) -> Option<&'a [u8]> {
        let (from, to) = self.open.get(depth)?.last?;
        text.get(from..to)
    }

    /// The text of the last item that has ended in the array inside `depth` others, where one has
    /// ended and the next has not begun.
    pub(super) fn last_item<'a>(&self, depth: usize, text: &'a [u8]) -> Option<&'a [u8]> {
        let container = self.open.get(depth)?;
        let current = text.get(container.start..)?.trim_ascii();
        if !current.is_empty() {
            return Some(current);
        }
        let (from, to) = container.last?;
        Some(text.get(from..to)?.trim_ascii())
    }
}

/// The scans of the last texts: the next one mostly begins like one of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Scans {
    /// A text that many others begin with, and the last one.
    base: (Vec<u8>, Scan),
    last: (Vec<u8>, Scan),
}

impl Scans {
    /// Scans a text.
    pub(super) fn read(&mut self, text: &[u8]) -> Scan {
        if text.starts_with(&self.last.0) {
            self.base = std::mem::take(&mut self.last);
        } else if !text.starts_with(&self.base.0) {
            self.base = Default::default();
        }
        let mut scan = self.base.1.clone();
        scan.read(text, self.base.0.len());
        self.last = (text.to_vec(), scan.clone());
        scan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &[u8]) -> Scan {
        Scans::default().read(text)
    }

    #[test]
    fn the_last_key_of_each_open_container_is_found() {
        let text = br#"{"a": [1, {"x\"y": "v:{", "k" "#;
        let found = scan(text);
        assert_eq!(found.last_key(0, text), Some(&b"a"[..]));
        assert_eq!(found.last_key(2, text), Some(&b"k"[..]));
        assert_eq!(found.last_item(1, text), Some(&br#"{"x\"y": "v:{", "k""#[..]));
        let text = br#"{"a":"value""#;
        assert_eq!(scan(text).last_key(0, text), Some(&b"a"[..]));
    }

    #[test]
    fn the_last_item_is_found_before_and_after_the_comma() {
        for text in [&br#"[1, "a,]" "#[..], br#"[1, "a,]","#, br#"[1, "a,]" , "#] {
            assert_eq!(scan(text).last_item(0, text), Some(&br#""a,]""#[..]));
        }
    }

    #[test]
    fn scans_do_not_depend_on_the_texts_before() {
        let texts: [&[u8]; 5] =
            [br#"[1, {"a""#, br#"[1, {"b""#, br#"[1, {"b": 2, "c""#, b"[[2,", br#"[1, {"d""#];
        let mut scans = Scans::default();
        for text in texts {
            let (one, two) = (scans.read(text), scan(text));
            assert_eq!(format!("{one:?}"), format!("{two:?}"));
        }
    }
}
