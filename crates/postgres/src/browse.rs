//! Pages of all records, or of those in which something is left, in the order of their keys.

use std::num::NonZeroUsize;

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    clock::{BoxFuture, Timestamp},
    store::StoreError,
};
use tokio_postgres::types::Type;

use crate::{
    connection::Statement,
    error::{self, Failure},
    parameters::number,
    retry::budget,
    row::{decode, key},
    store::PostgresStore,
};

impl PostgresStore {
    async fn page_after(
        &self,
        page: &str,
        after: Option<&Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> Result<Page, Failure> {
        let budget = budget(&self.config, call_deadline);
        // No key is empty, so all come after the empty one.
        let after = after.map_or("", Cursor::as_str).to_owned();
        let most = i64::try_from(limit.get()).unwrap_or(i64::MAX);
        let parameters = vec![(Box::new(after) as _, Type::TEXT), number(most)];
        let statement = Statement::new(page, parameters);
        let rows = self.ask("list", statement, &budget).await?;
        let corrupt = |problem| error::corrupt(&self.config, problem);
        let mut items = Vec::with_capacity(rows.len());
        for row in &rows {
            let record = decode(row).map_err(|problem| corrupt(problem).report(false));
            items.push((key(row).map_err(corrupt)?, record));
        }
        let is_full = items.len() == limit.get();
        let last = items.last().filter(|_| is_full);
        let next = last.map(|(key, _)| Cursor::from_text(key.as_str()));
        Ok(Page::new(items, next))
    }

    async fn count_all(&self, call_deadline: Timestamp) -> Result<u64, Failure> {
        let budget = budget(&self.config, call_deadline);
        let statement = Statement::new(&*self.statements.count, vec![]);
        let rows = self.ask("count", statement, &budget).await?;
        Ok(rows.first().map_or(0, counted))
    }
}

/// The number in the first column.
pub(crate) fn counted(row: &tokio_postgres::Row) -> u64 {
    row.try_get::<_, i64>(0).ok().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
}

impl Browse for PostgresStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let page = self.page_after(&self.statements.page, after, limit, call_deadline).await;
            page.map_err(|failure| failure.report(false))
        })
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let [messages, work] = &self.statements.left;
            let statement = match left {
                Left::Messages => messages,
                Left::Work => work,
            };
            let page = self.page_after(statement, after, limit, call_deadline).await;
            page.map_err(|failure| failure.report(false))
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            self.count_all(call_deadline).await.map_err(|failure| failure.report(false))
        })
    }
}
