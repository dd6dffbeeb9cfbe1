create function pgflow.start_flow(flow_slug text, input jsonb, run_id uuid default null)
returns setof pgflow.runs
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  new_run_id uuid := coalesce(start_flow.run_id, pgflow.new_run_id());
begin
  perform pgflow.create_runs(start_flow.flow_slug, array[start_flow.input], array[new_run_id]);

  return query
  select run.* from pgflow.runs as run where run.run_id = new_run_id;
end
$function$;

comment on function pgflow.start_flow(text, jsonb, uuid) is
'Starts a run of a flow and returns its row. input is any JSON value; flows with a root map step need an array. run_id may be chosen by the caller. Raises PF018 (unknown flow), PF019 (bad input), PF007 (a queue of the flow is gone). As in pgflow 0.14.';
