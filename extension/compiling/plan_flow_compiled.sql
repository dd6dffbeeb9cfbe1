create function pgflow.plan_flow_compiled(
  flow_slug text,
  shape jsonb,
  allow_data_loss boolean default false,
  queue_mode text default 'flow',
  routes jsonb default null
)
returns jsonb
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  step_slugs text[];
  verdict record;
  plan jsonb := pgflow.empty_plan();
  error_state text;
  error_message text;
  error_detail text;
  error_hint text;
begin
  perform pgflow.check_compile_arguments(
    plan_flow_compiled.flow_slug,
    plan_flow_compiled.shape,
    plan_flow_compiled.queue_mode,
    plan_flow_compiled.routes
  );

  step_slugs := pgflow.shape_slugs(plan_flow_compiled.shape);
  plan := plan || jsonb_build_object(
    'routes',
    pgflow.derived_routes(plan_flow_compiled.flow_slug, plan_flow_compiled.queue_mode, step_slugs)
  );

  select judged.status, judged.differences
  into verdict
  from pgflow.compile_verdict(
    plan_flow_compiled.flow_slug,
    plan_flow_compiled.shape,
    plan_flow_compiled.allow_data_loss,
    plan_flow_compiled.queue_mode
  ) as judged;

  plan := plan || jsonb_build_object('differences', verdict.differences);

  if verdict.status = 'refused' then
    perform pgflow.refuse_routing(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.differences
    );
  end if;

  if verdict.status in ('compiled', 'recompiled') then
    plan := plan || pgflow.planned_collisions(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.status = 'recompiled'
    );

    perform pgflow.check_queues(
      plan_flow_compiled.flow_slug,
      plan_flow_compiled.queue_mode,
      step_slugs,
      verdict.status = 'recompiled'
    );

    plan := plan || pgflow.planned_changes(plan_flow_compiled.flow_slug, plan_flow_compiled.queue_mode, step_slugs);
  end if;

  return plan || jsonb_build_object('status', verdict.status);
exception
  -- Whatever compiling would raise is what the caller wants to know.
  when others then
    get stacked diagnostics
      error_state = returned_sqlstate,
      error_message = message_text,
      error_detail = pg_exception_detail,
      error_hint = pg_exception_hint;

    return plan || jsonb_build_object(
      'status', 'refused',
      'error', jsonb_build_object(
        'sqlstate', error_state,
        'message', error_message,
        'detail', error_detail,
        'hint', error_hint
      )
    );
end
$function$;

comment on function pgflow.plan_flow_compiled(text, jsonb, boolean, text, jsonb) is
'What ensure_flow_compiled() would do with the same arguments, now: {"status": compiled | verified | recompiled | mismatch | refused, "error": null or {"sqlstate", "message", "detail", "hint"}, "differences", "routes": the derived ones, "creates" and "drops": queue names, "loses": {"runs", "tasks", "messages"}, "collisions": [{"queue_name", "owner_flow", "owner_step"}]}. Changes nothing, keeps no worker waiting and raises nothing that compiling would raise.';
