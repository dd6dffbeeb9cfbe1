create function pgflow.worker_standing(worker_id uuid)
returns table (errcode text, reason text)
language sql
stable
begin atomic
  select
    verdict.errcode,
    verdict.reason
  from (values (worker_standing.worker_id)) as asked (worker_id)
  left join pgflow.workers as worker on worker.worker_id = asked.worker_id
  left join pgflow.flows as flow on flow.flow_slug = worker.flow_slug
  left join pgflow.worker_functions as function on function.function_name = worker.function_name
  -- Workers of pgflow 0.14 know nothing but the queue.
  left join pgflow.queues as owner
    on worker.flow_slug is null
    and owner.queue_name = lower(worker.queue_name collate "C")
  -- Every worker of the flow is behind its fence, one of a function that the fence has not met, too.
  left join lateral (
    select
      open.flow_slug,
      open.reason
    from pgflow.fences as open
    where open.flow_slug = coalesce(worker.flow_slug, owner.flow_slug)
      and open.restored_at is null
    limit 1
  ) as fence on true
  -- What can't be mended comes first; a disabled function before the order to stop, since it says what to repair.
  cross join lateral (
    values
    (
      1,
      worker.worker_id is null,
      'PF013',
      format('worker %s is not known', coalesce(asked.worker_id::text, 'null'))
    ),
    (
      2,
      worker.stopped_at is not null,
      'PF013',
      'it was stopped at ' || worker.stopped_at
    ),
    (
      3,
      worker.flow_slug is not null and flow.flow_slug is null,
      'PF013',
      format('flow "%s" is gone', worker.flow_slug)
    ),
    (
      4,
      worker.generation is distinct from flow.generation and worker.flow_slug is not null,
      'PF013',
      format(
        'flow "%s" was recompiled: the worker is of generation %s, the flow of generation %s',
        worker.flow_slug, worker.generation, flow.generation
      )
    ),
    (
      5,
      fence.flow_slug is not null,
      'PF012',
      format('flow "%s" is fenced: %s', fence.flow_slug, fence.reason)
    ),
    (
      6,
      not function.enabled,
      'PF012',
      format(
        'function "%s" is disabled: %s',
        worker.function_name, coalesce(function.disabled_reason, 'no reason was recorded')
      )
    ),
    (
      7,
      worker.stop_reason is not null,
      'PF013',
      'it was told to stop: ' || worker.stop_reason
    ),
    (
      8,
      worker.deprecated_at is not null,
      'PF013',
      'it was deprecated at ' || worker.deprecated_at
    ),
    (
      9,
      worker.flow_slug is null,
      'PF010',
      'it never registered a subscription'
    )
  ) as verdict (priority, applies, errcode, reason)
  where verdict.applies
  order by verdict.priority
  limit 1;
end;

comment on function pgflow.worker_standing(uuid) is
'Whether a worker may go on: no row when it may, else the SQLSTATE that a claim of it raises (PF013, PF012, PF010) and the reason as the rest of a sentence about the worker. Claims, heartbeats and coverage all ask this function.';
