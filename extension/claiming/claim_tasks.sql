create function pgflow.claim_tasks(queue_name text, flow_slug text, step_slug text, msg_ids bigint[], worker_id uuid)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  worker pgflow.workers;
begin
  perform pgflow.check_subscription(claim_tasks.worker_id);

  select known.* into worker from pgflow.workers as known where known.worker_id = claim_tasks.worker_id;

  if (worker.queue_name, worker.flow_slug, worker.step_slug)
    is distinct from (claim_tasks.queue_name, claim_tasks.flow_slug, claim_tasks.step_slug) then
    raise exception using
      errcode = 'PF010',
      message = format('Worker %s did not register for this subscription.', claim_tasks.worker_id),
      detail = format(
        'The call names queue %s, flow %s, step %s; the worker registered for queue %s, flow %s, step %s.',
        coalesce(quote_ident(claim_tasks.queue_name), 'null'),
        coalesce(quote_ident(claim_tasks.flow_slug), 'null'),
        coalesce(quote_ident(claim_tasks.step_slug), 'null'),
        quote_ident(worker.queue_name),
        quote_ident(worker.flow_slug),
        coalesce(quote_ident(worker.step_slug), 'null')
      ),
      hint = 'Pass queue, flow and step as register_worker() returned them. No message was changed.';
  end if;

  if not exists (select from unnest(msg_ids) as passed (msg_id) where passed.msg_id is not null) then
    return;
  end if;

  if not pgflow.lock_subscription(worker) then
    return query
    select
      passed.msg_id,
      'deferred',
      'the flow is being recompiled, deleted or repaired',
      null::text, null::uuid, null::text, null::int, null::int, null::jsonb, null::jsonb
    from unnest(msg_ids) with ordinality as passed (msg_id, position)
    where passed.msg_id is not null
    group by passed.msg_id
    order by min(passed.position);
    return;
  end if;

  -- Looked for under the lock of the flow, so that it can't go before the batch is done.
  if to_regclass(format('pgmq.%I', 'q_' || worker.queue_name)) is null then
    perform pgflow.refuse_missing_queue(worker);
  end if;

  return query
  select * from pgflow.claim_queued(worker, msg_ids, 0);

  if not found then
    return query
    select * from pgflow.claim_batch(worker, msg_ids, 0);
  end if;
end
$function$;

comment on function pgflow.claim_tasks(text, text, text, bigint[], uuid) is
'Claims the tasks of messages that the caller has read. queue_name, flow_slug, step_slug (null for a flow-mode flow) must be what the worker registered for. One row for every distinct id, in the order passed; null ids are ignored. Outcomes: claimed (one attempt, message hidden until the recovery boundary; with a reason and without an input where PostgreSQL can''t hold the outputs of all dependencies together: fail it), deferred (in progress; hidden, no attempt), archived (ended), gone (not in the queue). A message in the queue that is no exact task makes the whole batch fatal: nothing is claimed, the outcomes are unsupported and released, the worker''s function is disabled and one warning (PF011) goes out; commit before you act on that. Raises PF010 (wrong subscription), PF012 (function disabled), PF013 (worker unknown, stopped or of an older generation), PF007 (the queue is gone) before any message changes.';
