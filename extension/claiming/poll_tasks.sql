create function pgflow.poll_tasks(
  worker_id uuid,
  max_tasks int default 10,
  max_poll_seconds int default 5,
  poll_interval_ms int default 100
)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
  deadline timestamptz;
  head bigint[];
  candidates bigint[];
begin
  if coalesce(max_tasks, 0) not between 1 and 10000
    or coalesce(max_poll_seconds, -1) not between 0 and 60
    or coalesce(poll_interval_ms, 0) not between 1 and 60000 then
    raise exception using
      errcode = 'PF019',
      message = 'poll_tasks() got an argument out of range.',
      detail = format(
        'max_tasks is %s, of 1 to 10000; max_poll_seconds is %s, of 0 to 60; poll_interval_ms is %s, of 1 to 60000.',
        coalesce(max_tasks::text, 'null'), coalesce(max_poll_seconds::text, 'null'), coalesce(poll_interval_ms::text, 'null')
      ),
      hint = 'Pass 0 for max_poll_seconds to look once without waiting.';
  end if;

  select known.* into worker from pgflow.workers as known where known.worker_id = poll_tasks.worker_id;

  -- One that never registered has no subscription to look at.
  if worker.flow_slug is null then
    perform pgflow.check_subscription(poll_tasks.worker_id);
  end if;

  deadline := clock_timestamp() + make_interval(secs => max_poll_seconds);

  -- A stricter level would look at the same snapshot again and again.
  if current_setting('transaction_isolation') <> 'read committed' then
    deadline := clock_timestamp();
  end if;

  loop
    head := pgflow.visible_messages(worker.queue_name, max_tasks);

    if head <> '{}' then
      if pgflow.lock_subscription(worker) then
        return query
        select * from pgflow.claim_queued(worker, head, 1);

        -- Other sessions hold some of these tasks, or something else than queued work is among them.
        if not found then
          candidates := pgflow.candidate_messages(worker.queue_name, max_tasks);

          if candidates is null then
            perform pgflow.refuse_missing_queue(worker);
          end if;

          return query
          select * from pgflow.claim_queued(worker, candidates, 1);

          if not found and candidates <> '{}' then
            return query
            select * from pgflow.claim_batch(worker, candidates, 1);
          end if;
        end if;
      end if;

      return;
    end if;

    -- A worker that may not claim is told so, whether there is work or not.
    perform pgflow.check_subscription(poll_tasks.worker_id);

    if head is null then
      perform pgflow.refuse_missing_queue(worker);
    end if;

    exit when clock_timestamp() >= deadline;
    perform pg_sleep(
      least(poll_interval_ms / 1000.0, greatest(extract(epoch from deadline - clock_timestamp()), 0.001))
    );
  end loop;
end
$function$;

comment on function pgflow.poll_tasks(uuid, int, int, int) is
'Reads and claims up to max_tasks (1 to 10000) tasks of the subscription for which the worker registered, in one round trip and one transaction. Waits up to max_poll_seconds (0 to 60; 0 looks once) for work, looking every poll_interval_ms, and returns as soon as any message was classified; outcomes as in claim_tasks(). Only READ COMMITTED waits. A wait holds a snapshot, so prefer short polls. Raises PF010 (never registered), PF012 (function disabled), PF013 (unknown, stopped, older generation), PF007 (the queue is gone), PF019 (argument out of range).';
