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
  step_slugs text[];
  status text;
  shape_changes text[] := '{}';
  routing_changes text[] := '{}';
begin
  if coalesce(ensure_flow_compiled.queue_mode not in ('flow', 'step'), true) then
    raise exception using
      errcode = 'PF019',
      message = format('Queue mode %s is not known.', coalesce(to_json(ensure_flow_compiled.queue_mode)::text, 'null')),
      detail = format('It was given for flow "%s".', ensure_flow_compiled.flow_slug),
      hint = 'Use ''flow'' (one queue for all steps) or ''step'' (a queue for every step).';
  end if;

  perform pgflow.check_shape(ensure_flow_compiled.flow_slug, ensure_flow_compiled.shape, ensure_flow_compiled.queue_mode);
  step_slugs := pgflow.shape_slugs(ensure_flow_compiled.shape);

  perform pgflow.check_caller_routes(
    ensure_flow_compiled.flow_slug,
    pgflow.derived_routes(ensure_flow_compiled.flow_slug, ensure_flow_compiled.queue_mode, step_slugs),
    ensure_flow_compiled.routes
  );

  perform pgflow.lock_slug(ensure_flow_compiled.flow_slug);

  if exists (select from pgflow.flows as flow where flow.flow_slug = ensure_flow_compiled.flow_slug) then
    shape_changes := pgflow.shape_differences(ensure_flow_compiled.flow_slug, ensure_flow_compiled.shape);
    routing_changes := pgflow.routing_differences(
      ensure_flow_compiled.flow_slug,
      ensure_flow_compiled.queue_mode,
      step_slugs
    );

    case
      when shape_changes = '{}' and routing_changes = '{}' then
        status := 'verified';
      when coalesce(ensure_flow_compiled.allow_data_loss, false) or pgflow.is_local() then
        perform pgflow.recompile_flow(
          ensure_flow_compiled.flow_slug,
          ensure_flow_compiled.shape,
          ensure_flow_compiled.queue_mode
        );
        status := 'recompiled';
      when shape_changes <> '{}' then
        status := 'mismatch';
      else
        perform pgflow.refuse_routing(
          ensure_flow_compiled.flow_slug,
          ensure_flow_compiled.queue_mode,
          step_slugs,
          routing_changes
        );
    end case;
  else
    perform pgflow.compile_flow(
      ensure_flow_compiled.flow_slug,
      ensure_flow_compiled.shape,
      ensure_flow_compiled.queue_mode
    );
    status := 'compiled';
  end if;

  return pgflow.compile_report(ensure_flow_compiled.flow_slug, status, shape_changes || routing_changes);
end
$function$;

comment on function pgflow.ensure_flow_compiled(text, jsonb, boolean, text, jsonb) is
'Makes sure that a flow is there exactly as its complete shape, queue mode (flow or step) and routes say: compiles it when it is new, else verifies it and writes nothing. routes is the caller''s own route map, [{"step_slug", "queue_name"}, ...]; null lets PostgreSQL derive it. Where data may be lost (allow_data_loss, or is_local()), any difference leads to destructive recompilation. Returns {"status": compiled | verified | recompiled | mismatch, "differences", "queue_mode", "routes", "uncovered"}, the last three as persisted; steps without a live worker also go out as a NOTICE. Raises PF008 (shape), PF019 (queue mode), PF001, PF002, PF003, PF006, PF015 (names), PF004, PF005 (queues of others), PF007 (routing differs), PF017 (lock table full).';
