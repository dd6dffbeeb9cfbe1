create function pgflow.start_flow_with_states(flow_slug text, input jsonb, run_id uuid default null)
returns jsonb
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $function$
declare
  new_run_id uuid := coalesce(start_flow_with_states.run_id, pgflow.new_run_id());
begin
  perform pgflow.create_runs(start_flow_with_states.flow_slug, array[start_flow_with_states.input], array[new_run_id]);

  return pgflow.get_run_with_states(new_run_id);
end
$function$;

comment on function pgflow.start_flow_with_states(text, jsonb, uuid) is
'Starts a run as start_flow() does and returns it as get_run_with_states() does. Needs no right on any table, so that clients can be granted just this. As in pgflow 0.14.';
