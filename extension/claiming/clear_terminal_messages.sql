create function pgflow.clear_terminal_messages(queue_name text, msg_ids bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- A task that is still active under a step or run that has ended has nothing to wait for: it ends as they did.
  update pgflow.step_tasks as task
  set
    status = case when state.status = 'skipped' then 'skipped' else 'cancelled' end,
    skipped_at = case when state.status = 'skipped' then clock_timestamp() end,
    cancelled_at = case when state.status <> 'skipped' then clock_timestamp() end
  from (
    select active.run_id, active.step_slug, active.task_index
    from unnest(msg_ids) as passed (msg_id)
    cross join lateral (
      select every.run_id, every.step_slug, every.task_index
      from pgflow.step_tasks as every
      where every.queue_name = clear_terminal_messages.queue_name
        and every.message_id = passed.msg_id
        and pgflow.task_is_active(every.status)
      limit 1
      for no key update skip locked
    ) as active
    limit cardinality(msg_ids)
  ) as leftover
  inner join pgflow.step_states as state
    on state.run_id = leftover.run_id
    and state.step_slug = leftover.step_slug
  where task.run_id = leftover.run_id
    and task.step_slug = leftover.step_slug
    and task.task_index = leftover.task_index;

  perform pgflow.archive_messages(
    array(
      select row(clear_terminal_messages.queue_name, message.msg_id)::pgflow.message_ref
      from unnest(msg_ids) as message (msg_id)
    )
  );
end
$function$;

comment on function pgflow.clear_terminal_messages(text, bigint[]) is
'Internal: archives messages whose task, step or run has ended, and ends a task that was left active under them.';
