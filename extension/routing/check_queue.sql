create function pgflow.check_queue(queue_name text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_queue.queue_name is null
    or to_regclass(format('pgmq.%I', 'q_' || check_queue.queue_name)) is null then
    raise exception using
      errcode = 'PF019',
      message = format('There is no queue %s.', coalesce('"' || check_queue.queue_name || '"', 'null')),
      detail = 'PGMQ has no table ' || coalesce(format('"q_%s"', check_queue.queue_name), 'for it') || '.',
      hint = 'Pass the queue name as pgflow.queues has it, in lower case.';
  end if;
end
$function$;

comment on function pgflow.check_queue(text) is
'Internal: raises PF019 when PGMQ has no table for a queue of this (canonical) name.';
