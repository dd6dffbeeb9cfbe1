create function pgflow.set_visibility(messages pgflow.message_ref[], visible_at timestamptz[], reads int default 0)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
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
    order by changing.queue_name collate "C"
  loop
    perform pgflow.set_queue_visibility(batch.queue_name, batch.msg_ids, batch.visible_at, reads);
  end loop;
end
$function$;

comment on function pgflow.set_visibility(pgflow.message_ref[], timestamptz[], int) is
'Internal: sets when each message can be read again, whichever queues they are on; the two arrays go in step. reads is added to the read counters: 1 where the caller has just read the messages by itself. Messages that are gone are passed over.';
