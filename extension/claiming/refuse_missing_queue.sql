create function pgflow.refuse_missing_queue(worker pgflow.workers)
returns void
language plpgsql
immutable
set search_path to pg_catalog, pg_temp
as $function$
begin
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
'Internal: raises PF007 for a worker whose queue was dropped by hand while its flow stands.';
