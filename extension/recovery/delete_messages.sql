create function pgflow.delete_messages(messages pgflow.message_ref[])
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  batch record;
  deleted_here bigint;
  deleted bigint := 0;
begin
  for batch in
    select
      queue_table.relname as table_name,
      array_agg(distinct message.msg_id) as msg_ids
    from unnest(messages) as message
    -- Ended tasks have their messages in the archive. One that is still on the queue, for whatever reason, must go too:
    -- without its task it would be unsupported work.
    cross join lateral (
      values
      (1, 'q_' || message.queue_name),
      (2, 'a_' || message.queue_name)
    ) as place (position, table_name)
    -- A queue that somebody dropped has no messages left.
    inner join pg_class as queue_table
      on queue_table.relname = place.table_name
      and queue_table.relnamespace = 'pgmq'::regnamespace
    group by message.queue_name, place.position, queue_table.relname
    order by message.queue_name collate "C", place.position
  loop
    execute format(
      $sql$
        with locked as materialized (
          select msg_id from pgmq.%1$I where msg_id = any($1) order by msg_id for update
        )
        delete from pgmq.%1$I as message
        using locked
        where message.msg_id = locked.msg_id
      $sql$,
      batch.table_name
    )
    using batch.msg_ids;

    get diagnostics deleted_here = row_count;
    deleted := deleted + deleted_here;
  end loop;

  return deleted;
end
$function$;

comment on function pgflow.delete_messages(pgflow.message_ref[]) is
'Internal: deletes messages for good, from their queues and from the archives of these, and returns how many there were. Locks messages in the order of queue and id.';
