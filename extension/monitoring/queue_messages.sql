create function pgflow.queue_messages(flow_slug text default null)
returns table (queue_name text, msg_id bigint, enqueued_at timestamptz, visible_at timestamptz)
language plpgsql
stable
cost 1000
set search_path to pg_catalog, pg_temp
as $function$
declare
  owned_queue text;
begin
  for owned_queue in
    select queue.queue_name
    from pgflow.queues as queue
    where queue_messages.flow_slug is null
      or queue.flow_slug = queue_messages.flow_slug
    -- The order in which recompilation locks queue tables: in another one the two could deadlock.
    order by queue.queue_name collate "C"
  loop
    begin
      return query execute format(
        'select $1, message.msg_id, message.enqueued_at, message.vt from pgmq.%I as message', 'q_' || owned_queue
      )
      using owned_queue;
    exception
      -- A queue that somebody dropped, or put something else in its place, holds no messages.
      when undefined_table or undefined_column or undefined_function or wrong_object_type then
        null;
    end;
  end loop;
end
$function$;

comment on function pgflow.queue_messages(text) is
'Internal: every message, visible or not, on the owned queues of one flow or of all.';
