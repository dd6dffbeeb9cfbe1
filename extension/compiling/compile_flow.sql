create function pgflow.compile_flow(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.insert_flow(
    compile_flow.flow_slug,
    compile_flow.queue_mode,
    pgflow.shape_slugs(compile_flow.shape),
    (compile_flow.shape #>> '{options,maxAttempts}')::numeric::int,
    (compile_flow.shape #>> '{options,baseDelay}')::numeric::int,
    (compile_flow.shape #>> '{options,timeout}')::numeric::int
  );

  perform pgflow.insert_steps(compile_flow.flow_slug, compile_flow.shape, compile_flow.queue_mode);
end
$function$;

comment on function pgflow.compile_flow(text, jsonb, text) is
'Internal: makes a flow that does not exist yet, with its queues, steps and dependencies, from a checked shape. Raises what own_queues() raises.';
