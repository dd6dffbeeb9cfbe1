create function pgflow.refuse_missing_queue(worker pgflow.workers)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  -- The snapshot of a stricter transaction may be older than a recompilation, which it then can't see.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception using
      errcode = 'PF013',
      message = format('Worker %s can''t claim tasks: its queue "%s" is gone', worker.worker_id, worker.queue_name),
      detail = format(
        'Flow "%s" was recompiled or deleted after this transaction began, or somebody dropped the queue by hand.',
        worker.flow_slug
      ),
      hint = 'Begin a new transaction. If the worker is then told the same, stop it.';
  end if;

  raise exception using
    errcode = 'PF007',
    message = format('Queue "%s" of flow "%s" is gone from PGMQ.', worker.queue_name, worker.flow_slug),
    detail = format('PGMQ has no table "q_%s"; worker %s serves it.', worker.queue_name, worker.worker_id),
    hint = format(
      'Somebody dropped the queue by hand. Make it again: select * from pgflow.repair_queues(%L);', worker.flow_slug
    );
end
$function$;

comment on function pgflow.refuse_missing_queue(pgflow.workers) is
'Internal: raises PF007 for a worker whose queue was dropped by hand while its flow stands; PF013 in a transaction whose snapshot can''t tell.';
