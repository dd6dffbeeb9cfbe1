create function pgflow.pattern_flaws(pattern_key text, pattern jsonb)
returns table (key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    pattern_flaws.pattern_key,
    format(
      'must be {"defined": false} or {"defined": true, "value": {...}}, but is %s',
      pgflow.json_excerpt(pattern_flaws.pattern)
    ),
    false
  where jsonb_typeof(pattern_flaws.pattern) <> 'object'
    or jsonb_typeof(pattern_flaws.pattern -> 'defined') is distinct from 'boolean'
    or (
      pattern_flaws.pattern -> 'defined' = 'true'
      and jsonb_typeof(pattern_flaws.pattern -> 'value') is distinct from 'object'
    )
  union all
  select
    pattern_flaws.pattern_key || '.' || part.key,
    case part.key when 'value' then 'is not used when "defined" is false' else 'is not known' end,
    true
  from jsonb_object_keys(
    case when jsonb_typeof(pattern_flaws.pattern) = 'object' then pattern_flaws.pattern else '{}' end
  ) as part (key)
  where part.key not in ('defined', 'value')
    or (part.key = 'value' and pattern_flaws.pattern -> 'defined' = 'false');
$function$;

comment on function pgflow.pattern_flaws(text, jsonb) is
'Internal: what is wrong with an input pattern of a step, reported under the given key. No rows for null.';
