create function pgflow.subscription_queue(flow_slug text, step_slug text)
returns text
language sql
stable
begin atomic
  select coalesce(
    (
      select step.queue_name
      from pgflow.steps as step
      where step.flow_slug = subscription_queue.flow_slug
        and step.step_slug = subscription_queue.step_slug
    ),
    lower(subscription_queue.flow_slug collate "C")
  );
end;

comment on function pgflow.subscription_queue(text, text) is
'Internal: the queue of a subscription: the private one of a step, or, for a null step, the one of a flow-mode flow. The caller has checked both and their routes.';
