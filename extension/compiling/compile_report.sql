create function pgflow.compile_report(flow_slug text, status text, differences text[])
returns jsonb
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  uncovered constant text[] := pgflow.uncovered_steps(compile_report.flow_slug);
begin
  if uncovered <> '{}' then
    raise notice using
      message = format(
        'Flow "%s": no live worker serves %s of its steps: %s.',
        compile_report.flow_slug,
        cardinality(uncovered),
        array_to_string(uncovered[:20], ', ') || case when cardinality(uncovered) > 20 then ', ...' else '' end
      ),
      detail = 'Their work waits in its queues until a worker starts.';
  end if;

  return (
    select jsonb_build_object(
      'status', compile_report.status,
      'differences', to_jsonb(compile_report.differences),
      'queue_mode', flow.queue_mode,
      'routes', coalesce(persisted.routes, '[]'),
      'uncovered', to_jsonb(uncovered)
    )
    from pgflow.flows as flow
    cross join lateral (
      select jsonb_agg(
        jsonb_build_object('step_slug', step.step_slug, 'queue_name', step.queue_name)
        order by step.step_index
      )
      from pgflow.steps as step
      where step.flow_slug = flow.flow_slug
    ) as persisted (routes)
    where flow.flow_slug = compile_report.flow_slug
  );
end
$function$;

comment on function pgflow.compile_report(text, text, text[]) is
'Internal: the result of ensure_flow_compiled() from what is persisted now, with a NOTICE about steps that no live worker serves.';
