create function pgflow.take_flow(flow_slug text)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pg_advisory_xact_lock(pgflow.flow_key(take_flow.flow_slug));

  -- Whoever writes to the tables by hand holds this row by a foreign key.
  perform
  from pgflow.flows as flow
  where flow.flow_slug = take_flow.flow_slug
  for update;

  return found;
end
$function$;

comment on function pgflow.take_flow(text) is
'Internal: keeps everybody else away from a flow to the end of the transaction, and tells whether it is there. Waits for transactions that work on it; those that come later wait, and claims give way. Before everything else of the flow: its queues, runs, tasks and messages come after it.';
