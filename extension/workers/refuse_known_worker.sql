create function pgflow.refuse_known_worker(worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
begin
  select known.* into worker from pgflow.workers as known where known.worker_id = refuse_known_worker.worker_id;

  raise exception using
    errcode = 'PF010',
    message = format('Worker %s is known already and can''t be registered like this.', refuse_known_worker.worker_id),
    detail = format(
      'It registered as function "%s" for queue "%s", flow %s, step %s%s.',
      worker.function_name,
      worker.queue_name,
      coalesce(quote_ident(worker.flow_slug), 'none'),
      coalesce(quote_ident(worker.step_slug), 'none'),
      coalesce(
        (select '; ' || standing.reason from pgflow.worker_standing(refuse_known_worker.worker_id) as standing),
        ''
      )
    ),
    hint = 'Every start of a worker and every subscription needs an id of its own: gen_random_uuid().';
end
$function$;

comment on function pgflow.refuse_known_worker(uuid) is
'Internal: raises PF010 for a worker id that registered with another subscription, or that was stopped.';
