create function pgflow.insert_flow(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  max_attempts int,
  base_delay int,
  timeout int
)
returns pgflow.flows
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  flow pgflow.flows;
begin
  insert into pgflow.flows (flow_slug, queue_mode, opt_max_attempts, opt_base_delay, opt_timeout)
  values (
    insert_flow.flow_slug,
    insert_flow.queue_mode,
    coalesce(insert_flow.max_attempts, 3),
    coalesce(insert_flow.base_delay, 5),
    coalesce(insert_flow.timeout, 60)
  )
  returning flows.*
  into flow;

  perform pgflow.own_queues(insert_flow.flow_slug, insert_flow.queue_mode, insert_flow.step_slugs);

  return flow;
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      insert_flow.flow_slug,
      (
        select count(*)
        from pgflow.queues_to_own(insert_flow.flow_slug, insert_flow.queue_mode, insert_flow.step_slugs) as wanted
      ),
      0,
      sqlerrm
    );
end
$function$;

comment on function pgflow.insert_flow(text, text, text[], int, int, int) is
'Internal: makes a flow without steps, and the queues that the steps to come need. Null options take the defaults: 3 attempts, 5 s base delay, 60 s timeout. Raises what own_queues() raises, and PF017 when the lock table is full.';
