create function pgflow.check_fenced_flow(flow_slug text)
returns void
language plpgsql
stable
set search_path to pg_catalog, pg_temp
as $function$
begin
  if not exists (select from pgflow.flows as flow where flow.flow_slug = check_fenced_flow.flow_slug)
    and not exists (select from pgflow.fences as fence where fence.flow_slug = check_fenced_flow.flow_slug) then
    perform pgflow.refuse_unknown_flow(check_fenced_flow.flow_slug);
  end if;
end
$function$;

comment on function pgflow.check_fenced_flow(text) is
'Internal: raises PF018 for a flow that is neither there nor was ever fenced. A flow that was deleted behind its fence is fine.';
