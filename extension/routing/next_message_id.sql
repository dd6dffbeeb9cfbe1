create function pgflow.next_message_id(queue_name text, highest_id bigint)
returns bigint
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  ids regclass;
  last_id bigint;
  next_id bigint;
begin
  -- The table's lock before that of its sequence: whoever drops them has them in this order.
  execute format('select from pgmq.%I limit 0', 'q_' || next_message_id.queue_name);
  ids := pg_get_serial_sequence(format('pgmq.%I', 'q_' || next_message_id.queue_name), 'msg_id');
  last_id := pg_sequence_last_value(ids);

  if last_id >= next_message_id.highest_id then
    return last_id + 1;
  end if;

  -- A sequence that was restarted and not used since tells its last value only to who reads it.
  execute format('select sequence.last_value + sequence.is_called::int from %s as sequence', ids)
  into next_id;

  return next_id;
exception
  when undefined_table then
    return null;
end
$function$;

comment on function pgflow.next_message_id(text, bigint) is
'Internal: the id that the next message of a queue (canonical name) gets; quick when it is above highest_id. Null when the queue''s table is gone.';
