-- The indexes of vectors of versions up to 17, in 32 bits, are replaced by those of today. The new ones are made here for models that had one:
-- without them a search compares all vectors.
DO $do$
DECLARE
  statement text;
BEGIN
  -- Not in a loop over a query: a table that is being read gets no index.
  FOREACH statement IN ARRAY
    ARRAY(SELECT format('CREATE INDEX IF NOT EXISTS %I %s', name, definition) FROM (<large>) large WHERE to_regclass(replace(name, '_by_half_', '_by_vector_')) IS NOT NULL)
    || ARRAY(SELECT format('DROP INDEX %I', indexname) FROM pg_indexes WHERE schemaname = current_schema() AND indexname ~ '^(memories|records)_by_vector_')
  LOOP
    EXECUTE statement;
  END LOOP;
END $do$;
