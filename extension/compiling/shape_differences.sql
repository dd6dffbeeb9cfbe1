create function pgflow.shape_differences(flow_slug text, shape jsonb)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  with compared as (
    select coalesce(persisted.step_index, given.step_index) as step_index, persisted, given
    from pgflow.persisted_steps(shape_differences.flow_slug) as persisted
    full join pgflow.shape_steps(shape_differences.shape) as given
      on given.step_index = persisted.step_index
  ),
  field as (
    select compared.step_index, field.position, field.key, field.persisted, field.given
    from compared
    cross join lateral (
      values
      (1, 'slug', to_jsonb((compared.persisted).step_slug), to_jsonb((compared.given).step_slug)),
      (2, 'stepType', to_jsonb((compared.persisted).step_type), to_jsonb((compared.given).step_type)),
      (3, 'dependencies', to_jsonb((compared.persisted).dep_slugs), to_jsonb((compared.given).dep_slugs)),
      (4, 'whenUnmet', to_jsonb((compared.persisted).when_unmet), to_jsonb((compared.given).when_unmet)),
      (5, 'whenExhausted', to_jsonb((compared.persisted).when_exhausted), to_jsonb((compared.given).when_exhausted)),
      (
        6,
        'requiredInputPattern',
        coalesce((compared.persisted).required_input_pattern, '"none"'),
        coalesce((compared.given).required_input_pattern, '"none"')
      ),
      (
        7,
        'forbiddenInputPattern',
        coalesce((compared.persisted).forbidden_input_pattern, '"none"'),
        coalesce((compared.given).forbidden_input_pattern, '"none"')
      )
    ) as field (position, key, persisted, given)
    -- A step that is missing on one side is one difference, not seven.
    where field.position = 1
      or ((compared.persisted).step_slug is not null and (compared.given).step_slug is not null)
  )
  select coalesce(
    array_agg(
      case
        when field.persisted is null then format(
          'Step at index %s: the database has no such step, the shape has %s.',
          field.step_index,
          field.given
        )
        when field.given is null then format(
          'Step at index %s: the database has %s, the shape has no such step.',
          field.step_index,
          field.persisted
        )
        else format(
          'Step at index %s, %s: the database has %s, the shape has %s.',
          field.step_index,
          field.key,
          field.persisted,
          field.given
        )
      end
      order by field.step_index, field.position
    ),
    '{}'
  )
  from field
  where field.persisted is distinct from field.given;
$function$;

comment on function pgflow.shape_differences(text, jsonb) is
'Internal: how the persisted shape of a flow differs from the one given, a sentence each, with the index and both values; empty when they are equal. Runtime options are no part of it.';
