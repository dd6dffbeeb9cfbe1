create function pgflow.ensure_flow_compiled(
  flow_slug text,
  shape jsonb,
  allow_data_loss boolean default false,
  queue_mode text default 'flow',
  routes jsonb default null
)
returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  verdict record;
begin
  perform pgflow.check_compile_arguments(
    ensure_flow_compiled.flow_slug,
    ensure_flow_compiled.shape,
    ensure_flow_compiled.queue_mode,
    ensure_flow_compiled.routes
  );

  perform pgflow.lock_slug(ensure_flow_compiled.flow_slug);

  select judged.status, judged.differences
  into verdict
  from pgflow.compile_verdict(
    ensure_flow_compiled.flow_slug,
    ensure_flow_compiled.shape,
    ensure_flow_compiled.allow_data_loss,
    ensure_flow_compiled.queue_mode
  ) as judged;

  case verdict.status
    when 'compiled' then
      perform pgflow.compile_flow(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.shape,
        ensure_flow_compiled.queue_mode
      );
    when 'recompiled' then
      perform pgflow.recompile_flow(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.shape,
        ensure_flow_compiled.queue_mode
      );
    when 'refused' then
      perform pgflow.refuse_routing(
        ensure_flow_compiled.flow_slug,
        ensure_flow_compiled.queue_mode,
        pgflow.shape_slugs(ensure_flow_compiled.shape),
        verdict.differences
      );
    else
      -- Verified or a mismatch: not a row is written, so that any number of workers can start at once.
  end case;

  return pgflow.compile_report(ensure_flow_compiled.flow_slug, verdict.status, verdict.differences);
end
$function$;

comment on function pgflow.ensure_flow_compiled(text, jsonb, boolean, text, jsonb) is
'Makes sure that a flow is there exactly as its complete shape, queue mode (flow or step) and routes say: compiles it when it is new, else verifies it and writes nothing. routes is the caller''s own route map, [{"step_slug", "queue_name"}, ...]; null lets PostgreSQL derive it. Where data may be lost (allow_data_loss, or is_local()), any difference leads to destructive recompilation. Returns {"status": compiled | verified | recompiled | mismatch, "differences", "queue_mode", "routes", "uncovered"}, the last three as persisted; steps without a live worker also go out as a NOTICE. Raises PF008 (shape), PF019 (queue mode), PF001, PF002, PF003, PF006, PF015 (names), PF004, PF005 (queues of others), PF007 (routing differs), PF017 (lock table full).';
