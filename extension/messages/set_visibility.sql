create function pgflow.set_visibility(messages pgflow.message_ref[], visible_at timestamptz[], reads int default 0)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
begin
  for batch in
    select
      change.queue_name,
      array_agg(change.msg_id order by change.msg_id) as msg_ids,
      array_agg(change.visible_at order by change.msg_id) as visible_at
    from unnest(messages, set_visibility.visible_at) as change (queue_name, msg_id, visible_at)
    inner join pg_class as queue_table
      on queue_table.relname = 'q_' || change.queue_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by change.queue_name
    order by change.queue_name collate "C"
  loop
    execute format(
      $sql$
        with locked as materialized (
          select msg_id from pgmq.%1$I where msg_id = any($1) order by msg_id for update
        ),
        wanted as (
          select msg_id, visible_at from unnest($1, $2) as change (msg_id, visible_at)
        )
        update pgmq.%1$I as message
        set
          vt = wanted.visible_at,
          read_ct = message.read_ct + $3,
          last_read_at = case when $3 > 0 then clock_timestamp() else message.last_read_at end
        from locked
        inner join wanted on wanted.msg_id = locked.msg_id
        where message.msg_id = locked.msg_id
      $sql$,
      'q_' || batch.queue_name
    )
    using batch.msg_ids, batch.visible_at, reads;
  end loop;
end
$function$;

comment on function pgflow.set_visibility(pgflow.message_ref[], timestamptz[], int) is
'Internal: sets when each message can be read again, whichever queues they are on; the two arrays go in step. reads is added to the read counters: 1 where the caller has just read the messages by itself. Messages that are gone are passed over.';
