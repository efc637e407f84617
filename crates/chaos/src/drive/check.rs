//! Whether settings fit together.

use crate::{Error, FaultKind, Mode, Settings, TestedStore};

/// Whether the function can get what the settings ask for.
pub(super) fn check(settings: &Settings) -> Result<(), Error> {
    let scripted = settings.faults.iter().find(|kind| !FaultKind::FOR_ANY_FUNCTION.contains(kind));
    if let (Some(_), Some(kind)) = (&settings.template, scripted) {
        return Err(Error::ScriptedFault(*kind));
    }
    if settings.template.is_some() && (settings.mode != Mode::Claim || settings.messages) {
        return Err(Error::ScriptedMode);
    }
    if settings.messages && settings.mode == Mode::Optimistic {
        return Err(Error::MessagesWithoutClaims);
    }
    if settings.template.is_some() && settings.store != TestedStore::DynamoDb {
        return Err(Error::ScriptedStore);
    }
    if (settings.mode.commits() || settings.messages) && !settings.store.commits() {
        return Err(Error::StoreWithoutEffects(settings.mode, settings.store.clone()));
    }
    if !settings.server_settings.is_empty() {
        match settings.store {
            TestedStore::Postgres(None) | TestedStore::Redis(None) => {}
            TestedStore::DynamoDb => return Err(Error::ServerSettings("the embedded DynamoDB")),
            _ => return Err(Error::ServerSettings("that of a URL")),
        }
    }
    if let Some(kind) = settings.faults.iter().find(|kind| !settings.store.has(**kind))
        && (settings.mode.has(*kind) || FaultKind::OF_MESSAGES.contains(kind))
    {
        return Err(Error::StoreFault(*kind, settings.store.clone()));
    }
    match settings.faults.iter().find(|kind| !settings.allows(**kind)) {
        Some(kind) if FaultKind::OF_MESSAGES.contains(kind) => Err(Error::MessageFault(*kind)),
        Some(kind) => Err(Error::TransactionFault(*kind)),
        None => Ok(()),
    }
}
