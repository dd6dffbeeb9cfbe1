create function pgflow.ownership_faults(only_flow text default null)
returns table (code text, subject text, detail text)
language sql
stable
set search_path to pg_catalog, pg_temp
as $function$
  select
    'route',
    format('flow "%s"', flow.flow_slug),
    fault.fault
  from pgflow.flows as flow
  cross join lateral pgflow.route_faults(flow.flow_slug) as fault
  where only_flow is null or flow.flow_slug = only_flow
  union all
  select
    'queue_without_use',
    format('queue "%s"', queue.queue_name),
    format('it belongs to %s, which does not route to it', pgflow.queue_owner(queue))
  from pgflow.queues as queue
  where (only_flow is null or queue.flow_slug = only_flow)
    and not exists (
      select
      from pgflow.flows as flow
      where flow.flow_slug = queue.flow_slug
        and flow.queue_mode = 'flow'
        and queue.step_slug is null
        and queue.queue_name = lower(flow.flow_slug collate "C")
    )
    and not exists (
      select
      from pgflow.steps as step
      where step.flow_slug = queue.flow_slug
        and step.queue_name = queue.queue_name
    )
  union all
  select
    'task_on_foreign_queue',
    format('task %s of step "%s" of run %s', task.task_index, task.step_slug, task.run_id),
    format('its message was sent to queue "%s", which does not belong to flow "%s"', task.queue_name, task.flow_slug)
  from pgflow.step_tasks as task
  where (only_flow is null or task.flow_slug = only_flow)
    and pgflow.task_is_active(task.status)
    and not exists (
      select
      from pgflow.queues as queue
      where queue.queue_name = task.queue_name
        and queue.flow_slug = task.flow_slug
        and (queue.step_slug is null or queue.step_slug = task.step_slug)
    );
$function$;

comment on function pgflow.ownership_faults(text) is
'Internal: routes that differ from their witnesses, owned queues that nothing routes to, and active tasks whose message is on a queue that is not theirs; of one flow or of all.';
