create function pgflow.lock_tasks(queue_name text, msg_ids bigint[])
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- Skipping what is locked can still wait: when one update of a row commits at the moment of the look, the next one is
  -- waited for. So the order is the one in which results lock tasks, and no two sessions ever wait for each other.
  return array(
    select locked.message_id
    from (
      select found.run_id, found.step_slug, found.task_index, step.step_index
      from unnest(lock_tasks.msg_ids) as passed (msg_id)
      cross join lateral (
        select task.flow_slug, task.run_id, task.step_slug, task.task_index
        from pgflow.step_tasks as task
        where task.queue_name = lock_tasks.queue_name
          and task.message_id = passed.msg_id
        limit 1
      ) as found
      cross join lateral (
        select every.step_index
        from pgflow.steps as every
        where every.flow_slug = found.flow_slug
          and every.step_slug = found.step_slug
        limit 1
      ) as step
      order by found.run_id, step.step_index, found.task_index
      limit cardinality(lock_tasks.msg_ids)
    ) as named
    cross join lateral (
      select task.message_id
      from pgflow.step_tasks as task
      where task.run_id = named.run_id
        and task.step_slug = named.step_slug
        and task.task_index = named.task_index
      limit 1
      for no key update skip locked
    ) as locked
  );
end
$function$;

comment on function pgflow.lock_tasks(text, bigint[]) is
'Internal: locks the tasks that these messages name and gives the ids of those it got. A task that another session holds is being claimed, finished or ended there: passed over.';
