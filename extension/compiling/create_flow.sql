create function pgflow.create_flow(
  flow_slug text,
  max_attempts int default null,
  base_delay int default null,
  timeout int default null
)
returns pgflow.flows
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
begin
  perform pgflow.lock_slug(create_flow.flow_slug);

  select existing.*
  into flow
  from pgflow.flows as existing
  where existing.flow_slug = create_flow.flow_slug;

  if found then
    if flow.queue_mode = 'flow' then
      perform pgflow.restore_queue(lower(flow.flow_slug collate "C"));
    end if;
    return flow;
  end if;

  return pgflow.insert_flow(
    create_flow.flow_slug,
    'flow',
    '{}',
    create_flow.max_attempts,
    create_flow.base_delay,
    create_flow.timeout
  );
end
$function$;

comment on function pgflow.create_flow(text, int, int, int) is
'Makes a flow-mode flow without steps, and its queue, and returns its row. max_attempts counts starts (null: 3), base_delay (null: 5) and timeout (null: 60) are in seconds. A flow that exists, in either mode, is returned as it is; when the queue of a flow-mode flow is gone, it is made again. Raises PF015 (slug too long for a queue), PF004, PF005, PF017; a bad slug violates slug_is_valid.';
