create function pgflow.claim_batch(worker pgflow.workers, msg_ids bigint[], reads int)
returns setof pgflow.claim_outcome
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode to force_generic_plan
set enable_seqscan to off
set enable_indexscan to off
set enable_indexonlyscan to off
set jit to off
as $function$
declare
  ids bigint[];
  classes text[];
  reasons text[];
  locked bigint[];
  unsupported bigint[];
begin
  locked := pgflow.lock_tasks((worker).queue_name, msg_ids);

  -- A statement of its own: what a session committed before we got its tasks' locks is seen here.
  select
    array_agg(message.msg_id order by message.position),
    array_agg(message.class order by message.position),
    array_agg(message.reason order by message.position),
    array_agg(message.msg_id order by message.position) filter (where message.class = 'unsupported')
  into ids, classes, reasons, unsupported
  from pgflow.classify_messages((worker).queue_name, (worker).flow_slug, (worker).step_slug, msg_ids)
    with ordinality as message (msg_id, class, reason, run_id, step_slug, task_index, position);

  if unsupported is not null then
    perform pgflow.refuse_batch(worker, ids, unsupported);

    return query
    select
      message.msg_id,
      case when message.class = 'unsupported' then 'unsupported' else 'released' end,
      case when message.class = 'unsupported' then message.reason else 'its batch held unsupported work' end,
      null::text, null::uuid, null::text, null::int, null::int, null::jsonb, null::jsonb
    from unnest(ids, classes, reasons) with ordinality as message (msg_id, class, reason, position)
    order by message.position;
    return;
  end if;

  if 'started' = any(classes) then
    perform pgflow.defer_messages(
      (worker).queue_name,
      array(
        select message.msg_id
        from unnest(ids, classes) as message (msg_id, class)
        where message.class = 'started'
          and message.msg_id in (select unnest(locked))
      )
    );
  end if;

  if 'terminal' = any(classes) then
    perform pgflow.clear_terminal_messages(
      (worker).queue_name,
      array(
        select message.msg_id
        from unnest(ids, classes) as message (msg_id, class)
        where message.class = 'terminal'
      )
    );
  end if;

  return query
  select
    message.msg_id,
    coalesce(
      attempt.outcome,
      case
        when message.class in ('claimable', 'started') then 'deferred'
        when message.class = 'terminal' then 'archived'
        else 'gone'
      end
    ),
    case
      when attempt.outcome is not null then attempt.reason
      when message.class in ('claimable', 'started') and message.msg_id not in (select unnest(locked))
        then 'another session is working on the task'
      else message.reason
    end,
    attempt.flow_slug,
    attempt.run_id,
    attempt.step_slug,
    attempt.task_index,
    attempt.attempt,
    attempt.input,
    attempt.flow_input
  from unnest(ids, classes, reasons) with ordinality as message (msg_id, class, reason, position)
  -- Not gathered before they go out: the inputs of a batch may be more than fits into one value.
  left join pgflow.claim_queued(
    worker,
    array(
      select claimable.msg_id
      from unnest(ids, classes) as claimable (msg_id, class)
      where claimable.class = 'claimable'
        and claimable.msg_id in (select unnest(locked))
    ),
    reads
  ) as attempt on attempt.msg_id = message.msg_id
  order by message.position;
end
$function$;

comment on function pgflow.claim_batch(pgflow.workers, bigint[], int) is
'Internal: classifies a whole batch under locks, then either claims, defers and archives, or refuses it as a whole. The caller has checked the worker and holds the locks of its flow and of its row. reads as in set_visibility().';
