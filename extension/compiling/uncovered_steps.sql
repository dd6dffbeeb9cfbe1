create function pgflow.uncovered_steps(flow_slug text)
returns text[]
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select coalesce(array_agg(step.step_slug order by step.step_index), '{}')
  from pgflow.flows as flow
  inner join pgflow.steps as step
    on step.flow_slug = flow.flow_slug
  where flow.flow_slug = uncovered_steps.flow_slug
    and not exists (
      select
      from pgflow.workers as worker
      where pgflow.worker_serves(worker, flow, step)
        and pgflow.worker_is_live(worker)
    );
$function$;

comment on function pgflow.uncovered_steps(text) is
'Internal: the steps of a flow, in order, whose queue no live worker serves.';
