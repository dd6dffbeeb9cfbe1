create function pgflow.persisted_steps(flow_slug text)
returns table (
  step_index int,
  step_slug text,
  step_type text,
  dep_slugs text[],
  when_unmet text,
  when_exhausted text,
  required_input_pattern jsonb,
  forbidden_input_pattern jsonb
)
language sql
stable
parallel safe
set search_path to pg_catalog, pg_temp
as $function$
  select
    step.step_index,
    step.step_slug,
    step.step_type,
    array(
      select dep.dep_slug
      from pgflow.deps as dep
      where dep.flow_slug = step.flow_slug
        and dep.step_slug = step.step_slug
      order by dep.dep_slug collate "C"
    ),
    step.when_unmet,
    step.when_exhausted,
    step.required_input_pattern,
    step.forbidden_input_pattern
  from pgflow.steps as step
  where step.flow_slug = persisted_steps.flow_slug
  order by step.step_index;
$function$;

comment on function pgflow.persisted_steps(text) is
'Internal: the persisted shape of a flow, in the form that shape_steps() gives, but for the runtime options, which are no part of it.';
