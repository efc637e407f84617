-- Serves relays and recoveries. It has only the records with something left, so others cost it nothing.
CREATE INDEX IF NOT EXISTS {unfinished} ON {table} (key) WHERE outbox IS NOT NULL OR payload IS NOT NULL;
