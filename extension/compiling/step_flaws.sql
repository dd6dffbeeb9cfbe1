create function pgflow.step_flaws(steps jsonb)
returns table (step_index int, key text, flaw text, is_unknown_key boolean)
language sql
immutable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  with step as (
    select
      (item.position - 1)::int as step_index,
      item.step,
      row_number() over (partition by item.step ->> 'slug' order by item.position) as occurrence
    from jsonb_array_elements(step_flaws.steps) with ordinality as item (step, position)
  ),
  -- Everything that a step of the right type holds, and its slug in any case.
  field as (
    select step.step_index, step.occurrence, field.key, field.value
    from step
    cross join lateral jsonb_each(
      case when jsonb_typeof(step.step) = 'object' then '{"slug": null}' || step.step else '{}' end
    ) as field (key, value)
  )
  select
    step.step_index,
    'steps',
    format('must hold objects, but holds %s', pgflow.json_excerpt(step.step)),
    false
  from step
  where jsonb_typeof(step.step) <> 'object'
  union all
  select
    field.step_index,
    'slug',
    case
      when jsonb_typeof(field.value) <> 'string' then
        format('must be a string, but is %s', pgflow.json_excerpt(field.value))
      when field.occurrence > 1 then 'is that of an earlier step'
      else
        'must be 1 to 128 letters, digits or underscores, not starting with a digit, and not "run"; it is '
        || pgflow.json_excerpt(field.value)
    end,
    false
  from field
  where field.key = 'slug'
    and (
      jsonb_typeof(field.value) <> 'string'
      or field.occurrence > 1
      or not pgflow.is_valid_slug(field.value #>> '{}')
    )
  union all
  select field.step_index, field.key, choice.flaw, false
  from field
  cross join lateral (
    select case field.key
      when 'stepType' then pgflow.choice_flaw(field.value, '{single,map}')
      else pgflow.choice_flaw(field.value, '{fail,skip,skip-cascade}')
    end
  ) as choice (flaw)
  where field.key in ('stepType', 'whenUnmet', 'whenExhausted')
    and choice.flaw is not null
  union all
  select field.step_index, pattern.key, pattern.flaw, pattern.is_unknown_key
  from field
  cross join lateral pgflow.pattern_flaws(field.key, field.value) as pattern
  where field.key in ('requiredInputPattern', 'forbiddenInputPattern')
  union all
  select field.step_index, option.key, option.flaw, option.is_unknown_key
  from field
  cross join lateral pgflow.option_flaws(field.value, '{maxAttempts,baseDelay,timeout,startDelay}') as option
  where field.key = 'options'
  union all
  select dependency.step_index, 'dependencies', dependency.flaw, false
  from pgflow.dependency_flaws(step_flaws.steps) as dependency
  union all
  select field.step_index, field.key, 'is not known', true
  from field
  where field.key not in (
    'slug', 'stepType', 'dependencies', 'whenUnmet', 'whenExhausted',
    'requiredInputPattern', 'forbiddenInputPattern', 'options'
  );
$function$;

comment on function pgflow.step_flaws(jsonb) is
'Internal: what is wrong with an array of steps, one row a flaw, with the zero-based index of the step and the key; is_unknown_key marks what flow mode only notes.';
