-- One row for each idempotency record. Instants are milliseconds since 1970:
-- SELECT key, status, to_timestamp(expires_at / 1000.0) FROM ...
CREATE TABLE IF NOT EXISTS {table} (
    key text COLLATE "C" PRIMARY KEY,
    status text NOT NULL,
    owner uuid,
    last_owner uuid,
    failed_attempts bigint NOT NULL,
    lost_attempts bigint NOT NULL,
    consecutive_losses bigint NOT NULL,
    fence bigint NOT NULL,
    lease_until bigint,
    expires_at bigint NOT NULL,
    fingerprint text,
    result text,
    steps text,
    outbox text,
    payload text,
    error_type text,
    application text,
    provenance json,
    -- The nine minutes in which it expires. A completion expires a little later than its claim, mostly in the same slot: then
    -- no index has to change, and the new row can be in the same page (`pg_stat_user_tables.n_tup_hot_upd`).
    sweep_slot bigint GENERATED ALWAYS AS (expires_at >> 19) STORED
) WITH (fillfactor = 45); -- Leaves room in each page for the rows that replace those of claims.
-- For tables that were made before there was this column; others have it.
ALTER TABLE {table} ADD COLUMN IF NOT EXISTS sweep_slot bigint GENERATED ALWAYS AS (expires_at >> 19) STORED;
-- Serves the removal of expired records.
CREATE INDEX IF NOT EXISTS {index} ON {table} (sweep_slot);
