create function pgflow.register_worker(
  worker_id uuid,
  function_name text,
  flow_slug text,
  step_slug text default null,
  start_mode text default null
)
returns pgflow.workers
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
  function pgflow.worker_functions;
  worker pgflow.workers;
begin
  perform pgflow.check_registration(
    register_worker.worker_id,
    register_worker.function_name,
    register_worker.flow_slug,
    register_worker.start_mode
  );

  -- Keeps queue mode, routes and generation as they are until the row is there; the row lock, a fence away.
  perform pg_advisory_xact_lock_shared(pgflow.flow_key(register_worker.flow_slug));

  select candidate.*
  into flow
  from pgflow.flows as candidate
  where candidate.flow_slug = register_worker.flow_slug
  for share;

  if not found then
    perform pgflow.refuse_unknown_flow(register_worker.flow_slug);
  end if;

  perform pgflow.check_step_selection(register_worker.flow_slug, register_worker.step_slug);
  perform pgflow.check_routes(register_worker.flow_slug, register_worker.step_slug);

  -- A known worker's own row comes before its function's: that is the order in which a fatal claim has them, too.
  perform
  from pgflow.workers as known
  where known.worker_id = register_worker.worker_id
  for no key update;

  insert into pgflow.worker_functions as known (function_name, start_mode, created_at, updated_at)
  values (
    register_worker.function_name,
    coalesce(register_worker.start_mode, 'process'),
    clock_timestamp(),
    clock_timestamp()
  )
  on conflict on constraint worker_functions_pkey do update set
    start_mode = coalesce(register_worker.start_mode, known.start_mode),
    updated_at = clock_timestamp()
  returning known.* into function;

  perform pgflow.check_enabled(function, register_worker.flow_slug, register_worker.worker_id);

  insert into pgflow.workers as known (
    worker_id, queue_name, function_name, flow_slug, step_slug, generation, started_at, last_heartbeat_at
  )
  select
    register_worker.worker_id,
    pgflow.subscription_queue(register_worker.flow_slug, register_worker.step_slug),
    register_worker.function_name,
    register_worker.flow_slug,
    register_worker.step_slug,
    flow.generation,
    clock_timestamp(),
    clock_timestamp()
  on conflict on constraint workers_pkey do update set
    last_heartbeat_at = clock_timestamp()
  where known.queue_name = excluded.queue_name
    and known.function_name = excluded.function_name
    and known.flow_slug = excluded.flow_slug
    and known.step_slug is not distinct from excluded.step_slug
    and known.generation = excluded.generation
    and known.stopped_at is null
    and known.deprecated_at is null
    and known.stop_reason is null
  returning known.* into worker;

  if not found then
    perform pgflow.refuse_known_worker(register_worker.worker_id);
  end if;

  return worker;
end
$function$;

comment on function pgflow.register_worker(uuid, text, text, text, text) is
'Registers a worker of a function for a flow-mode flow (step_slug null) or for one step of a step-mode flow, and returns its row. Makes the function''s row, enabled, where there is none. start_mode is http (ensure_workers() starts it), process, or null: what is stored, else process. The same worker may register again for the same subscription while nothing told it to stop. A refusal leaves no row: PF018 (unknown flow), PF014 (step missing, unknown or not allowed), PF007 (route or queue is not what was compiled), PF012 (function disabled, or flow fenced), PF010 (id known with another subscription, or stopped), PF019 (bad argument).';
