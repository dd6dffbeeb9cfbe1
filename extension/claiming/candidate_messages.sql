create function pgflow.candidate_messages(queue_name text, max_messages int)
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  seen_at timestamptz := clock_timestamp();
  head bigint[];
  only_queued boolean;
  candidates bigint[];
begin
  begin
    execute format(
      $sql$
        select array_agg(head.msg_id order by head.msg_id), bool_and(task.status is not distinct from 'queued')
        from (
          select message.msg_id, message.vt
          from pgmq.%I as message
          where message.vt <= $1
          order by message.vt, message.msg_id
          limit $3
        ) as head
        left join pgflow.step_tasks as task
          on task.queue_name = $2
          and task.message_id = head.msg_id
      $sql$,
      'q_' || candidate_messages.queue_name
    )
    into head, only_queued
    using seen_at, candidate_messages.queue_name, max_messages;
  exception
    -- Somebody dropped the queue under us. Whether that was a recompilation, the worker's row tells.
    when undefined_table then
      return null;
  end;

  if head is null then
    return '{}';
  end if;

  -- Anything but plain queued work is looked at as it stands, by whoever sees it first.
  if not only_queued then
    return head;
  end if;

  -- Locking the tasks here lets several workers of one queue pass each other instead of picking the same head.
  execute format(
    $sql$
      select array_agg(candidate.msg_id order by candidate.msg_id)
      from (
        select message.msg_id
        from pgmq.%I as message
        inner join pgflow.step_tasks as task
          on task.queue_name = $2
          and task.message_id = message.msg_id
        where message.vt <= $1
          and task.status = 'queued'
        order by message.vt, message.msg_id
        limit $3
        for no key update of task skip locked
      ) as candidate
    $sql$,
    'q_' || candidate_messages.queue_name
  )
  into candidates
  using seen_at, candidate_messages.queue_name, max_messages;

  return coalesce(candidates, '{}');
end
$function$;

comment on function pgflow.candidate_messages(text, int) is
'Internal: ids of up to max_messages visible messages of a queue that this session could claim, oldest first. Their messages are not locked. Null when the queue is gone.';
