create function pgflow.classify_messages(queue_name text, flow_slug text, step_slug text, msg_ids bigint[])
returns setof pgflow.message_class
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  perform pgflow.check_queue(classify_messages.queue_name);

  -- The pair (queue, id) alone names the task; body and visibility of the message are not asked.
  return query execute format(
    $sql$
      select
        asked.msg_id,
        verdict.class,
        case verdict.class
          when 'claimable' then 'task is queued'
          when 'started' then format('attempt %%s of the task is in progress', task.attempts_count)
          when 'terminal' then
            case
              when not pgflow.task_is_active(task.status) then format('task is %%s', task.status)
              when run.status <> 'started' then format('run is %%s', run.status)
              else format('step is %%s', state.status)
            end
          when 'gone' then
            case
              when task.run_id is null then 'neither a message nor a task has this id'
              else format('the message of this %%s task is not in the queue', task.status)
            end
          else
            case
              when task.run_id is null then 'no task has this message'
              else format('message is of step "%%s" of flow "%%s"', task.step_slug, task.flow_slug)
            end
        end as reason,
        task.run_id,
        task.step_slug,
        task.task_index
      from (
        select passed.msg_id, min(passed.position) as position
        from unnest($1) with ordinality as passed (msg_id, position)
        where passed.msg_id is not null
        group by passed.msg_id
      ) as asked
      -- Each of these gives at most one row. Saying so keeps the planner, whatever it believes about these tables, from
      -- reading one as a whole where a few look-ups do.
      left join lateral (
        select found.msg_id from pgmq.%I as found where found.msg_id = asked.msg_id limit 1
      ) as message on true
      left join lateral (
        select found.*
        from pgflow.step_tasks as found
        where found.queue_name = $2
          and found.message_id = asked.msg_id
        limit 1
      ) as task on true
      left join lateral (
        select found.status
        from pgflow.step_states as found
        where found.run_id = task.run_id
          and found.step_slug = task.step_slug
        limit 1
      ) as state on true
      left join lateral (
        select found.status from pgflow.runs as found where found.run_id = task.run_id limit 1
      ) as run on true
      cross join lateral (
        select
          coalesce(
            task.flow_slug = $3 and ($4 is null or task.step_slug = $4),
            false
          ) as is_exact,
          pgflow.task_is_active(task.status) and state.status = 'started' and run.status = 'started' as is_active
      ) as task_is
      cross join lateral (
        select
          case
            when task_is.is_exact and not task_is.is_active then 'terminal'
            when message.msg_id is null then 'gone'
            when not task_is.is_exact then 'unsupported'
            when task.status = 'queued' then 'claimable'
            else 'started'
          end as class
      ) as verdict
      order by asked.position
    $sql$,
    'q_' || classify_messages.queue_name
  )
  using msg_ids, classify_messages.queue_name, classify_messages.flow_slug, classify_messages.step_slug;
exception
  -- Dropped after the check.
  when undefined_table then
    perform pgflow.check_queue(classify_messages.queue_name);
    raise;
end
$function$;

comment on function pgflow.classify_messages(text, text, text, bigint[]) is
'What each message is to a subscription (queue, flow, step; step null: a flow-mode flow''s whole queue): claimable, started, terminal, gone or unsupported, with the reason and the task. One row for every distinct id, in the order passed; null ids are ignored. Read-only. Raises PF019 for a queue that does not exist.';
