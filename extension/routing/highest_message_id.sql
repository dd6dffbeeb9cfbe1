create function pgflow.highest_message_id(queue_name text)
returns bigint
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  highest bigint;
  found_id bigint;
  physical record;
begin
  select coalesce(max(task.message_id), 0)
  into highest
  from pgflow.step_tasks as task
  where task.queue_name = highest_message_id.queue_name;

  select queue.*
  into physical
  from pgflow.physical_queues(array[highest_message_id.queue_name]) as queue;

  if physical.has_queue_table then
    -- The sequence remembers what was sent and deleted; a queue that somebody refilled can be ahead of it.
    execute format(
      'select greatest(max(message.msg_id), pg_sequence_last_value(pg_get_serial_sequence(%L, ''msg_id''))) '
      'from pgmq.%I as message',
      format('pgmq.%I', 'q_' || highest_message_id.queue_name),
      'q_' || highest_message_id.queue_name
    )
    into found_id;
    highest := greatest(highest, found_id);
  end if;

  if physical.has_archive_table then
    execute format(
      'select max(message.msg_id) from pgmq.%I as message',
      'a_' || highest_message_id.queue_name
    )
    into found_id;
    highest := greatest(highest, found_id);
  end if;

  return highest;
end
$function$;

comment on function pgflow.highest_message_id(text) is
'Internal: the highest message id that is known to have been sent to a queue (canonical name), from its sequence, its messages, its archive and the tasks that were sent to it; 0 when there is none. The queue may be gone.';
