create function pgflow.lock_queues(flow_slug text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  table_to_lock text;
begin
  for table_to_lock in
    select relation.name
    from pgflow.queues as owner
    inner join pgflow.physical_queues(
      array(select own.queue_name from pgflow.queues as own where own.flow_slug = lock_queues.flow_slug)
    ) as physical
      on physical.queue_name = owner.queue_name
    cross join lateral (
      values
      ('q_' || owner.queue_name, physical.has_queue_table),
      ('a_' || owner.queue_name, physical.has_archive_table)
    ) as relation (name, is_there)
    where owner.flow_slug = lock_queues.flow_slug
      and relation.is_there
    order by owner.queue_name collate "C", relation.name collate "C" desc
  loop
    execute format('lock table pgmq.%I in access exclusive mode', table_to_lock);
  end loop;
end
$function$;

comment on function pgflow.lock_queues(text) is
'Internal: locks the queues of a flow against everybody until the end of the transaction, in name order. Waits for whoever reads or sends at the moment.';
