create function pgflow.fail_task(run_id uuid, step_slug text, task_index int, error_message text)
returns setof pgflow.step_tasks
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.settle_tasks(
    array[
      row(
        fail_task.run_id, fail_task.step_slug, fail_task.task_index, null, 'failure', null, fail_task.error_message
      )::pgflow.task_result
    ]
  );

  return query
  select task.*
  from pgflow.step_tasks as task
  where task.run_id = fail_task.run_id
    and task.step_slug = fail_task.step_slug
    and task.task_index = fail_task.task_index;
end
$function$;

comment on function pgflow.fail_task(uuid, text, int, text) is
'Reports a failed attempt of a started task and returns the task''s row as it now is: queued again for a retry, or failed. A late or repeated call changes nothing; an unknown task gives no row. As in pgflow 0.14; fail_tasks() does many at once and checks the attempt.';
