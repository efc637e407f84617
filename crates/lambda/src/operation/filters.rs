//! The filters of an operation (`queue`, `topic`, ...).

use super::{
    Operation,
    filter::{Filter, Found, Kind, is_arn, may_meet},
};
use crate::error::{ConfigError, FilterMistake};

impl Operation {
    /// Adds a filter: records have to pass this one, too.
    pub(crate) fn only_from(mut self, kind: Kind, name: String) -> Self {
        self.filters.push(Filter { kind, name });
        self.changed()
    }

    /// Whether the operation takes records with these names or ARNs. Without filters it takes all
    /// records of its source.
    pub(crate) fn takes(&self, found: &[Found<'_>]) -> bool {
        self.filters.iter().all(|filter| found.iter().any(|found| filter.takes(*found)))
    }

    /// Whether the operation has a filter.
    pub(crate) const fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether the operation has a filter with this setter.
    pub(crate) fn is_from(&self, setting: &str) -> bool {
        self.filters.iter().any(|filter| filter.kind.setting() == setting)
    }

    /// Whether it takes every record that the other takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.filters.iter().all(|one| other.filters.iter().any(|other| one.covers(other)))
    }

    /// The names in the filters, for errors.
    pub(crate) fn filter_names(&self) -> impl Iterator<Item = &str> {
        self.filters.iter().map(|filter| &*filter.name)
    }

    /// Refuses a filter that no record of this source can pass.
    pub(crate) fn check_filters_of(&self, source: &str) -> Result<(), ConfigError> {
        let topic = self.filters.iter().find(|filter| filter.kind == Kind::Topic);
        match topic.filter(|topic| source == "kafka" && is_arn(&topic.name)) {
            Some(topic) => Err(self.mistaken(topic, FilterMistake::KafkaArn)),
            None => Ok(()),
        }
    }

    fn mistaken(&self, filter: &Filter, mistake: FilterMistake) -> ConfigError {
        let (setting, name) = (filter.kind.setting(), filter.name.clone());
        ConfigError::FilterName { operation: self.shared_name(), setting, name, mistake }
    }

    /// Refuses filters that no record can pass together.
    pub(super) fn check_filters(&self) -> Result<(), ConfigError> {
        for (nth, filter) in self.filters.iter().enumerate() {
            if let Some(mistake) = filter.mistake() {
                return Err(self.mistaken(filter, mistake));
            }
            let mut before = self.filters.iter().take(nth);
            if let Some(before) = before.find(|before| !may_meet(before, filter)) {
                let (before, setting) = (before.kind.setting(), filter.kind.setting());
                let operation = self.shared_name();
                return Err(ConfigError::Filters { operation, before, setting });
            }
        }
        Ok(())
    }
}
