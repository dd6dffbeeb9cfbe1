create function pgflow.refuse_full_lock_table(flow_slug text, queue_count bigint, reason text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  raise exception using
    errcode = 'PF017',
    message = format(
      'The server''s lock table is too small for the queues of flow "%s".',
      refuse_full_lock_table.flow_slug
    ),
    detail = format(
      'The flow has %s queues, and making or dropping one takes about 25 locks: %s.',
      refuse_full_lock_table.queue_count,
      refuse_full_lock_table.reason
    ),
    hint = format(
      '%s queues take about %s locks. Raise max_locks_per_transaction (now %s) and restart the server, '
      'or use a flow with fewer steps or the default single queue.',
      refuse_full_lock_table.queue_count,
      25 * refuse_full_lock_table.queue_count,
      current_setting('max_locks_per_transaction')
    );
end
$function$;

comment on function pgflow.refuse_full_lock_table(text, bigint, text) is
'Internal: raises PF017 for a flow with that many queues; reason is the server''s own message.';
