create function pgflow.attempt_inputs(tasks pgflow.step_tasks[])
returns table (message_id bigint, input jsonb, flow_input jsonb, flaw text)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  task pgflow.step_tasks;
begin
  begin
    return query
    select built.message_id, built.input, built.flow_input, null::text from pgflow.build_inputs(tasks) as built;
    return;
  exception
    -- Outputs that PostgreSQL can hold one by one may be more than it can hold together.
    when program_limit_exceeded then
      null;
  end;

  -- One by one, so that only the tasks suffer whose input it is.
  foreach task in array tasks
  loop
    begin
      return query
      select built.message_id, built.input, built.flow_input, null::text from pgflow.build_inputs(array[task]) as built;
    exception
      when program_limit_exceeded then
        return query select task.message_id, null::jsonb, null::jsonb, 'its input can''t be built: ' || sqlerrm;
    end;
  end loop;
end
$function$;

comment on function pgflow.attempt_inputs(pgflow.step_tasks[]) is
'Internal: build_inputs(), with a flaw in place of an input that PostgreSQL can''t hold, so that such a task can fail and does not keep the others from being claimed.';
