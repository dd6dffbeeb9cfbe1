create function pgflow.quarantine_message(queue_name text, msg_id bigint)
returns boolean
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  owner text;
  found_count bigint;
begin
  -- Keeps whoever recompiles or deletes the flow from taking the queue away meanwhile.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(queue.flow_slug))
  from pgflow.queues as queue
  where queue.queue_name = quarantine_message.queue_name;

  perform pgflow.check_queue(quarantine_message.queue_name);

  select format('task %s of step "%s" in run %s', task.task_index, task.step_slug, task.run_id)
  into owner
  from pgflow.step_tasks as task
  where task.queue_name = quarantine_message.queue_name
    and task.message_id = quarantine_message.msg_id;

  if owner is not null then
    raise exception using
      errcode = 'PF019',
      message = format('Message %s of queue "%s" is not foreign.', quarantine_message.msg_id, quarantine_message.queue_name),
      detail = format('It belongs to %s.', owner),
      hint = 'Only messages without a task can be moved aside. Let a worker claim it, or skip or fail its step.';
  end if;

  execute format(
    $sql$
      update pgmq.%I as message
      set headers = coalesce(message.headers, '{}') || jsonb_build_object(
        'pgflow_quarantine', jsonb_build_object('at', clock_timestamp(), 'reason', 'no task has this message')
      )
      where message.msg_id = $1
    $sql$,
    'q_' || quarantine_message.queue_name
  )
  using quarantine_message.msg_id;
  get diagnostics found_count = row_count;

  if found_count = 0 then
    return false;
  end if;

  perform pgflow.archive_messages(
    array[row(quarantine_message.queue_name, quarantine_message.msg_id)::pgflow.message_ref]
  );

  return true;
end
$function$;

comment on function pgflow.quarantine_message(text, bigint) is
'Moves a message that has no task from its queue to the queue''s archive, with a header pgflow_quarantine that says when and why. True when it was moved, false when the queue does not hold it. Raises PF019 for an unknown queue, and for a message that belongs to a task.';
