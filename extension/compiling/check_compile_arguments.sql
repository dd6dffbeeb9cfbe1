create function pgflow.check_compile_arguments(flow_slug text, shape jsonb, queue_mode text, routes jsonb)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if coalesce(check_compile_arguments.queue_mode not in ('flow', 'step'), true) then
    raise exception using
      errcode = 'PF019',
      message = format(
        'Queue mode %s is not known.',
        coalesce(to_json(check_compile_arguments.queue_mode)::text, 'null')
      ),
      detail = format('It was given for flow "%s".', check_compile_arguments.flow_slug),
      hint = 'Use ''flow'' (one queue for all steps) or ''step'' (a queue for every step).';
  end if;

  perform pgflow.check_shape(
    check_compile_arguments.flow_slug,
    check_compile_arguments.shape,
    check_compile_arguments.queue_mode
  );

  perform pgflow.check_caller_routes(
    check_compile_arguments.flow_slug,
    pgflow.derived_routes(
      check_compile_arguments.flow_slug,
      check_compile_arguments.queue_mode,
      pgflow.shape_slugs(check_compile_arguments.shape)
    ),
    check_compile_arguments.routes
  );
end
$function$;

comment on function pgflow.check_compile_arguments(text, jsonb, text, jsonb) is
'Internal: returns when the arguments of ensure_flow_compiled() describe a flow, whether it exists or not. Raises PF019 (queue mode), what check_shape() and flow_routes() raise, PF007 (the caller''s routes are not the derived ones).';
