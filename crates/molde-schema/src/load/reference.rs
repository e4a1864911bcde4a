//! `$ref` within the schema text.

use crate::document::{Value, ValueId, join};
use crate::ir::{Applicator, NodeId};

use super::{Loader, Location};

impl Loader<'_> {
    pub(super) fn load_ref(&mut self, location: &mut Location<'_>, value: ValueId) {
        let Value::String(reference) = self.document.get(value) else {
            return self.malform(location.pointer, "$ref", "must be a string");
        };
        match self.resolve(location.resource, reference) {
            Ok(target) => location.node.applicators.push(Applicator::All(target)),
            Err(reason) => self.refuse(location.pointer, "$ref", reason),
        }
    }

    /// What `#` means in the schema at `value`: the schema itself if it has a URI of its own.
    pub(super) fn resource_at(&self, value: ValueId, enclosing: ValueId) -> ValueId {
        let Value::Object(members) = self.document.get(value) else { return enclosing };
        let own = members.get(self.dialect.id_keyword()).is_some_and(
            |&id| matches!(self.document.get(id), Value::String(uri) if !uri.starts_with('#')),
        );
        // Drafts up to 7 ignore what stands beside a `$ref`, an id as well.
        let hidden = self.dialect.ref_hides_siblings() && members.contains_key("$ref");
        if own && !hidden { value } else { enclosing }
    }

    fn resolve(&mut self, resource: ValueId, reference: &str) -> Result<NodeId, String> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = if uri.is_empty() {
            resource
        } else if self.root_uri() == Some(uri) {
            self.document.root()
        } else {
            return Err(format!(
                "points to `{reference}`: only references within the schema text are supported"
            ));
        };
        let fragment = percent_decode(fragment)
            .ok_or_else(|| format!("has an invalid percent-encoding in `{reference}`"))?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let target = self
                .document
                .resolve(resource, &fragment)
                .ok_or_else(|| format!("points to `{reference}`, where there is nothing"))?;
            let inner = self.innermost_resource(resource, &fragment);
            let base = self.pointer_of(resource);
            return Ok(self.node(target, format!("{base}{fragment}"), inner));
        }
        match self.anchors(resource, &fragment).as_slice() {
            [(target, pointer)] => {
                let pointer = format!("{}{pointer}", self.pointer_of(resource));
                Ok(self.node(*target, pointer, resource))
            }
            [] => Err(format!("points to the anchor `{fragment}`, which is not defined")),
            _ => Err(format!("points to the anchor `{fragment}`, which is defined twice")),
        }
    }

    fn root_uri(&self) -> Option<&str> {
        let Value::Object(members) = self.document.get(self.document.root()) else { return None };
        match self.document.get(*members.get(self.dialect.id_keyword())?) {
            Value::String(uri) => Some(uri.trim_end_matches('#')),
            _ => None,
        }
    }

    /// The resource that encloses the target of a pointer: references there are relative to it.
    fn innermost_resource(&self, resource: ValueId, pointer: &str) -> ValueId {
        let ends = pointer.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
        ends.filter_map(|end| self.document.resolve(resource, &pointer[..end]))
            .fold(resource, |enclosing, value| self.resource_at(value, enclosing))
    }

    /// Pointer of a resource that has been loaded already; the root's is empty.
    fn pointer_of(&self, resource: ValueId) -> String {
        self.by_value
            .get(&resource)
            .map_or_else(String::new, |&id| self.nodes[id.0 as usize].pointer.clone())
    }

    /// Every value of a resource with the given anchor, and its pointer from the resource.
    fn anchors(&self, resource: ValueId, name: &str) -> Vec<(ValueId, String)> {
        let mut found = Vec::new();
        let mut open = vec![(resource, String::new())];
        while let Some((value, pointer)) = open.pop() {
            match self.document.get(value) {
                Value::Array(items) => open.extend(
                    items.iter().enumerate().map(|(at, &id)| (id, join(&pointer, &at.to_string()))),
                ),
                Value::Object(members) => {
                    let is = |keyword: &str, text: &str| {
                        members.get(keyword).is_some_and(
                            |&id| matches!(self.document.get(id), Value::String(s) if s == text),
                        )
                    };
                    if is("$anchor", name) || is(self.dialect.id_keyword(), &format!("#{name}")) {
                        found.push((value, pointer.clone()));
                    }
                    open.extend(
                        members
                            .iter()
                            .filter(|(key, _)| *key != "enum" && *key != "const")
                            .map(|(key, &id)| (id, join(&pointer, key))),
                    );
                }
                _ => {}
            }
        }
        found
    }
}

/// Decodes `%HH` in a URI fragment; `None` if it is malformed or not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::percent_decode;

    #[test]
    fn fragments_are_percent_decoded() {
        assert_eq!(percent_decode("/a%25b/%C3%B1").as_deref(), Some("/a%b/ñ"));
        for broken in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(percent_decode(broken), None, "{broken}");
        }
    }
}
