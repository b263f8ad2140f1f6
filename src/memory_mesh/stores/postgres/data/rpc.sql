-- The functions for clients over HTTP (PostgREST, Supabase). JSON travels as text, in both directions: so numbers keep their digits,
-- and the limit of PostgREST for the number of rows does not cut an answer.

CREATE OR REPLACE FUNCTION mesh_read(function text, payload text) RETURNS text LANGUAGE plpgsql STABLE SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
DECLARE
  given jsonb := payload::jsonb;
  answer text;
BEGIN
  CASE function
    WHEN 'mesh_find' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_find(given) one;
    WHEN 'mesh_ids' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_ids(given) one;
    WHEN 'mesh_nearest' THEN SELECT coalesce(json_agg(one), '[]') INTO answer FROM mesh_nearest(given) one;
    WHEN 'mesh_indexed' THEN SELECT coalesce(json_agg(json_build_array(<indexed_json>)), '[]') INTO answer FROM mesh_indexed(given) one;
    WHEN 'mesh_count' THEN answer := mesh_count(given);
    WHEN 'mesh_tally' THEN answer := mesh_tally(given);
    WHEN 'mesh_changes' THEN answer := mesh_changes(given);
    WHEN 'mesh_matching' THEN answer := mesh_matching(given);
    WHEN 'mesh_statistics' THEN answer := mesh_statistics(given);
    WHEN 'mesh_count_words' THEN answer := mesh_count_words(given);
    WHEN 'mesh_speakers' THEN answer := mesh_speakers(given);
    WHEN 'mesh_search' THEN SELECT json_agg(json_build_array(one.part, one.facts, <indexed_json>)) INTO answer FROM mesh_search(given) one;
    WHEN 'mesh_data_version' THEN answer := to_json(mesh_data_version(given));
    ELSE RAISE EXCEPTION 'unknown function %', function USING ERRCODE = 'MM004';
  END CASE;
  RETURN coalesce(answer, 'null');
EXCEPTION WHEN OTHERS THEN
  PERFORM mesh_raise(SQLSTATE, SQLERRM);
END $sql$;

CREATE OR REPLACE FUNCTION mesh_write(tenant text, payload text) RETURNS text LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $sql$
BEGIN
  -- The handler of errors has a subtransaction, which the data versions do not know of.
  RETURN (mesh_apply(tenant, payload::jsonb) - 'before' - 'after')::text;
EXCEPTION WHEN OTHERS THEN
  PERFORM mesh_raise(SQLSTATE, SQLERRM);
END $sql$;

-- PostgREST answers an error whose SQLSTATE begins with PT with the status in it. 409: an id is taken. 412: what the caller read has
-- changed. 422: invalid input. 423: another change was in the way, try again. 426: the store has another schema.
CREATE OR REPLACE FUNCTION mesh_raise(state text, message text) RETURNS void LANGUAGE plpgsql AS $sql$
BEGIN
  RAISE EXCEPTION USING MESSAGE = message, ERRCODE = CASE
    WHEN state = '23505' THEN 'PT409' WHEN state = 'MM002' THEN 'PT412' WHEN state = 'MM003' THEN 'PT426'
    WHEN state = 'MM004' OR left(state, 2) IN ('22', '54') THEN 'PT422' WHEN state IN ('40001', '40P01', '55P03') THEN 'PT423'
    ELSE state END;
END $sql$;
