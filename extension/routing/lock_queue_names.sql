create function pgflow.lock_queue_names(queue_names text[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgmq.acquire_queue_lock(wanted.queue_name)
  from (
    select distinct name.queue_name collate "C" as queue_name
    from unnest(queue_names) as name (queue_name)
    order by queue_name
  ) as wanted;
end
$function$;

comment on function pgflow.lock_queue_names(text[]) is
'Internal: keeps others from making or dropping queues of these (canonical) names until the end of the transaction, by PGMQ''s own lock. In name order, so ask for all that a change needs at once: after the flow, before the tables of its queues.';
