create function pgflow.worker_serves(worker pgflow.workers, flow pgflow.flows, step pgflow.steps)
returns boolean
language sql
immutable
parallel safe
begin atomic
  select
    (worker).stop_reason is null
    and case
      -- Workers of pgflow 0.14 know nothing but the queue, in whatever case they were told.
      when (worker).flow_slug is null then
        (flow).queue_mode = 'flow'
        and lower((worker).queue_name collate "C") = (step).queue_name
      else
        (worker).flow_slug = (flow).flow_slug
        and (worker).generation = (flow).generation
        and (worker).queue_name = (step).queue_name
        and ((worker).step_slug is null or (worker).step_slug = (step).step_slug)
    end;
end;

comment on function pgflow.worker_serves(pgflow.workers, pgflow.flows, pgflow.steps) is
'Internal: whether a worker''s subscription, of the flow''s current generation, covers the route of a step. Says nothing about whether the worker is live.';
