create function pgflow.visible_messages(queue_name text, max_messages int)
returns bigint[]
language plpgsql
set search_path to pg_catalog, pg_temp
set enable_seqscan to off
as $function$
declare
  head bigint[];
begin
  execute format(
    'select array(select msg_id from pgmq.%I where vt <= $1 order by vt, msg_id limit $2)', 'q_' || visible_messages.queue_name
  )
  into head
  using clock_timestamp(), max_messages;

  return head;
exception
  -- Somebody dropped the queue under us, or put something else in its place. Whether that was a recompilation, the
  -- worker's row tells.
  when undefined_table or undefined_column or undefined_function or wrong_object_type then
    return null;
end
$function$;

comment on function pgflow.visible_messages(text, int) is
'Internal: ids of up to max_messages messages of a queue that can be read, in the order in which they became visible. Null when the queue is gone.';
