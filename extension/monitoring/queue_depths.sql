create function pgflow.queue_depths(flow_slug text default null)
returns table (
  queue_name text,
  messages_total bigint,
  messages_visible bigint,
  messages_in_flight bigint,
  messages_delayed bigint,
  oldest_enqueued_at timestamptz,
  visible_since timestamptz
)
language plpgsql
stable
cost 1000
rows 10
set search_path to pg_catalog, pg_temp
as $function$
declare
  owned_queue text;
begin
  for owned_queue in
    select queue.queue_name
    from pgflow.queues as queue
    where queue_depths.flow_slug is null
      or queue.flow_slug = queue_depths.flow_slug
    -- The order in which recompilation locks queue tables: in another one the two could deadlock.
    order by queue.queue_name collate "C"
  loop
    begin
      return query execute format(
        $sql$
          select
            $1,
            count(*),
            count(*) filter (where message.vt <= $2),
            count(*) filter (where message.vt > $2 and started.message_id is not null),
            count(*) filter (where message.vt > $2 and started.message_id is null),
            min(message.enqueued_at),
            min(message.vt) filter (where message.vt <= $2)
          from pgmq.%I as message
          left join (
            select task.message_id
            from pgflow.step_tasks as task
            where task.queue_name = $1
              and task.status = 'started'
          ) as started on started.message_id = message.msg_id
        $sql$,
        'q_' || owned_queue
      )
      using owned_queue, clock_timestamp();
    exception
      -- A view of what is wrong must not itself fail over a queue that somebody dropped, or put something else in its place.
      when undefined_table or undefined_column or undefined_function or wrong_object_type then
        return query select owned_queue, null::bigint, null::bigint, null::bigint, null::bigint, null::timestamptz, null::timestamptz;
    end;
  end loop;
end
$function$;

comment on function pgflow.queue_depths(text) is
'How many messages each owned queue (of one flow, or of all) holds: visible ones can be read now; those in flight belong to a started task and are hidden; delayed ones are hidden for another reason, such as a start delay, a retry or a read without a claim. visible_since: when the one that waits longest became visible. Nulls: the queue''s table is gone. Reads each queue once.';
