create function pgflow.recompile_flow(flow_slug text, shape jsonb, queue_mode text)
returns void
language plpgsql
set search_path to pg_catalog, pg_temp
as $function$
declare
  step_slugs constant text[] := pgflow.shape_slugs(recompile_flow.shape);
  highest_id bigint;
begin
  -- Before anybody has to wait: whether the new queues can be had at all.
  perform pgflow.check_queues(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs, true);

  highest_id := pgflow.clear_flow(
    recompile_flow.flow_slug,
    format('Flow "%s" was compiled anew, with the loss of its data.', recompile_flow.flow_slug),
    array(
      select wanted.queue_name
      from pgflow.queues_to_own(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs) as wanted
    )
  );

  update pgflow.flows as flow
  set
    queue_mode = recompile_flow.queue_mode,
    generation = nextval('pgflow.flow_generations'),
    opt_max_attempts = coalesce((recompile_flow.shape #>> '{options,maxAttempts}')::numeric::int, 3),
    opt_base_delay = coalesce((recompile_flow.shape #>> '{options,baseDelay}')::numeric::int, 5),
    opt_timeout = coalesce((recompile_flow.shape #>> '{options,timeout}')::numeric::int, 60)
  where flow.flow_slug = recompile_flow.flow_slug;

  perform pgflow.own_queues(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs, highest_id);
  perform pgflow.insert_steps(recompile_flow.flow_slug, recompile_flow.shape, recompile_flow.queue_mode);
exception
  when out_of_memory then
    perform pgflow.refuse_full_lock_table(
      recompile_flow.flow_slug,
      (
        select count(*)
        from pgflow.queues_to_own(recompile_flow.flow_slug, recompile_flow.queue_mode, step_slugs) as wanted
      ),
      (select count(*) from pgflow.queues as owner where owner.flow_slug = recompile_flow.flow_slug),
      sqlerrm
    );
end
$function$;

comment on function pgflow.recompile_flow(text, jsonb, text) is
'Internal: replaces the definition, mode and queues of a flow that exists by those of a checked shape, and loses its runs, tasks and messages. Workers of the old generation are told to stop. Raises what check_queues() and own_queues() raise, and PF017 when the lock table is full.';
