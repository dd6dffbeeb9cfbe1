create function pgflow.check_integrity(flow_slug text default null)
returns table (code text, subject text, detail text)
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if check_integrity.flow_slug is not null
    and not exists (select from pgflow.flows as flow where flow.flow_slug = check_integrity.flow_slug)
  then
    perform pgflow.refuse_unknown_flow(check_integrity.flow_slug);
  end if;

  return query
  with fault as (
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.ownership_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.counter_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.status_faults(check_integrity.flow_slug) as found_fault
    union all
    select found_fault.code, found_fault.subject, found_fault.detail
    from pgflow.time_faults(check_integrity.flow_slug) as found_fault
    union all
    select
      replace(found_fault.kind, ' ', '_'),
      case
        when found_fault.run_id is null
          then format('message %s on queue "%s"', found_fault.msg_id, found_fault.queue_name)
        else format('task %s of step "%s" of run %s', found_fault.task_index, found_fault.step_slug, found_fault.run_id)
      end,
      case
        when found_fault.run_id is null then found_fault.detail
        else format(
          'message %s of queue "%s": %s',
          coalesce(found_fault.msg_id::text, '(none)'),
          found_fault.queue_name,
          found_fault.detail
        )
      end
    from pgflow.message_faults(check_integrity.flow_slug) as found_fault
  )
  select fault.code, fault.subject, fault.detail
  from fault
  order by fault.code collate "C", fault.subject collate "C", fault.detail collate "C";
end
$function$;

comment on function pgflow.check_integrity(text) is
'Every promise of the engine as a query, for one flow or for all; no rows: sound. Compares tasks with messages, counters with what they count, statuses of tasks, steps and runs with each other, routes and queues with their witnesses, and times with their order. Changes nothing, takes one snapshot, reads everything: for tests and for doubt. Raises PF018 for an unknown flow.';
