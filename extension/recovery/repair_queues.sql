create function pgflow.repair_queues(flow_slug text default null)
returns table (queue_name text, action text, count bigint)
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow_slugs text[];
  queue record;
  highest_id bigint;
  made_at timestamptz;
  sent bigint;
begin
  if repair_queues.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = repair_queues.flow_slug) then
    perform pgflow.refuse_unknown_flow(repair_queues.flow_slug);
  end if;

  -- Nobody starts, claims or finishes while queues are made; a claim gives way, the others wait.
  flow_slugs := array(
    select taken.flow_slug
    from (
      -- Not in a condition, which might be looked at before the rows are in order.
      select flow.flow_slug, pgflow.take_flow(flow.flow_slug) as is_there
      from (
        select every.flow_slug
        from pgflow.flows as every
        where every.flow_slug = coalesce(repair_queues.flow_slug, every.flow_slug)
        order by every.flow_slug collate "C"
      ) as flow
    ) as taken
    where taken.is_there
  );

  for queue in
    select
      owner.queue_name,
      owner.physical_created_at,
      physical.created_at,
      physical.created_at is not null and physical.has_queue_table and physical.has_archive_table as is_whole
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select own.queue_name from pgflow.queues as own where own.flow_slug = any(flow_slugs))
    ) as physical
      on physical.queue_name = owner.queue_name
    -- Those alone that are taken: others come and go meanwhile.
    where owner.flow_slug = any(flow_slugs)
    order by owner.queue_name collate "C"
  loop
    if not queue.is_whole or queue.created_at <> queue.physical_created_at then
      -- An id that a worker still holds from the lost queue must never name another task.
      highest_id := pgflow.highest_message_id(queue.queue_name);
      made_at := pgflow.make_queue(queue.queue_name, highest_id);

      update pgflow.queues as owner
      set physical_created_at = made_at
      where owner.queue_name = queue.queue_name;

      return query select queue.queue_name, case when queue.is_whole then 'taken over' else 'made' end, 1::bigint;
    end if;

    execute format(
      $sql$
        with lost as materialized (
          select task.flow_slug, task.run_id, task.step_slug, task.task_index
          from pgflow.step_tasks as task
          where task.queue_name = $1
            and task.status = 'queued'
            and not exists (select from pgmq.%1$I as message where message.msg_id = task.message_id)
          order by task.run_id, task.step_slug, task.task_index
          for no key update skip locked
        ),
        sent as (
          insert into pgmq.%1$I (vt, message)
          select
            clock_timestamp(),
            jsonb_build_object(
              'flow_slug', lost.flow_slug,
              'run_id', lost.run_id,
              'step_slug', lost.step_slug,
              'task_index', lost.task_index
            )
          from lost
          order by lost.run_id, lost.step_slug, lost.task_index
          returning msg_id, message
        )
        update pgflow.step_tasks as task
        set message_id = sent.msg_id
        from sent
        where task.run_id = (sent.message ->> 'run_id')::uuid
          and task.step_slug = sent.message ->> 'step_slug'
          and task.task_index = (sent.message ->> 'task_index')::int
      $sql$,
      'q_' || queue.queue_name
    )
    using queue.queue_name;
    get diagnostics sent = row_count;

    if sent > 0 then
      return query select queue.queue_name, 'sent', sent;
    end if;
  end loop;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      repair_queues.flow_slug,
      (
        select count(*)
        from pgflow.queues as owner
        where owner.flow_slug = coalesce(repair_queues.flow_slug, owner.flow_slug)
      ),
      0,
      sqlerrm
    );
end
$function$;

comment on function pgflow.repair_queues(text) is
'Mends the queues of a flow, or of all: makes an owned queue again that is gone (made), accepts one that somebody made again (taken over), and sends the message of a queued task anew where it is gone (sent, with the number of messages). One row for each thing done, none when all is well, so it can be run again at any time. A queue that is made again continues its numbering. Raises PF018 (unknown flow), PF017 (lock table full: repair flow by flow).';
