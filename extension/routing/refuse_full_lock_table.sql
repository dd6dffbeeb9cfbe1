create function pgflow.refuse_full_lock_table(flow_slug text, made bigint, dropped bigint, reason text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  -- Measured: each queue is two tables with their indexes, a sequence, TOAST tables and the types of all these.
  locks constant bigint := 24 * made + 40 * dropped;
  slots constant bigint := current_setting('max_connections')::bigint + current_setting('max_prepared_transactions')::bigint;
begin
  raise exception using
    errcode = 'PF017',
    message = format(
      'The server''s lock table is too small for the queues of %s.',
      coalesce('flow "' || refuse_full_lock_table.flow_slug || '"', 'all flows')
    ),
    detail = format(
      'There are %s queues to make and %s to drop, which takes about %s locks in one transaction; max_locks_per_transaction, %s, promises %s in all, for %s connections: %s.',
      made,
      dropped,
      locks,
      current_setting('max_locks_per_transaction'),
      slots * current_setting('max_locks_per_transaction')::bigint,
      slots,
      refuse_full_lock_table.reason
    ),
    hint = format(
      'Set max_locks_per_transaction to %s or more and restart the server, or use a flow with fewer steps or the default single queue.',
      -- What is needed here, and what is there for all others.
      locks / slots + current_setting('max_locks_per_transaction')::bigint
    );
end
$function$;

comment on function pgflow.refuse_full_lock_table(text, bigint, bigint, text) is
'Internal: raises PF017 for a change that makes and drops that many queues of a flow (null: of all). reason is the server''s own message.';
