create function pgflow.start_flows(flow_slug text, inputs jsonb[])
returns setof pgflow.runs
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  new_run_ids uuid[] := array(select pgflow.new_run_id() from unnest(inputs));
begin
  if new_run_ids = '{}' then
    return;
  end if;

  perform pgflow.create_runs(start_flows.flow_slug, start_flows.inputs, new_run_ids);

  return query
  select run.*
  from unnest(new_run_ids) with ordinality as new_run (run_id, position)
  cross join lateral (select found.* from pgflow.runs as found where found.run_id = new_run.run_id limit 1) as run
  order by new_run.position;
end
$function$;

comment on function pgflow.start_flows(text, jsonb[]) is
'Starts one run of a flow for each input, all of them or none, and returns their rows in the order of the inputs. Null or no inputs give no rows. Raises PF018 (unknown flow), PF019 (bad input, with its position), PF007 (a queue of the flow is gone).';
