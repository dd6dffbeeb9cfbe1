create function pgflow.complete_task(run_id uuid, step_slug text, task_index int, output jsonb)
returns setof pgflow.step_tasks
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.settle_tasks(
    array[
      row(
        complete_task.run_id, complete_task.step_slug, complete_task.task_index, null, 'success', complete_task.output, null
      )::pgflow.task_result
    ]
  );

  return query
  select task.*
  from pgflow.step_tasks as task
  where task.run_id = complete_task.run_id
    and task.step_slug = complete_task.step_slug
    and task.task_index = complete_task.task_index;
end
$function$;

comment on function pgflow.complete_task(uuid, text, int, jsonb) is
'Completes a started task with its output and returns the task''s row as it now is. A late or repeated call changes nothing; an unknown task gives no row. As in pgflow 0.14; complete_tasks() does many at once and checks the attempt.';
