create function pgflow.set_vt_batch(queue_name text, msg_ids bigint[], vt_offsets int[])
returns table (
  msg_id bigint,
  read_ct int,
  enqueued_at timestamptz,
  vt timestamptz,
  message jsonb,
  headers jsonb
)
language plpgsql
set search_path to pg_catalog, pg_temp
-- A plain scan of the primary key locks the messages in the order of their ids.
set enable_seqscan to off
set enable_bitmapscan to off
as $function$
begin
  if msg_ids is null or vt_offsets is null or cardinality(msg_ids) = 0 then
    return;
  end if;

  if cardinality(msg_ids) <> cardinality(vt_offsets) then
    raise exception using
      errcode = 'PF019',
      message = format(
        'msg_ids length (%s) must equal vt_offsets length (%s)', cardinality(msg_ids), cardinality(vt_offsets)
      ),
      detail = format('Queue "%s".', set_vt_batch.queue_name),
      hint = 'Pass one offset, in seconds from now, for every message id.';
  end if;

  return query execute format(
    $sql$
      update pgmq.%I as message
      set vt = clock_timestamp() + make_interval(secs => ($2)[array_position($1, message.msg_id)])
      where message.msg_id = any($1)
      returning
        message.msg_id, message.read_ct, message.enqueued_at, message.vt, message.message, message.headers
    $sql$,
    pgmq.format_table_name(set_vt_batch.queue_name, 'q')
  )
  using msg_ids, vt_offsets;
end
$function$;

comment on function pgflow.set_vt_batch(text, bigint[], int[]) is
'Sets the visibility timeout of many messages of one queue, each to now plus its own offset in seconds, and returns them. Null or empty ids give no rows; PF019 when the two arrays differ in length. As in pgflow 0.14.';
