create function pgflow.clear_flow(flow_slug text, reason text, next_queues text[] default '{}')
returns bigint
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  highest_id bigint;
begin
  -- The flow, then its queues, and only then runs and tasks: the order in which everybody locks.
  perform pgflow.take_flow(clear_flow.flow_slug);
  -- The names of those that go and of those that come, since another flow may wait for the one and have the other.
  perform pgflow.lock_queue_names(
    next_queues || array(select owner.queue_name from pgflow.queues as owner where owner.flow_slug = clear_flow.flow_slug)
  );
  perform pgflow.lock_queues(clear_flow.flow_slug);
  perform pgflow.stop_flow_workers(clear_flow.flow_slug, clear_flow.reason);

  -- Over all queues of the flow, so that a name that comes back two definitions later continues, too.
  select coalesce(max(pgflow.highest_message_id(owner.queue_name)), 0)
  into highest_id
  from pgflow.queues as owner
  where owner.flow_slug = clear_flow.flow_slug;

  perform pgflow.delete_runs(clear_flow.flow_slug);

  delete from pgflow.deps as dep
  where dep.flow_slug = clear_flow.flow_slug;

  delete from pgflow.steps as step
  where step.flow_slug = clear_flow.flow_slug;

  perform pgflow.drop_queues(clear_flow.flow_slug);

  return highest_id;
end
$function$;

comment on function pgflow.clear_flow(text, text, text[]) is
'Internal: takes everything from a flow but its row: tells its workers to stop for the given reason, deletes runs, steps and dependencies, and drops its queues. Returns the highest message id ever sent to one of them. next_queues: the queues that the caller makes afterwards. Waits for work in progress on the flow.';
