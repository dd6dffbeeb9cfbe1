create function pgflow.option_flaws(options jsonb, known_keys text[])
returns table (key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select 'options', format('must be an object, but is %s', pgflow.json_excerpt(option_flaws.options)), false
  where jsonb_typeof(option_flaws.options) <> 'object'
  union all
  select judged.key, judged.flaw, judged.is_unknown_key
  from (
    select
      'options.' || option.key as key,
      case
        when option.key <> all (option_flaws.known_keys) then
          format('is not known; known are %s', array_to_string(option_flaws.known_keys, ', '))
        when jsonb_typeof(option.value) <> 'number' then
          format('must be a whole number, but is %s', pgflow.json_excerpt(option.value))
        when trunc((option.value #>> '{}')::numeric) <> (option.value #>> '{}')::numeric then
          format('must be a whole number, but is %s', pgflow.json_excerpt(option.value))
        when (option.value #>> '{}')::numeric not between range.least and 2147483647 then
          format('must be between %s and 2147483647, but is %s', range.least, pgflow.json_excerpt(option.value))
      end as flaw,
      option.key <> all (option_flaws.known_keys) as is_unknown_key
    from jsonb_each(
      case when jsonb_typeof(option_flaws.options) = 'object' then option_flaws.options else '{}' end
    ) as option (key, value)
    cross join lateral (select case option.key when 'timeout' then 1 else 0 end) as range (least)
  ) as judged
  where judged.flaw is not null;
$function$;

comment on function pgflow.option_flaws(jsonb, text[]) is
'Internal: what is wrong with the runtime options of a shape or of one of its steps: whole numbers, timeout from 1, the others from 0. known_keys: the options there are. No rows for null.';
