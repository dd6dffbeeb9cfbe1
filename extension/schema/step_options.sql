create view pgflow.step_options as
select
  step.flow_slug,
  step.step_slug,
  step.step_index,
  step.step_type,
  step.queue_name,
  step.deps_count,
  step.when_unmet,
  step.when_exhausted,
  coalesce(step.opt_max_attempts, flow.opt_max_attempts) as max_attempts,
  -- Capped at a year: a larger figure is a slip, and arithmetic with it would overflow.
  least(coalesce(step.opt_base_delay, flow.opt_base_delay), 31536000) as base_delay,
  least(coalesce(step.opt_timeout, flow.opt_timeout), 31536000) as timeout,
  least(coalesce(step.opt_start_delay, 0), 31536000) as start_delay
from pgflow.steps as step
inner join pgflow.flows as flow on flow.flow_slug = step.flow_slug;

comment on view pgflow.step_options is
'The options that are in force for each step: the step''s own, else the flow''s. Delays and timeouts are in seconds, capped at a year.';
