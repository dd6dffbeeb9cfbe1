create function pgflow.restore_queue(queue_name text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  made_at timestamptz;
begin
  if (select physical.is_taken from pgflow.physical_queues(array[restore_queue.queue_name]) as physical) then
    return;
  end if;

  -- Whoever repairs the flow has taken it; only then it is known whether the queue is still gone.
  if not pgflow.take_flow(
    (select owner.flow_slug from pgflow.queues as owner where owner.queue_name = restore_queue.queue_name)
  ) then
    return;
  end if;

  if (select physical.is_taken from pgflow.physical_queues(array[restore_queue.queue_name]) as physical) then
    return;
  end if;

  made_at := pgflow.make_queue(restore_queue.queue_name, pgflow.highest_message_id(restore_queue.queue_name));

  update pgflow.queues as owner
  set physical_created_at = made_at
  where owner.queue_name = restore_queue.queue_name;
end
$function$;

comment on function pgflow.restore_queue(text) is
'Internal: makes an owned queue (canonical name) again when nothing of it is left, and continues its numbering. What was in it stays lost: repair_queues() sends it anew.';
