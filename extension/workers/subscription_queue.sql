create function pgflow.subscription_queue(flow_slug text, step_slug text)
returns text
language sql
stable
begin atomic
  select queue.queue_name
  from pgflow.queues as queue
  where queue.flow_slug = subscription_queue.flow_slug
    and queue.step_slug is not distinct from subscription_queue.step_slug;
end;

comment on function pgflow.subscription_queue(text, text) is
'Internal: the queue of a subscription: the private one of a step, or, for a null step, the one of a flow-mode flow.';
