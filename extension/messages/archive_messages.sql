create function pgflow.archive_messages(messages pgflow.message_ref[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
begin
  for batch in
    select
      message.queue_name,
      array_agg(distinct message.msg_id) as msg_ids
    from unnest(messages) as message
    -- A queue that somebody dropped has no messages left; that must not make a finished task fail.
    inner join pg_class as queue_table
      on queue_table.relname = 'q_' || message.queue_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by message.queue_name
    order by message.queue_name collate "C"
  loop
    -- Not pgmq.archive(): that raises when the archive has the id already.
    execute format(
      $sql$
        with locked as materialized (
          select msg_id from pgmq.%1$I where msg_id = any($1) order by msg_id for update
        ),
        taken as (
          delete from pgmq.%1$I as message
          using locked
          where message.msg_id = locked.msg_id
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
