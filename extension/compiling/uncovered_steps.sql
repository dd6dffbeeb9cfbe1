create function pgflow.uncovered_steps(flow_slug text)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select coalesce(array_agg(step.step_slug order by step.step_index), '{}')
  from pgflow.steps as step
  where step.flow_slug = uncovered_steps.flow_slug
    and not exists (
      select
      from pgflow.queue_workers as worker
      where worker.queue_name = step.queue_name
        and worker.flow_slug = step.flow_slug
        and worker.is_serving
    );
$function$;

comment on function pgflow.uncovered_steps(text) is
'Internal: the steps of a flow, in order, whose queue no live worker serves.';
