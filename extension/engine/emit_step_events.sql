create function pgflow.emit_step_events(run_ids uuid[], step_slugs text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  if pgflow.event_sink() is null then
    return;
  end if;

  perform pgflow.emit_event(changed.event, changed.payload)
  from (
    select
      'step:' || state.step_slug || ':' || state.status as event,
      jsonb_build_object(
        'event_type', 'step:' || state.status,
        'run_id', state.run_id,
        'step_slug', state.step_slug,
        'status', state.status
      )
      || case state.status
        when 'started' then jsonb_build_object(
          'started_at', state.started_at,
          'remaining_tasks', state.remaining_tasks,
          'remaining_deps', state.remaining_deps
        )
        when 'completed' then jsonb_build_object(
          'output', state.output,
          'completed_at', state.completed_at
        )
        || case
          when state.initial_tasks = 0 then jsonb_build_object(
            'started_at', state.started_at,
            'remaining_tasks', 0,
            'remaining_deps', 0
          )
          else '{}'
        end
        when 'failed' then jsonb_build_object(
          'error_message', state.error_message,
          'failed_at', state.failed_at
        )
        else jsonb_build_object(
          'flow_slug', state.flow_slug,
          'skip_reason', state.skip_reason,
          'skipped_at', state.skipped_at
        )
        || jsonb_strip_nulls(jsonb_build_object('error_message', state.error_message))
      end as payload
    from unnest(run_ids, step_slugs) as ended (run_id, step_slug)
    inner join pgflow.step_states as state
      on state.run_id = ended.run_id
      and state.step_slug = ended.step_slug
    inner join pgflow.steps as step
      on step.flow_slug = state.flow_slug
      and step.step_slug = state.step_slug
    order by state.run_id, step.step_index
    offset 0
  ) as changed;
end
$function$;

comment on function pgflow.emit_step_events(uuid[], text[]) is
'Internal: sends the event of the status that each step of a run now has, in the order of the steps.';
