create function pgflow.shape_flaws(shape jsonb)
returns table (step_index int, step_slug text, key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with flaws as (
    select
      null::int as step_index,
      'shape' as key,
      format('must be an object, but is %s', coalesce(pgflow.json_excerpt(shape_flaws.shape), 'null')) as flaw,
      false as is_unknown_key
    where jsonb_typeof(shape_flaws.shape) is distinct from 'object'
    union all
    select
      null,
      'steps',
      format('must be an array, but is %s', coalesce(pgflow.json_excerpt(shape_flaws.shape -> 'steps'), 'missing')),
      false
    where jsonb_typeof(shape_flaws.shape) = 'object'
      and jsonb_typeof(shape_flaws.shape -> 'steps') is distinct from 'array'
    union all
    select null, option.key, option.flaw, option.is_unknown_key
    from pgflow.option_flaws(shape_flaws.shape -> 'options', '{maxAttempts,baseDelay,timeout}') as option
    union all
    select null, part.key, 'is not known', true
    from jsonb_object_keys(
      case when jsonb_typeof(shape_flaws.shape) = 'object' then shape_flaws.shape else '{}' end
    ) as part (key)
    where part.key not in ('steps', 'options')
    union all
    select step.step_index, step.key, step.flaw, step.is_unknown_key
    from pgflow.step_flaws(
      case when jsonb_typeof(shape_flaws.shape -> 'steps') = 'array' then shape_flaws.shape -> 'steps' else '[]' end
    ) as step
  )
  select
    flaws.step_index,
    shape_flaws.shape -> 'steps' -> flaws.step_index ->> 'slug',
    flaws.key,
    flaws.flaw,
    flaws.is_unknown_key
  from flaws
  order by flaws.step_index nulls first, flaws.key collate "C", flaws.flaw collate "C";
$function$;

comment on function pgflow.shape_flaws(jsonb) is
'Internal: everything that is wrong with a flow''s shape, those of the whole first, then step by step. Empty: the shape can be read by shape_steps(). is_unknown_key marks what flow mode only notes.';
