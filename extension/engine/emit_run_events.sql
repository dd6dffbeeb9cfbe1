create function pgflow.emit_run_events(run_ids uuid[], error_messages text[] default null)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if pgflow.event_sink() is null then
    return;
  end if;

  perform
    pgflow.emit_event(
      'run:' || run.status,
      jsonb_build_object(
        'event_type', 'run:' || run.status,
        'run_id', run.run_id,
        'flow_slug', run.flow_slug,
        'status', run.status
      )
      || case run.status
        when 'started' then jsonb_build_object(
          'input', run.input,
          'remaining_steps', run.remaining_steps,
          'started_at', run.started_at
        )
        when 'completed' then jsonb_build_object(
          'output', run.output,
          'completed_at', run.completed_at
        )
        else jsonb_strip_nulls(jsonb_build_object('error_message', changed.error_message))
          || jsonb_build_object('failed_at', run.failed_at)
      end
    )
  from unnest(run_ids, error_messages) as changed (run_id, error_message)
  inner join pgflow.runs as run on run.run_id = changed.run_id;
end
$function$;

comment on function pgflow.emit_run_events(uuid[], text[]) is
'Internal: sends the event of the status that each run now has. error_messages goes in step with run_ids.';
