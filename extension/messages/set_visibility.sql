create function pgflow.set_visibility(messages pgflow.message_ref[], visible_at timestamptz[], reads int default 0)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key takes the ids in their order, and never reads a queue as a whole.
set enable_indexscan to on
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
declare
  batch record;
begin
  for batch in
    select changing.queue_name, changing.msg_ids, changing.visible_at
    from (
      select
        change.queue_name,
        array_agg(change.msg_id order by change.msg_id) as msg_ids,
        array_agg(change.visible_at order by change.msg_id) as visible_at
      from unnest(messages, set_visibility.visible_at) as change (queue_name, msg_id, visible_at)
      group by change.queue_name
    ) as changing
    where exists (
      select
      from pg_class as queue_table
      where queue_table.relname = 'q_' || changing.queue_name
        and queue_table.relnamespace = 'pgmq'::regnamespace
    )
    order by changing.queue_name collate "C"
  loop
    execute format(
      $sql$
        update pgmq.%I as message
        set
          vt = ($2)[array_position($1, message.msg_id)],
          read_ct = message.read_ct + $3,
          last_read_at = case when $3 > 0 then clock_timestamp() else message.last_read_at end
        where message.msg_id = any($1)
      $sql$,
      'q_' || batch.queue_name
    )
    using batch.msg_ids, batch.visible_at, reads;
  end loop;
end
$function$;

comment on function pgflow.set_visibility(pgflow.message_ref[], timestamptz[], int) is
'Internal: sets when each message can be read again, whichever queues they are on; the two arrays go in step. reads is added to the read counters: 1 where the caller has just read the messages by itself. Messages that are gone are passed over.';
