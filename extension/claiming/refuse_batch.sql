create function pgflow.refuse_batch(worker pgflow.workers, msg_ids bigint[], unsupported bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  refusal text := format(
    'unsupported work on queue "%s": message ids %s',
    worker.queue_name,
    case
      when cardinality(unsupported) > 20
        then array_to_string(unsupported[1:20], ', ') || format(' and %s more', cardinality(unsupported) - 20)
      else array_to_string(unsupported, ', ')
    end
  );
  free bigint[];
begin
  -- The batch holds messages whose tasks are not locked here. One that another session has is claimed, finished or
  -- refused there, which says when it can be read again; waiting for it could close a circle.
  execute format(
    $sql$
      select array_agg(free.msg_id)
      from (
        select message.msg_id from pgmq.%I as message where message.msg_id = any($1) order by message.msg_id for update skip locked
      ) as free
    $sql$,
    'q_' || worker.queue_name
  )
  into free
  using msg_ids;

  if free is not null then
    perform pgflow.set_visibility(
      array(select row(worker.queue_name, message.msg_id)::pgflow.message_ref from unnest(free) as message (msg_id)),
      array_fill(clock_timestamp(), array[cardinality(free)])
    );
  end if;

  -- After the messages: the one exception to the order of locks, since only now it is known that it comes to this.
  update pgflow.worker_functions as function
  set
    enabled = false,
    disabled_at = clock_timestamp(),
    disabled_reason = refusal,
    updated_at = clock_timestamp()
  where function.function_name = worker.function_name;

  -- Sessions of one worker share the lock of its row, so none may wait here for another one to let go. The function's
  -- row above lets one after the other come here; where another session of the worker still claims, that row alone
  -- stops it.
  update pgflow.workers as own
  set stop_reason = refusal
  from (
    select free_row.worker_id
    from pgflow.workers as free_row
    where free_row.worker_id = worker.worker_id
    for no key update skip locked
  ) as mine
  where own.worker_id = mine.worker_id;

  -- A warning and no error: an error would undo all of the above.
  raise warning using
    errcode = 'PF011',
    message = format(
      'Worker function "%s" is disabled: unsupported work for step "%s" of flow "%s" on queue "%s", message ids %s.',
      worker.function_name,
      coalesce(worker.step_slug, '*'),
      worker.flow_slug,
      worker.queue_name,
      array_to_string(unsupported, ', ')
    ),
    detail = format(
      'None of the %s messages of the batch was claimed; all are visible again: %s.',
      cardinality(msg_ids), array_to_string(msg_ids, ', ')
    ),
    hint = format(
      'Look at them with select * from pgflow.classify_messages(%L, %L, %L, array[%s]); move them aside with pgflow.quarantine_message(), then run select pgflow.enable_worker_function(%L).',
      worker.queue_name, worker.flow_slug, worker.step_slug, array_to_string(unsupported[1:20], ', '), worker.function_name
    );
end
$function$;

comment on function pgflow.refuse_batch(pgflow.workers, bigint[], bigint[]) is
'Internal: the end of a batch with unsupported work. Makes every message of it visible again, disables the worker''s function, tells the worker to stop and sends one warning (PF011) with ids and never a body. Raises nothing, since that would undo it.';
