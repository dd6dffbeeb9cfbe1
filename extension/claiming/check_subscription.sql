create function pgflow.check_subscription(worker_id uuid)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
  standing record;
begin
  select found_standing.errcode, found_standing.reason
  into standing
  from pgflow.worker_standing(check_subscription.worker_id) as found_standing;

  if not found then
    return;
  end if;

  select candidate.*
  into worker
  from pgflow.workers as candidate
  where candidate.worker_id = check_subscription.worker_id;

  raise exception using
    errcode = standing.errcode,
    message = format(
      'Worker %s can''t claim tasks: %s', coalesce(check_subscription.worker_id::text, 'null'), standing.reason
    ),
    detail = case
      when worker.worker_id is null then 'Its row in pgflow.workers was never written, or was removed.'
      else format(
        'Its subscription is queue "%s", flow %s, step %s, generation %s; its function is "%s".',
        worker.queue_name,
        coalesce('"' || worker.flow_slug || '"', 'none'),
        coalesce('"' || worker.step_slug || '"', 'none'),
        coalesce(worker.generation::text, 'none'),
        worker.function_name
      )
    end,
    hint = case standing.errcode
      when 'PF012' then format(
        'Find out why, then run %s and start the worker again.',
        pgflow.way_to_enable(worker.function_name, worker.flow_slug)
      )
      when 'PF010' then 'Register the worker with select pgflow.register_worker(...) before it polls.'
      else 'Stop this worker. A new one compiles the flow and registers under a new id.'
    end;
end
$function$;

comment on function pgflow.check_subscription(uuid) is
'Internal: refuses a worker that may not claim. Raises PF010 (it never registered), PF012 (its function is disabled, or its flow fenced) or PF013 (unknown, stopped, told to stop, or of an older generation).';
