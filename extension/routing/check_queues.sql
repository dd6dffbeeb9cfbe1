create function pgflow.check_queues(
  flow_slug text,
  queue_mode text,
  step_slugs text[],
  replaces_own_queues boolean default false
)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
declare
  conflict record;
begin
  perform pgmq.validate_queue_name(wanted.queue_name)
  from pgflow.queues_to_own(check_queues.flow_slug, check_queues.queue_mode, check_queues.step_slugs) as wanted;

  select conflict_found.*
  into conflict
  from pgflow.queue_conflicts(
    check_queues.flow_slug,
    check_queues.queue_mode,
    check_queues.step_slugs,
    check_queues.replaces_own_queues
  ) as conflict_found
  order by conflict_found.step_index
  limit 1;

  if found then
    raise exception using
      errcode = conflict.errcode,
      message = conflict.message,
      detail = conflict.detail,
      hint = conflict.hint;
  end if;

  if check_queues.replaces_own_queues then
    perform pgflow.check_foreign_routes(check_queues.flow_slug);
  end if;
end
$function$;

comment on function pgflow.check_queues(text, text, text[], boolean) is
'Internal: the preflight of a complete flow: returns when every queue it needs is free or its own, and changes nothing. replaces_own_queues: what the flow owns now is going to be dropped first. Raises what queues_to_own() and pgmq.validate_queue_name() raise, PF004 (a queue exists and nobody owns it), PF005 (another flow or step owns it), PF007 (its own, but gone or made again by somebody), and, when the flow''s own are to be dropped, what check_foreign_routes() raises.';
