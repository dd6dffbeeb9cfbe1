create function pgflow.set_queue_visibility(
  queue_name text,
  msg_ids bigint[],
  visible_at timestamptz[],
  reads int default 0
)
returns int
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key takes the ids in their order, and never reads a queue as a whole.
set enable_indexscan to on
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
declare
  changed int;
begin
  if to_regclass(format('pgmq.%I', 'q_' || set_queue_visibility.queue_name)) is null then
    return 0;
  end if;

  execute format(
    $sql$
      update pgmq.%I as message
      set
        vt = ($2)[array_position($1, message.msg_id)],
        read_ct = message.read_ct + $3,
        last_read_at = case when $3 > 0 then clock_timestamp() else message.last_read_at end
      where message.msg_id = any($1)
    $sql$,
    'q_' || set_queue_visibility.queue_name
  )
  using msg_ids, visible_at, reads;

  get diagnostics changed = row_count;
  return changed;
end
$function$;

comment on function pgflow.set_queue_visibility(text, bigint[], timestamptz[], int) is
'Internal: sets when each of these messages of one queue can be read again and returns how many were there; the two arrays go in step. reads as in set_visibility().';
