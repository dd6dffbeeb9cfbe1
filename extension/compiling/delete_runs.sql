create function pgflow.delete_runs(flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  delete from pgflow.step_tasks as task
  using pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug
    and task.run_id = run.run_id;

  delete from pgflow.step_states as state
  using pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug
    and state.run_id = run.run_id;

  delete from pgflow.runs as run
  where run.flow_slug = delete_runs.flow_slug;
end
$function$;

comment on function pgflow.delete_runs(text) is
'Internal: deletes every run of a flow, with its steps'' states and its tasks. The caller holds the flow''s row, so that no other one works on them.';
