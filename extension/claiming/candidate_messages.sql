create function pgflow.candidate_messages(queue_name text, max_messages int)
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set jit to off
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
        -- Each id names at most one task. Saying so keeps the planner from reading all tasks of the queue instead.
        left join lateral (
          select found.status
          from pgflow.step_tasks as found
          where found.queue_name = $2
            and found.message_id = head.msg_id
          limit 1
        ) as task on true
      $sql$,
      'q_' || candidate_messages.queue_name
    )
    into head, only_queued
    using seen_at, candidate_messages.queue_name, max_messages;
  exception
    -- Somebody dropped the queue under us, or put something else in its place. Whether that was a recompilation, the
    -- worker's row tells.
    when undefined_table or undefined_column or undefined_function or wrong_object_type then
      return null;
  end;

  if head is null then
    return '{}';
  end if;

  -- Anything but plain queued work is looked at as it stands, by whoever sees it first.
  if not only_queued then
    return head;
  end if;

  -- Locking the tasks here lets several workers of one queue pass each other instead of picking the same head. The
  -- inner limit bounds what one look can cost while others hold the head, and leaves room for many workers that each
  -- keep the transaction of their claim open; the outer one stops locking at enough.
  execute format(
    $sql$
      select array_agg(candidate.msg_id order by candidate.msg_id)
      from (
        select head.msg_id
        from (
          select message.msg_id
          from pgmq.%I as message
          where message.vt <= $1
          order by message.vt, message.msg_id
          limit greatest(1000, 8::bigint * $3)
        ) as head
        cross join lateral (
          select found.task_index
          from pgflow.step_tasks as found
          where found.queue_name = $2
            and found.message_id = head.msg_id
            and found.status = 'queued'
          limit 1
          for no key update skip locked
        ) as task
        limit $3
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
