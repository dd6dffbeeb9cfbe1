create function pgflow.archive_messages(messages pgflow.message_ref[])
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
    select leaving.queue_name, leaving.msg_ids
    from (
      select message.queue_name, array_agg(distinct message.msg_id) as msg_ids
      from unnest(messages) as message
      group by message.queue_name
    ) as leaving
    -- A queue that somebody dropped has no messages left; that must not make a finished task fail.
    where exists (
      select
      from pg_class as queue_table
      where queue_table.relname = 'q_' || leaving.queue_name
        and queue_table.relnamespace = 'pgmq'::regnamespace
    )
    order by leaving.queue_name collate "C"
  loop
    -- Not pgmq.archive(): that raises when the archive has the id already.
    execute format(
      $sql$
        with taken as (
          delete from pgmq.%1$I as message
          where message.msg_id = any($1)
          returning
            message.msg_id, message.read_ct, message.enqueued_at, message.last_read_at,
            message.vt, message.message, message.headers
        )
        insert into pgmq.%2$I as archive (msg_id, read_ct, enqueued_at, last_read_at, archived_at, vt, message, headers)
        select msg_id, read_ct, enqueued_at, last_read_at, clock_timestamp(), vt, message, headers
        from taken
        on conflict (msg_id) do update set
          read_ct = excluded.read_ct,
          enqueued_at = excluded.enqueued_at,
          last_read_at = excluded.last_read_at,
          archived_at = excluded.archived_at,
          vt = excluded.vt,
          message = excluded.message,
          headers = excluded.headers
      $sql$,
      'q_' || batch.queue_name,
      'a_' || batch.queue_name
    )
    using batch.msg_ids;
  end loop;
end
$function$;

comment on function pgflow.archive_messages(pgflow.message_ref[]) is
'Internal: moves messages from their queues to the archives of these, whichever queues they are on. Messages that are gone already are passed over. Locks messages in the order of queue and id.';
