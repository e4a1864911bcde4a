//! `$ref`, `$dynamicRef`, `$recursiveRef`.

use crate::document::{Value, ValueId};
use crate::ir::{Applicator, Demand};

use super::resource::ResourceId;
use super::{Loader, Location, Scope};

impl Loader<'_> {
    pub(super) fn load_reference(
        &mut self,
        location: &mut Location<'_>,
        keyword: &str,
        value: ValueId,
    ) {
        let Value::String(reference) = self.document.get(value) else {
            return self.malform(location.pointer, keyword, "must be a string");
        };
        let scope = location.scope;
        let target = if keyword == "$recursiveRef" {
            if reference != "#" {
                return self.malform(location.pointer, keyword, "must be `#`");
            }
            Ok(self.resources.recursive(scope.resource))
        } else {
            self.resources.resolve(self.document, scope.resource, reference)
        };
        let target = match target {
            Ok(target) => target,
            Err(reason) => return self.refuse(location.pointer, keyword, reason),
        };
        let bound = target
            .dynamic
            .as_deref()
            .filter(|_| keyword != "$ref")
            .and_then(|name| self.environments.binding(scope.environment, name));
        let node = match bound {
            Some(value) if value != target.value => {
                let (resource, pointer) = self.home(value, target.resource);
                self.node_in(value, pointer, resource, scope)
            }
            _ => self.node_in(target.value, target.pointer, target.resource, scope),
        };
        location.node.applicators.push(Applicator::All(Demand::holds(node)));
    }

    /// The node of a location in another resource, entered from `scope`.
    fn node_in(
        &mut self,
        value: ValueId,
        pointer: String,
        resource: ResourceId,
        scope: Scope,
    ) -> crate::ir::NodeId {
        let environment = if resource == scope.resource {
            scope.environment
        } else {
            self.environments.enter(scope.environment, self.resources.get(resource))
        };
        self.node(value, pointer, Scope { resource, environment })
    }

    /// The resource in which a dynamic anchor stands, and its pointer.
    fn home(&self, value: ValueId, default: ResourceId) -> (ResourceId, String) {
        let found = self.resources.with_dynamic_anchor(value);
        let resource = found.unwrap_or(default);
        (resource, self.resources.get(resource).pointer.clone())
    }
}
