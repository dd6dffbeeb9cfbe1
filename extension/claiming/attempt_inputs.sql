create function pgflow.attempt_inputs(tasks pgflow.step_tasks[])
returns table (
  message_id bigint,
  flow_slug text,
  run_id uuid,
  step_slug text,
  task_index int,
  attempts_count int,
  input jsonb,
  flow_input jsonb,
  flaw text
)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  task pgflow.step_tasks;
begin
  begin
    return query
    select built.*, null::text from pgflow.build_inputs(tasks) as built;
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
      select built.*, null::text from pgflow.build_inputs(array[task]) as built;
    exception
      when program_limit_exceeded then
        return query
        select
          task.message_id, task.flow_slug, task.run_id, task.step_slug, task.task_index, task.attempts_count,
          null::jsonb, null::jsonb, 'its input can''t be built: ' || sqlerrm;
    end;
  end loop;
end
$function$;

comment on function pgflow.attempt_inputs(pgflow.step_tasks[]) is
'Internal: build_inputs(), with a flaw in place of an input that PostgreSQL can''t hold, so that such a task can fail and does not keep the others from being claimed.';
