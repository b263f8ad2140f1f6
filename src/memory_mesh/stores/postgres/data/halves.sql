-- The indexes of vectors of versions up to 17, in 32 bits, are replaced by those of today. The new ones are made here for models that had one:
-- without them a search compares all vectors.
DO $do$
DECLARE
  one record;
BEGIN
  FOR one IN SELECT * FROM (<large>) large WHERE to_regclass(replace(name, '_by_half_', '_by_vector_')) IS NOT NULL LOOP
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I %s', one.name, one.definition);
  END LOOP;
  FOR one IN SELECT indexname AS name FROM pg_indexes WHERE schemaname = current_schema() AND indexname ~ '^(memories|records)_by_vector_' LOOP
    EXECUTE format('DROP INDEX %I', one.name);
  END LOOP;
END $do$;
