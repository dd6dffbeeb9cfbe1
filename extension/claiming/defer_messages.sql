create function pgflow.defer_messages(queue_name text, msg_ids bigint[])
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  messages pgflow.message_ref[];
  visible_at timestamptz[];
begin
  select
    array_agg(row(task.queue_name, task.message_id)::pgflow.message_ref),
    array_agg(
      greatest(
        pgflow.recovery_boundary(task.started_at, step.timeout, task.lease_extended_until),
        -- Past its boundary the task is recovery's to take; until it does, the message must not spin.
        clock_timestamp() + interval '30 seconds'
      )
    )
  into messages, visible_at
  from unnest(msg_ids) as passed (msg_id)
  cross join lateral (
    select every.*
    from pgflow.step_tasks as every
    where every.queue_name = defer_messages.queue_name
      and every.message_id = passed.msg_id
    limit 1
  ) as task
  inner join pgflow.step_options as step
    on step.flow_slug = task.flow_slug
    and step.step_slug = task.step_slug;

  if messages is not null then
    perform pgflow.set_visibility(messages, visible_at);
  end if;
end
$function$;

comment on function pgflow.defer_messages(text, bigint[]) is
'Internal: hides messages of started tasks until the recovery boundary of each, at least 30 seconds from now. Uses no attempt.';
